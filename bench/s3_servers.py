"""What the S3 rows run: versitygw, which verifies every signature, a long line to it, and the cache in front of both.

All are reached by one host name on port 80, so that a client's command and signature are the same either way; a Way's
/etc/hosts says which it is.
"""

import os
import socket
import subprocess
from pathlib import Path

from processes import Process
from servers import Nezha, Server

HOST, REGION, BUCKET = "s3.bench.example", "eu-west-1", "bench"
KEY_ID, SECRET = "AKIANEZHABENCH000001", "bench-secret-7d6c5b4a39281706f5e4d3c2b1a09f8e"
STORE_PORT = 7070
INSTALLED = Path(os.environ.get("NEZHA_CLIENTS", Path.home() / ".cache/nezha/clients"))
VENV = Path(os.environ.get("NEZHA_VENV", Path.home() / ".cache/nezha/venv"))
HERE = Path(__file__).resolve().parent
DELAY_US = 10_000  # one way
GIGABIT = 1_000_000_000


class Store(Server):
    name, port = "versitygw", STORE_PORT
    environment = {"ROOT_ACCESS_KEY": KEY_ID, "ROOT_SECRET_KEY": SECRET, "GOGC": "400"}

    def prepare(self):
        (self.cache / BUCKET).mkdir()

    def command(self):
        options = ["--port", f"127.0.0.1:{self.port}", "--region", REGION, "--quiet", "--keep-alive"]
        return [INSTALLED / "bin/versitygw", *options, "posix", self.cache]


class Line(Server):
    """A round trip and rates, in bits per second, between everybody and the store."""

    name, port, caches = "line", 80, False

    connection_bits = 0

    def start(self, cpus=None, empty=True, connection_bits=0):
        self.connection_bits = connection_bits
        super().start(cpus, empty)

    def bytes(self):
        """What it passed on so far, in both directions."""
        account = Path(f"/proc/{self.process.pid}/io").read_text(encoding="ascii")
        return int(account.split("wchar:")[1].split()[0])

    def command(self):
        options = {"port": self.port, "upstream": STORE_PORT, "delay-us": DELAY_US}
        options |= {"total-bits": GIGABIT, "connection-bits": self.connection_bits}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return [self.world.programs / "bench/bench_delay_line", *words]


class NezhaS3(Nezha):
    """Without keys: the store is asked each time, with the client's own signature."""

    port, ip = 80, "127.0.0.2"
    freshness = "{mode: revalidate}"
    reference = ""

    def prepare(self):
        (self.folder / "nezha.yaml").write_text(
            f"upstreams:\n"
            f"  - {{name: bench, protocol: s3, hosts: [{HOST}], endpoint: 'http://127.0.0.1:{Line.port}',\n"
            f"     freshness: {self.freshness}{self.reference}}}\n"
            f'listen: {{http: ["{self.ip}:{self.port}"], admin: "127.0.0.1:{self.admin_port}"}}\n'
            f"cache:\n  memory: 2Gi\n  tiers:\n" + self.tiers.format(cache=self.cache, size="8Gi") + self.extra
        )

    def ready(self):
        try:
            socket.create_connection((self.ip, self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def refusal(self):
        """What the cache says against its configuration; nothing when it takes it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.prepare()
        done = subprocess.run([*map(str, self.command()), "--check"], capture_output=True, text=True, check=False)
        return (done.stdout + done.stderr).strip() if done.returncode else ""


class NezhaKeys(NezhaS3):
    """With the keys of the one who reads."""

    name, ip, admin_port = "nezha, known keys", "127.0.0.3", 8014
    freshness = "{ttl: 1h}"
    reference = ", credentialsSecretRef: {name: bench}"

    def __init__(self, world):
        super().__init__(world)
        self.folder = world.work / "nezha-keys"
        self.cache = self.folder / "cache"

    def prepare(self):
        secret = self.folder / "secrets/bench"
        secret.mkdir(parents=True, exist_ok=True)
        (secret / "accessKeyId").write_text(KEY_ID)
        (secret / "secretAccessKey").write_text(SECRET)
        self.extra = f"  credentialsDirectory: {secret.parent}\n"
        super().prepare()


class Way:
    """Where clients run, told by /etc/hosts where the store is: directly behind the line, or at a cache."""

    def __init__(self, world, name, ip):
        self.world, self.name, self.ip = world, name, ip
        self._hosts = world.work / f"hosts.{ip}"
        self._hosts.write_text(f"127.0.0.1 localhost\n{ip} {HOST}\n")

    def run(self, command, seconds_max=900, **options):
        """What it wrote to its standard output."""
        log = self.world.work / "s3-client.txt"
        with open(log, "wb") as errors:
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', self._hosts]
                + [str(word) for word in command],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                check=False,
                timeout=seconds_max,
                env={**os.environ, **client_environment(self.world)},
                **options,
            )
        if done.returncode:
            said = log.read_text(errors="replace")[-2000:] + done.stdout[-500:]
            raise SystemExit(f"bench: {self.name}: {' '.join(map(str, command))}: {said}")
        return done.stdout


def client_environment(world):
    return {
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": str(world.work),
    }


def s5cmd(*words, endpoint=f"http://{HOST}"):
    return [INSTALLED / "bin/s5cmd", "--log", "error", "--retry-count", "0", "--endpoint-url", endpoint, *words]


def reader(*words):
    return [VENV / "bin/python", HERE / "s3_reader.py", f"http://{HOST}", BUCKET, *words]


def lacking():
    """The programs that are not installed."""
    needed = [INSTALLED / "bin/versitygw", INSTALLED / "bin/s5cmd", VENV / "bin/python"]
    return [str(path) for path in needed if not path.exists()]


def upload(world, folder):
    """Puts the files of a folder into the bucket, past the line."""
    log = world.work / "s3-upload.txt"
    command = s5cmd("cp", f"{folder}/", f"s3://{BUCKET}/", endpoint=f"http://127.0.0.1:{STORE_PORT}")
    process = Process("s5cmd", command, log, environment=client_environment(world))
    process.wait()
    if log.read_text(errors="replace").strip():
        raise SystemExit(f"bench: the objects of the S3 rows could not be stored: {log.read_text()[-2000:]}")
