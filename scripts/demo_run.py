"""The demo itself, run by scripts/demo inside its namespaces: demo_run.py FOLDER_OF_PROGRAMS WORK_FOLDER DIVISOR

DIVISOR makes the downloads smaller; 1 for the real sizes.
"""

import base64
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time

import demo_screen as screen
from demo_world import ADMIN, CACHE_IP, HERE, MOTO, ORIGIN_IP, S3_IP, WEBHOOK, World, run
from origin import content

DIVISOR = int(sys.argv[3])
LINE_BYTES_PER_SECOND = 10_000_000
WARM_RUNS = 3  # short ones: their median is shown
FILE_HOST, FILE_PATH, FILE_BYTES = "www.cs.toronto.edu", "/~kriz/cifar-100-python.tar.gz", 169_001_437 // DIVISOR
BUCKET, KEY, OBJECT_BYTES = "team-data", "train/shard-000.tar", 96 * 1024 * 1024 // DIVISOR
S3_HOST = "s3.eu-west-1.amazonaws.com"
CONFIGURATION = f"""\
upstreams:
  - name: public-datasets
    hosts: [{FILE_HOST}]
    endpoint: http://{ORIGIN_IP}:80           # this demo has no DNS; without an endpoint the cache resolves the host
    freshness: {{mode: ttl, ttl: 24h}}
  - name: team-s3
    protocol: s3
    hosts: [{S3_HOST}, {BUCKET}.{S3_HOST}]
    endpoint: http://{S3_IP}:80
webhook:
  cacheAddress: {CACHE_IP}
"""


def cache_configuration(work):
    return (
        CONFIGURATION
        + f"""\
listen: {{http: ["{CACHE_IP}:80"], admin: "{ADMIN}"}}
cache:
  memory: 512Mi
  tiers:
    - {{medium: nvme, path: {work}/tier, size: 1Gi}}
"""
    )


def start_far_side(world):
    """The web server and the object store, each behind a line of 10 MB/s. Returns the S3 key for the clients."""
    screen.heading("1. The far side: a web server and an object store, each behind a line of 10 MB/s")
    origin = [
        sys.executable,
        HERE.parent / "test" / "support" / "origin.py",
        "--bytes-per-second",
        LINE_BYTES_PER_SECOND,
    ]
    world.start(
        "origin",
        [
            *origin,
            "--listen",
            f"{ORIGIN_IP}:80",
            "--file",
            f"{FILE_PATH}={FILE_BYTES}",
            "--log",
            world.work / "origin.jsonl",
        ],
        f"{ORIGIN_IP}:80",
    )
    screen.say(f"  http://{FILE_HOST}{FILE_PATH}  {FILE_BYTES:,} bytes")
    host, port = MOTO.split(":")
    world.start(
        "moto", [sys.executable, "-m", "moto.server", "-H", host, "-p", port], MOTO, INITIAL_NO_AUTH_ACTION_COUNT="3"
    )
    world.start("line", [*origin, "--listen", f"{S3_IP}:80", "--relay", MOTO], f"{S3_IP}:80")
    shard = world.work / "shard"
    shard.write_bytes(content(KEY, OBJECT_BYTES))
    keys = json.loads(run(sys.executable, HERE / "demo_s3.py", "put", f"http://{MOTO}", BUCKET, KEY, str(shard)))
    shard.unlink()
    screen.say(f"  s3://{BUCKET}/{KEY}  {OBJECT_BYTES:,} bytes; the store checks the signature of every request")
    return keys


def start_nezha(world):
    world.make_certificates()
    (world.work / "nezha.yaml").write_text(CONFIGURATION)
    (world.work / "cache.yaml").write_text(cache_configuration(world.work))
    (world.work / "tier").mkdir()
    world.start(
        "nezha-webhook",
        [
            world.programs / "nezha-webhook",
            "--config",
            world.work / "nezha.yaml",
            "--certificate",
            world.work / "tls.crt",
            "--key",
            world.work / "tls.key",
            "--listen",
            WEBHOOK,
            "--drain-seconds",
            "0",  # no cluster is told to stop sending
        ],
        WEBHOOK,
    )
    world.start(
        "nezha-cache", [world.programs / "nezha-cache", "--config", world.work / "cache.yaml"], f"{CACHE_IP}:80"
    )
    world.wait_for(f"http://{ADMIN}/readyz")


def rewrite_pod(world):
    """Lets the webhook answer for a TFJob's worker pod. Returns the pod's hosts lines."""
    screen.heading('2. The webhook: a TFJob\'s worker pod, labelled nezha.io/inject: "true", is created')
    review = json.loads((HERE / "demo_review.json").read_text())
    response = world.review(review)["response"]
    if not response["allowed"] or "patch" not in response:
        raise SystemExit(f"demo: the webhook changed nothing: {json.dumps(response)}")
    patch = json.loads(base64.b64decode(response["patch"]))
    screen.say("  The API server applies this JSON patch; nothing else in the pod or the job changes:")
    for line in json.dumps(patch, indent=2).splitlines():
        screen.say("    " + line)
    aliases = [alias for operation in patch for alias in aliases_in(operation)]
    lines = [" ".join([alias["ip"], *alias["hostnames"]]) for alias in aliases]
    if not lines:
        raise SystemExit("demo: the patch has no hostAliases")
    screen.say("  kubelet writes them into the pod's /etc/hosts, and so does this demo into its own:")
    for line in lines:
        screen.say("    " + line)
    return lines


