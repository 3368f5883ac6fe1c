# Ending the cluster: sourced by cluster.sh, which sets $dir, $run and $ns.
# A process is known by its number and its start time, so that a reused number is never signalled.

process_identity() { # PID -> "PID START-TIME", or nothing when it is gone
  local stat
  stat=$(cat "/proc/$1/stat" 2> /dev/null) || return 0
  stat=${stat##*) }
  # shellcheck disable=SC2086
  set -- "$1" $stat
  echo "$1 ${21}"
}

still_runs() { [ -n "$1" ] && [ "$(process_identity "${1% *}")" = "$1" ]; }

leftovers() { [ -e /run/netns/$ns ] || [ -d $run ] || compgen -G "$dir/log/*.pid" > /dev/null; }

end_processes() { # FILE...: SIGTERM to each, SIGKILL to those that stay
  local file id deadline=$((SECONDS + 10))
  for file in "$@"; do
    id=$(cat "$file")
    still_runs "$id" && kill "${id% *}" 2> /dev/null || true
  done
  for file in "$@"; do
    id=$(cat "$file")
    while still_runs "$id" && ((SECONDS < deadline)); do sleep 0.1; done
    still_runs "$id" && kill -9 "${id% *}" 2> /dev/null || true
    rm -f "$file"
  done
}

shims() { # the processes of our containerd that each hold one pod
  local ours p
  ours="^[^ ]*containerd-shim-runc-v2 .*-address $run/containerd.sock"
  for p in /proc/[0-9]*; do
    { tr '\0' ' ' < "$p/cmdline"; } 2> /dev/null | grep -q "$ours" && echo "${p#/proc/}"
  done
  true
}

end_pods() { # each shim's children are the first processes of containers: with them ends all that they started
  local shim child
  for shim in $(shims); do
    for child in $(cat "/proc/$shim/task/"*/children 2> /dev/null); do kill -9 "$child" 2> /dev/null || true; done
    kill -9 "$shim" 2> /dev/null || true
  done
}

unmount_all() {
  awk -v a="$dir/data/" -v b="$run/" 'index($2, a) == 1 || index($2, b) == 1 {print $2}' /proc/mounts | sort -r |
    while read -r m; do umount -l "$m" 2> /dev/null || true; done
}

down() {
  local files=()
  say "ending"
  # The kubelet first, so that it restarts nothing; containerd last.
  mapfile -t files < <(ls -1 \
    "$dir"/log/{kubelet,proxy,coredns,scheduler,controller-manager,apiserver,etcd,containerd}.pid 2> /dev/null)
  [ ${#files[@]} -eq 0 ] || end_processes "${files[@]}"
  end_pods
  unmount_all
  ip netns del $ns 2> /dev/null || true
  local tries=0
  until rm -rf "$dir/data" $run 2> /dev/null || ((++tries > 20)); do
    unmount_all
    sleep 0.2
  done
  find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2> /dev/null || true
}
