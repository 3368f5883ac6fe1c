# The cluster's own programs, built from Go modules: sourced by cluster.sh, which sets $here and $dir.
# Versions and checksums are pinned: kube/ and coredns/ by their go.mod and go.sum, the others by version, which Go
# checks against its public checksum database. A stamp per program holds what it was built from.

kube_version=1.34.4
helm=helm.sh/helm/v3/cmd/helm@v3.22.0
training_operator=github.com/kubeflow/training-operator@v1.8.1
components=(etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)

build() {
  mkdir -p "$dir/bin" "$dir/stamp"
  exec 8> "$dir/programs.lock" # one run at a time
  flock 8
  export GOTOOLCHAIN=local GOFLAGS=-buildvcs=false
  program kube "the Kubernetes components (about 8 minutes the first time)" \
    "$(cat "$here"/kube/go.mod "$here"/kube/main.go)" build_kube
  program coredns "CoreDNS" "$(cat "$here"/coredns/go.mod "$here"/coredns/main.go)" build_coredns
  program helm "Helm" "$helm $kube_version" build_helm
  program training-operator "the training-operator" "$training_operator" build_training_operator
  exec 8>&-
}

program() { # NAME WORDS INPUTS COMMAND...: runs COMMAND unless bin/NAME was built from the same INPUTS
  local name=$1 words=$2 stamp
  stamp=$(printf '%s' "$3" | sha256sum | cut -d' ' -f1)
  shift 3
  [ -x "$dir/bin/$name" ] && [ "$(cat "$dir/stamp/$name" 2> /dev/null)" = "$stamp" ] && return
  say "building $words"
  local began=$SECONDS
  (cd / && "$@")
  echo "$stamp" > "$dir/stamp/$name"
  say "built $name in $((SECONDS - began)) s"
}

build_kube() { # one binary with every component: they share most of their code
  local v=k8s.io/component-base/version minor=${kube_version#1.} c
  cd "$here/kube"
  go build -trimpath -o "$dir/bin/kube" \
    -ldflags "-s -w -X $v.gitVersion=v$kube_version -X $v.gitMajor=1 -X $v.gitMinor=${minor%.*}" .
  for c in "${components[@]}"; do ln -sf kube "$dir/bin/$c"; done
}

build_coredns() { cd "$here/coredns" && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$dir/bin/coredns" .; }

go_install() { GOBIN=$dir/bin CGO_ENABLED=0 go install -trimpath -ldflags "-s -w ${2:-}" "$1"; }

build_helm() { # as its release builds do, with its own version and the Kubernetes it renders for by default
  local minor=${kube_version#1.} module=helm.sh/helm/v3 version=${helm##*@}
  go_install "$helm" "-X $module/internal/version.version=$version -X $module/pkg/chartutil.k8sVersionMajor=1 \
    -X $module/pkg/chartutil.k8sVersionMinor=${minor%.*} -X $module/pkg/lint/rules.k8sVersionMajor=1 \
    -X $module/pkg/lint/rules.k8sVersionMinor=${minor%.*}"
}

build_training_operator() { # the program, and its manifests from the same module
  go_install "${training_operator/@//cmd/training-operator.v1@}"
  mv "$dir/bin/training-operator.v1" "$dir/bin/training-operator"
  local source
  source=$(go mod download -json "$training_operator" | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
  rm -rf "$dir/training-operator"
  cp -r --no-preserve=mode "$source/manifests" "$dir/training-operator"
}