def aliases_in(operation):
    """The hostAliases items that one operation of the patch adds: a list, or one item at the end of the list."""
    if not operation["path"].startswith("/spec/hostAliases"):
        return []
    value = operation["value"]
    return [item for item in (value if isinstance(value, list) else [value]) if "ip" in item]


def timed(label, command, file, size, environment=None):
    """Runs an unmodified client that writes `file`; returns its seconds, or those that it prints."""
    file.unlink(missing_ok=True)
    folder, before = file.parent, time.monotonic()
    with screen.Progress(label, size, lambda: sum(part.stat().st_blocks * 512 for part in folder.iterdir())):
        done = subprocess.run(
            command, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
        )
    seconds = time.monotonic() - before
    if done.returncode:
        raise SystemExit(f"demo: {label} failed:\n{done.stderr[-2000:]}")
    return float(done.stdout) if done.stdout else seconds


def verify(file, wanted):
    with open(file, "rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != wanted:
            raise SystemExit(f"demo: {file} has a wrong checksum")


def measure(world, client, command, size, wanted, hosts, environment=None, ways=("direct", "cold", "warm")):
    """Downloads each way and verifies every time. Returns the seconds by way."""
    file = world.downloads / "file"
    seconds = {}
    for way in ways:
        world.set_hosts(hosts["direct" if way == "direct" else "cache"])
        runs = []
        count = WARM_RUNS if way == "warm" else 1
        for number in range(1, count + 1):
            label = f"{client}, {way}" + (f" {number} of {count}" if count > 1 else "")
            runs.append(timed(label, [*command, str(file)], file, size, environment))
            verify(file, wanted)
        seconds[way] = statistics.median(runs)
        speed = size / 1e6 / seconds[way]
        screen.say(f"  {f'{client}, {way}':<24} {seconds[way]:6.2f} s {speed:8.1f} MB/s  checksum verified")
    file.unlink()
    return seconds


def fetches(world):
    """Complete GETs that the web server has answered."""
    lines = (world.work / "origin.jsonl").read_text().splitlines()
    return sum(1 for line in map(json.loads, lines) if line["method"] == "GET" and line["status"] == 200)


def store_answers(world, status):
    """GETs of the object that the store has answered with this status."""
    lines = (world.work / "moto.log").read_text(errors="replace").splitlines()
    return sum(1 for line in lines if f"GET /{KEY}" in line and line.endswith(f" {status} -"))


def download_all(world, keys, aliases):
    screen.heading("3. Unmodified clients: directly, then cold and warm through the cache")
    hosts = {"direct": [f"{ORIGIN_IP} {FILE_HOST}", f"{S3_IP} {S3_HOST} {BUCKET}.{S3_HOST}"], "cache": aliases}
    url = f"http://{FILE_HOST}{FILE_PATH}"
    file_sum = hashlib.sha256(content(FILE_PATH, FILE_BYTES)).hexdigest()
    object_sum = hashlib.sha256(content(KEY, OBJECT_BYTES)).hexdigest()
    rows = []
    wget = measure(world, "wget", ["wget", "-q", url, "-O"], FILE_BYTES, file_sum, hosts)
    rows.append((f"wget, {FILE_BYTES / 1e6:.0f} MB by HTTP", FILE_BYTES, wget))
    screen.say(
        f"  the web server's own log: {fetches(world)} fetches, one for wget directly and one for the cold cache"
    )
    curl = measure(world, "curl", ["curl", "-sS", "--fail", url, "-o"], FILE_BYTES, file_sum, hosts, ways=("warm",))
    rows.append((f"curl, {FILE_BYTES / 1e6:.0f} MB by HTTP", FILE_BYTES, {**wget, **curl}))
    s3 = measure(
        world,
        "boto3",
        [sys.executable, str(HERE / "demo_s3.py"), "get", BUCKET, KEY],
        OBJECT_BYTES,
        object_sum,
        hosts,
        {**keys, "AWS_EC2_METADATA_DISABLED": "true"},
    )
    screen.say(f"  the store's own log: {store_answers(world, 206)} parts sent, directly and for the cold cache;")
    screen.say(f"  for the warm runs it checked {store_answers(world, 304)} signatures and answered 304: no bytes")
    rows.append((f"boto3, {OBJECT_BYTES / 1e6:.0f} MB from S3", OBJECT_BYTES, s3))
    return rows


def main():
    programs, work = sys.argv[1:3]
    world = World(programs, work)
    world.lay_out()
    try:
        keys = start_far_side(world)
        start_nezha(world)
        rows = download_all(world, keys, rewrite_pod(world))
    finally:
        world.stop()
    screen.heading("The same bytes, checksums verified")
    screen.table(rows)
    screen.say(
        "  Warm is the median of three. curl's direct and cold are wget's; boto3's time is its download_file call."
    )
    screen.heading("Next, on a cluster")
    for line in (HERE / "demo_next.txt").read_text().splitlines():
        screen.say("  " + line)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
