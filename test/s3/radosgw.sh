#!/bin/bash
# Runs Ceph's radosgw with a monitor and one store in memory: radosgw.sh FOLDER ADDRESS:PORT MONITOR-PORT HOST REGION
# HOST is its name for virtual-hosted requests. Everything ends with this process. Needs Debian's radosgw, ceph-mon and
# ceph-osd. radosgw-admin finds it by `-c FOLDER/ceph.conf`.
set -euo pipefail
folder=$1 address=$2 monitor="[v1:127.0.0.1:$3]" host=$4 region=$5
fsid=$(cat /proc/sys/kernel/random/uuid)
rm -rf "$folder"
mkdir -p "$folder/mon" "$folder/osd"
cd "$folder"
cat > ceph.conf << END
[global]
fsid = $fsid
mon host = $monitor
mon initial members = a
auth cluster required = none
auth service required = none
auth client required = none
public addr = 127.0.0.1
cluster addr = 127.0.0.1
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd crush chooseleaf type = 0
mon allow pool size one = true
osd objectstore = memstore
memstore device bytes = 4294967296
mon data = $folder/mon
osd data = $folder/osd
keyring = $folder/keyring
log file = $folder/\$name.log
pid file =
admin socket =
run dir = $folder
[client.rgw]
rgw frontends = beast endpoint=$address
rgw dns name = $host
END
ceph-authtool --create-keyring keyring --gen-key -n mon. --cap mon 'allow *' > /dev/null
monmaptool --create --addv a "$monitor" --fsid "$fsid" monmap > /dev/null
ceph-mon -c ceph.conf --mkfs -i a --monmap monmap --keyring keyring
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
trap 'exit 0' TERM INT
setpriv --pdeathsig KILL ceph-mon -f -c ceph.conf -i a &
timeout 60 ceph -c ceph.conf osd create > /dev/null
ceph-osd -c ceph.conf -i 0 --mkfs --osd-uuid "$(cat /proc/sys/kernel/random/uuid)"
timeout 60 ceph -c ceph.conf osd crush add osd.0 1 root=default host=localhost
setpriv --pdeathsig KILL ceph-osd -f -c ceph.conf -i 0 &
# The region that clients name when they make buckets.
radosgw-admin -c ceph.conf realm create --rgw-realm=tests --default > /dev/null
radosgw-admin -c ceph.conf zonegroup create --rgw-zonegroup=tests --api-name="$region" --default --master > /dev/null
radosgw-admin -c ceph.conf zone create --rgw-zonegroup=tests --rgw-zone=tests --default --master > /dev/null
radosgw-admin -c ceph.conf period update --commit > /dev/null
setpriv --pdeathsig KILL radosgw -f -c ceph.conf -n client.rgw &
wait -n
