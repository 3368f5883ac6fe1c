#!/bin/bash
# Installs S3 clients and servers for the benchmark or for test/s3: install.sh bench | light | heavy. Quick when
# everything is there.
# Each Python client has an environment of its own, because they want different versions of the same libraries; the
# programs in Go are built from their modules, which Go checks against its public checksum database.
# Heavy are those of some gigabytes, which `make test-clients` alone runs; those that need PyTorch share it.
# NEZHA_CLIENTS (default: ~/.cache/nezha/clients) holds them. Needs python3-venv and Go: `scripts/install-deps test`;
# for the heavy ones Java too: `scripts/install-deps clients`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${NEZHA_CLIENTS:-$HOME/.cache/nezha/clients}
venv=${NEZHA_VENV:-$HOME/.cache/nezha/venv}
[ ! -x "$venv/bin/go" ] || PATH=$venv/bin:$PATH

versitygw=github.com/versity/versitygw/cmd/versitygw@v1.8.0
pyspark=pyspark==4.3.0

say() { echo "s3 clients: $*" >&2; }

once() { # NAME INPUTS COMMAND...: runs COMMAND unless NAME was made from the same INPUTS
  local name=$1 stamp=$dir/stamp/$1
  local inputs=$2
  shift 2
  [ "$(cat "$stamp" 2> /dev/null)" = "$inputs" ] && return
  say "installing $name"
  local began=$SECONDS
  rm -f "$stamp"
  "$@"
  printf '%s' "$inputs" > "$stamp"
  say "installed $name in $((SECONDS - began)) s"
}

environment() { # NAME PACKAGE==VERSION...
  local name=$1
  shift
  once "$name" "$*" environment_anew "$name" "$@"
}

environment_anew() {
  local folder=$dir/$1
  shift
  rm -rf "$folder"
  /usr/bin/python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check "$@"
}

go_install() { (cd / && GOBIN=$dir/bin CGO_ENABLED=0 go install -trimpath -ldflags '-s -w' "$1"); }

go_build() { (cd "$here/$1" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w ${2:-}" -o "$dir/bin/$1" .); }

module_of() { cat "$here/$1/go.mod" "$here/$1/main.go"; }

bench() { # what the benchmark needs of them
  once versitygw "$versitygw" go_install "$versitygw"
  once s5cmd "$(module_of s5cmd)" go_build s5cmd "-X github.com/peak/s5cmd/v2/version.Version=v2.3.0"
}

light() {
  bench
  once rclone "$(module_of rclone)" go_build rclone
  environment awscli awscli==1.46.3
  environment s3fs s3fs==2026.9.0 aiobotocore==3.10.0
  environment pyarrow pyarrow==26.0.1
}

spark_anew() { # PACKAGE: and the S3A of its Hadoop from Maven Central, by the Ivy that Spark brings
  environment_anew spark "$1"
  local jars hadoop
  jars=$(echo "$dir"/spark/lib/python3*/site-packages/pyspark/jars)
  hadoop=$(basename "$jars"/hadoop-client-api-*.jar .jar)
  java -jar "$jars"/ivy-*.jar -warn -cache "$dir/ivy" -confs default \
    -dependency org.apache.hadoop hadoop-aws "${hadoop##*-}" -retrieve "$jars/[artifact]-[revision].[ext]" \
    > "$dir/ivy.log"
  rm -rf "$dir/ivy"
}

heavy() {
  light
  once spark "$pyspark" spark_anew "$pyspark"
  environment torch torch==2.15.0 s3torchconnector==1.5.0 mosaicml-streaming==0.13.0 webdataset==1.0.2
}

mkdir -p "$dir/bin" "$dir/stamp"
exec 8> "$dir/lock"
flock 8 # two runs at once install once
export GOTOOLCHAIN=local GOFLAGS=-buildvcs=false
case ${1:-} in
  bench | light | heavy) "$1" ;;
  *) sed -n '2,8s/^# //p' "${BASH_SOURCE[0]}" && exit 2 ;;
esac
