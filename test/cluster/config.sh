# Keys and configuration files of the cluster: sourced by cluster.sh, which sets $dir, $run, $node_ip and $dns_ip.

keys() { # one CA, a certificate and a kubeconfig per component; kept between runs
  [ -f "$dir/pki/sa.key" ] && return
  say "making keys"
  rm -rf "$dir/pki"
  mkdir -p "$dir/pki"
  cd "$dir/pki"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -x509 -keyout ca.key -out ca.crt -days 3650 \
    -subj /CN=test-ca 2> /dev/null
  leaf apiserver /CN=kube-apiserver \
    "IP:127.0.0.1,IP:10.96.0.1,IP:$node_ip,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
  leaf node /O=system:nodes/CN=system:node:node1 "IP:$node_ip,DNS:node1"
  leaf kubelet-client /O=system:masters/CN=apiserver-kubelet
  leaf controller-manager /CN=system:kube-controller-manager
  leaf scheduler /CN=system:kube-scheduler
  leaf proxy /CN=system:kube-proxy
  leaf admin /O=system:masters/CN=admin
  openssl genrsa -out sa.key 2048 2> /dev/null
}

leaf() { # NAME SUBJECT [ALTERNATIVE-NAMES]
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2> /dev/null
  printf 'extendedKeyUsage=serverAuth,clientAuth\n%s\n' "${3:+subjectAltName=$3}" > "$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile "$1.ext" \
    -out "$1.crt" 2> /dev/null
  cat > "$1.kubeconfig" << K
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$node_ip:6443", certificate-authority: $PWD/ca.crt}}]
users: [{name: u, user: {client-certificate: $PWD/$1.crt, client-key: $PWD/$1.key}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
K
}

config() {
  mkdir -p "$dir"/{cni,images,log,data/etcd,data/kubelet} "$run"
  cni_config > "$dir/cni/10-bridge.conflist"
  containerd_config > "$dir/containerd.toml"
  kubelet_config > "$dir/kubelet.yaml"
  corefile > "$dir/Corefile"
  printf '127.0.0.1 localhost\n%s www.cs.toronto.edu\n' "$origin_ip" > "$dir/hosts"
}

cni_config() {
  cat << E
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$dir/data/cni", "ranges": [[{"subnet": "10.244.0.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
E
}

containerd_config() {
  # enable_unprivileged_ports stays false: stricter than many clusters, so that ports below 1024 without root are
  # really tested. Network namespaces live under the state directory, where `down` finds them.
  cat << E
version = 2
root = "$dir/data/containerd"
state = "$run/containerd"
[grpc]
  address = "$run/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  enable_unprivileged_ports = false
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$dir/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$(command -v runc || echo /usr/sbin/runc)"
        SystemdCgroup = false
E
}

kubelet_config() {
  cat << E
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node_ip
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $dir/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $dir/pki/node.crt
tlsPrivateKeyFile: $dir/pki/node.key
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
containerRuntimeEndpoint: unix://$run/containerd.sock
clusterDNS: [$dns_ip]
clusterDomain: cluster.local
resolvConf: ""
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
maxPods: 60
E
}

corefile() { # every name outside the cluster and the hosts file is NXDOMAIN: no test reaches beyond the namespace
  cat << E
.:53 {
  bind $node_ip
  errors
  ready $node_ip:8181
  hosts $dir/hosts {
    reload 500ms
    ttl 2
    fallthrough
  }
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $dir/pki/admin.kubeconfig
    ttl 2
  }
  template ANY ANY . {
    rcode NXDOMAIN
  }
}
E
}
