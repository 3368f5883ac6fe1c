#!/bin/bash
# A single-node Kubernetes inside one network namespace, on a machine without a container engine.
# Usage: cluster.sh build | images [NAME...] | up | status | load IMAGE.tar... | load-all | kubectl ARGS... |
#        helm ARGS... | exec CMD... | host NAME ADDRESS | down
# NEZHA_CLUSTER_DIR (default: ~/.cache/nezha-cluster) holds programs, images, keys, data and logs.
# Needs root and what `scripts/install-deps test` installs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
dir=${NEZHA_CLUSTER_DIR:-$HOME/.cache/nezha-cluster}
ns=nezha                # the network namespace: node, control plane and pods live in it
run=/run/nezha-cluster  # sockets and mounts of containerd
node_ip=10.200.0.1
origin_ip=10.200.0.2    # where tests run their origin server; the names in $dir/hosts resolve to it
dns_ip=10.96.0.10

# Go of the Python environment, where scripts/install-deps had to bring its own.
venv=${NEZHA_VENV:-$HOME/.cache/nezha/venv}
[ ! -x "$venv/bin/go" ] || PATH=$venv/bin:$PATH

say() { echo "cluster: $*" >&2; }

# nsenter, not `ip netns exec`: the latter remounts /sys, and the kubelet then finds no cgroups.
in_ns() { nsenter --net=/run/netns/$ns "$@"; }
k() { in_ns "$dir/bin/kubectl" --kubeconfig "$dir/pki/admin.kubeconfig" "$@"; }

# shellcheck source=test/cluster/programs.sh
. "$here/programs.sh"
# shellcheck source=test/cluster/config.sh
. "$here/config.sh"
# shellcheck source=test/cluster/images.sh
. "$here/images.sh"
# shellcheck source=test/cluster/teardown.sh
. "$here/teardown.sh"

start() { # NAME COMMAND...: in the namespace, its output in log/NAME.log, its identity in log/NAME.pid
  local name=$1
  shift
  nsenter --net=/run/netns/$ns setsid "$@" > "$dir/log/$name.log" 2>&1 < /dev/null &
  process_identity $! > "$dir/log/$name.pid"
}

wait_for() { # SECONDS LOG WHAT COMMAND...: until COMMAND succeeds; on failure shows the end of log/LOG.log
  local deadline=$((SECONDS + $1)) log=$2 what=$3
  shift 3
  until "$@" > /dev/null 2>&1; do
    if ((SECONDS >= deadline)); then
      say "$what: not so in time; the end of $dir/log/$log.log:"
      tail -n 25 "$dir/log/$log.log" >&2 || true
      return 1
    fi
    sleep 0.2
  done
}

load() { # IMAGE.tar...
  local archive
  for archive in "$@"; do ctr -a $run/containerd.sock -n k8s.io images import "$archive" > /dev/null; done
}

load_all() { load "$dir"/images/{client,operator,webhook,cache}.tar; }

network() {
  ip netns add $ns
  in_ns ip link set lo up
  in_ns ip link add node0 type bridge # not every kernel has a dummy device
  in_ns ip addr add $node_ip/24 dev node0
  in_ns ip addr add $origin_ip/24 dev node0
  in_ns ip link set node0 up
  in_ns ip route replace default via $node_ip dev node0
  in_ns sysctl -qw net.ipv4.ip_forward=1
}

control_plane() {
  start etcd bin/etcd --data-dir data/etcd --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 \
    --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
  start apiserver bin/kube-apiserver --etcd-servers=http://127.0.0.1:2379 \
    --bind-address=$node_ip --advertise-address=$node_ip --service-cluster-ip-range=10.96.0.0/16 \
    --tls-cert-file=pki/apiserver.crt --tls-private-key-file=pki/apiserver.key --client-ca-file=pki/ca.crt \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file=pki/sa.key --service-account-signing-key-file=pki/sa.key \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    --kubelet-client-certificate=pki/kubelet-client.crt --kubelet-client-key=pki/kubelet-client.key \
    --kubelet-certificate-authority=pki/ca.crt --kubelet-preferred-address-types=InternalIP
  wait_for 120 apiserver "the API server answers" k get --raw /readyz
  start controller-manager bin/kube-controller-manager --kubeconfig=pki/controller-manager.kubeconfig \
    --leader-elect=false --service-account-private-key-file=pki/sa.key --root-ca-file=pki/ca.crt \
    --use-service-account-credentials=true --cluster-signing-cert-file=pki/ca.crt --cluster-signing-key-file=pki/ca.key
  start scheduler bin/kube-scheduler --kubeconfig=pki/scheduler.kubeconfig --leader-elect=false
}

node() {
  wait_for 30 containerd "containerd answers" ctr -a $run/containerd.sock version
  load "$dir/images/pause.tar"
  start kubelet bin/kubelet --config=kubelet.yaml --kubeconfig=pki/node.kubeconfig --hostname-override=node1 \
    --node-ip=$node_ip --root-dir="$dir/data/kubelet" --cert-dir="$dir/data/kubelet-pki"
  start proxy bin/kube-proxy --kubeconfig=pki/proxy.kubeconfig --hostname-override=node1 \
    --cluster-cidr=10.244.0.0/24 --proxy-mode=nftables --conntrack-max-per-core=0
  wait_for 60 controller-manager "the default service account exists" k get serviceaccount default
  wait_for 90 kubelet "the node is ready" k wait --for=condition=Ready node/node1 --timeout=1s
}

dns() { # CoreDNS as a process of the node, behind the Service address that pods have in resolv.conf
  start coredns bin/coredns -conf Corefile
  k apply -f "$here/dns-service.yaml" > /dev/null
  wait_for 60 coredns "CoreDNS is ready" in_ns curl -sf http://$node_ip:8181/ready
}

up() {
  if leftovers; then
    say "clearing what an earlier run left"
    down
  fi
  [ -x "$dir/bin/coredns" ] || build
  [ -f "$dir/images/pause.tar" ] || images pause
  say "starting"
  keys
  config
  cd "$dir"
  network
  start containerd containerd -c "$dir/containerd.toml"
  control_plane
  node
  dns
  say "up: one node, Kubernetes v$kube_version; $0 kubectl get pods -A"
}

status() { [ -e /run/netns/$ns ] && k get --raw /readyz > /dev/null 2>&1 && k get node node1; }

# Makes NAME resolve to ADDRESS for everything that asks the cluster's DNS; CoreDNS rereads the file by itself.
host() {
  grep -v " $1\$" "$dir/hosts" > "$dir/hosts.new" || true
  echo "$2 $1" >> "$dir/hosts.new"
  mv "$dir/hosts.new" "$dir/hosts"
}

case ${1:-} in
  build | up | status | down) "$1" ;;
  load | images | host) "$@" ;;
  load-all) load_all ;;
  kubectl) shift && k "$@" ;;
  helm) shift && KUBECONFIG=$dir/pki/admin.kubeconfig in_ns "$dir/bin/helm" "$@" ;;
  exec) shift && in_ns "$@" ;;
  *) sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}" && exit 2 ;;
esac
