# The cluster's images, as archives in $dir/images: sourced by cluster.sh, which sets $here and $dir.
#   pause     the sandbox container's, one static program
#   base      localhost/debian:bookworm, what the product's Dockerfiles start from
#   client    localhost/client:test, base with curl, wget and Python: what the tests' jobs run
#   operator  localhost/training-operator:test
#   webhook, cache   localhost/nezha-webhook:test and localhost/nezha-cache:test, from the Dockerfiles of this tree

store() { buildah --root "$dir/storage" --runroot "$dir/storage.run" "$@"; }

images() { # one run at a time; what an interrupted one left is removed first, and no mount stays behind
  local name
  mkdir -p "$dir/images" "$dir/stamp"
  exec 9> "$dir/images.lock"
  flock 9
  store rm --all > /dev/null
  [ $# -gt 0 ] || set -- pause base client operator webhook cache
  for name in "$@"; do "image_$name"; done
  umount "$dir/storage/overlay" 2> /dev/null || true
  exec 9>&-
}

fresh() { # NAME INPUTS: whether images/NAME.tar was made from the same inputs; a changed stamp is written by made()
  stamp=$(printf '%s' "$2" | sha256sum | cut -d' ' -f1)
  [ -f "$dir/images/$1.tar" ] && [ "$(cat "$dir/stamp/image-$1" 2> /dev/null)" = "$stamp" ] && return
  say "building the image $1"
  began=$SECONDS
  return 1
}

made() { # NAME TAG: exports the image
  rm -f "$dir/images/$1.tar"
  store push -q "$2" "oci-archive:$dir/images/$1.tar.new:$2"
  mv "$dir/images/$1.tar.new" "$dir/images/$1.tar"
  echo "$stamp" > "$dir/stamp/image-$1"
  say "built the image $1 in $((SECONDS - began)) s"
}

image_pause() {
  fresh pause "$(cat "$here/pause.c")" && return
  local work
  work=$(mktemp -d)
  gcc -static -Os -o "$work/pause" "$here/pause.c"
  from_scratch localhost/pause:1 "$work/pause" /pause
  rm -r "$work"
  made pause localhost/pause:1
}

image_operator() {
  [ -x "$dir/bin/training-operator" ] || build
  fresh operator "$(cat "$dir/stamp/training-operator")" && return
  from_scratch localhost/training-operator:test "$dir/bin/training-operator" /manager
  made operator localhost/training-operator:test
}

from_scratch() { # TAG PROGRAM PATH: an image with one static program
  local container
  container=$(store from scratch)
  store copy -q "$container" "$2" "$3" > /dev/null
  store config --entrypoint "[\"$3\"]" "$container"
  store commit -q "$container" "$1" > /dev/null
  store rm "$container" > /dev/null
}

debian_sources() { # this machine's Debian mirrors, which may differ from the public ones
  if [ -f /etc/apt/sources.list.d/debian.sources ]; then
    cat /etc/apt/sources.list.d/debian.sources
  elif ! grep -hE '^deb .*https?://.* bookworm' /etc/apt/sources.list 2> /dev/null; then
    printf 'deb http://deb.debian.org/debian bookworm%s main\n' '' -updates
  fi
}

image_base() {
  local sources options=() line
  sources=$(debian_sources)
  while read -r line; do
    options+=("--aptopt=$line") # proxies and the like
  done < <(grep -hsE '^Acquire::' /etc/apt/apt.conf /etc/apt/apt.conf.d/* | sort -u)
  fresh base "$sources ${options[*]}" && return
  rm -f "$dir/images/base-root.tar"
  echo "$sources" > "$dir/images/base.sources"
  mmdebstrap --variant=minbase "${options[@]}" bookworm "$dir/images/base-root.tar" "$dir/images/base.sources" \
    2> "$dir/images/base.log" || { tail -n 20 "$dir/images/base.log" >&2 && return 1; }
  local container
  container=$(store from scratch)
  store add -q "$container" "$dir/images/base-root.tar" / > /dev/null
  store config --cmd '["bash"]' "$container"
  store commit -q "$container" localhost/debian:bookworm > /dev/null
  store rm "$container" > /dev/null
  rm "$dir/images/base-root.tar"
  made base localhost/debian:bookworm
}

bud() { # TAG ARGUMENTS...: builds a Dockerfile; unchanged steps come from earlier builds
  local tag=$1 log
  log=$dir/images/${tag//[\/:]/-}.log
  shift
  # Layers are kept by content; a lasting folder for the compiler cache makes a changed tree cheap too.
  mkdir -p "${CCACHE_DIR:-$HOME/.cache/ccache}"
  store bud --layers --isolation chroot --network host --build-arg BASE=localhost/debian:bookworm --pull-never \
    -v "${CCACHE_DIR:-$HOME/.cache/ccache}:/ccache" -t "$tag" "$@" > "$log" 2>&1 ||
    { tail -n 40 "$log" >&2 && say "building $tag failed; see $log" && return 1; }
}

image_client() {
  image_base
  fresh client "$(cat "$here/Dockerfile.client" "$dir/stamp/image-base")" && return
  bud localhost/client:test -f "$here/Dockerfile.client" "$here"
  made client localhost/client:test
}

image_webhook() { product webhook; }
image_cache() { product cache; }

product() { # NAME
  image_base
  local tag=localhost/nezha-$1:test
  fresh "$1" "$(cat "$dir/stamp/image-base")$(product_inputs "$1")" && return
  bud "$tag" -f "$root/Dockerfile.$1" "$root"
  made "$1" "$tag"
}

product_inputs() { # NAME -> one line per file that goes into the image
  (cd "$root" && cat "Dockerfile.$1" .dockerignore && find CMakeLists.txt cmake include src webhook cache cli \
    scripts/install-deps scripts/build-image-program -type f | LC_ALL=C sort | xargs sha256sum)
}
