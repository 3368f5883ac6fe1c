"""The servers that are compared: how each is configured, started, and what of it outlives its process.

Their configuration is in peers/, with the reasons; words between @ signs are filled in here.
"""

import os
import resource
import shutil
import socket
import subprocess
import time
from pathlib import Path

from processes import Process

HERE = Path(__file__).resolve().parent
ORIGIN_PORT = 8000
HOST = "bench.test"
START_SECONDS_MAX = 60


class Server:
    """One server on 127.0.0.1. `folder` holds its configuration and, in `cache`, what it stores."""

    port = 0
    caches = True  # it stores what it fetched
    survives = False  # what is stored outlives the process
    environment = None

    def __init__(self, world):
        self.world, self.folder, self.process = world, world.work / self.name, None
        self.cache = self.folder / "cache"

    def prepare(self):
        """Writes the configuration into an empty folder."""

    def command(self):
        raise NotImplementedError

    def start(self, cpus=None, empty=True):
        """Starts it and waits until it accepts; `empty` forgets what an earlier process stored."""
        if empty:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.cache.mkdir(parents=True)
            self.prepare()
        self.spawn(cpus)
        log = self.folder / "output.txt"
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self.ready():
            if not self.process.running() or time.monotonic() > deadline:
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
                raise SystemExit(f"bench: {self.name} did not start; its last lines:\n{tail}")
            time.sleep(0.001)

    def spawn(self, cpus=None):
        log = self.folder / "output.txt"
        self.process = Process(self.name, self.command(), log, cpus or self.world.server_cpus, self.environment)

    def ready(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def stop(self):
        if self.process:
            self.process.stop()
            self.process = None

    def kill(self):
        self.process.kill()
        self.process = None

    def forget_pages(self):
        """Drops what it stored from the page cache, also what the running process maps. Nothing else is disturbed."""
        if self.process:
            self.process.page_out(str(self.cache))
        for path in self.cache.rglob("*"):
            if path.is_file():
                with open(path, "rb") as file:
                    os.fdatasync(file.fileno())
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def fill_in(self, template, target, **words):
        text = (HERE / "peers" / template).read_text()
        for word, value in {"WORK": self.folder, "PORT": self.port, "ORIGIN": ORIGIN_PORT, **words}.items():
            text = text.replace(f"@{word}@", str(value))
        target.write_text(text)


class Nezha(Server):
    name, port, survives = "nezha", 8010, True
    admin_port = 8011
    tiers = "    - {{medium: nvme, path: {cache}, size: {size}}}\n"
    extra = ""

    def prepare(self):
        (self.folder / "nezha.yaml").write_text(
            f"upstreams:\n"
            f"  - {{name: bench, hosts: [{HOST}], endpoint: 'http://127.0.0.1:{ORIGIN_PORT}'}}\n"
            f'listen: {{http: ["127.0.0.1:{self.port}"], admin: "127.0.0.1:{self.admin_port}"}}\n'
            f"cache:\n  memory: 2Gi\n  tiers:\n" + self.tiers.format(cache=self.cache, size="8Gi") + self.extra
        )

    def command(self):
        threads = 1 if len(self.world.server_cpus) == 1 else 2
        return [
            self.world.programs / "nezha-cache",
            *("--config", self.folder / "nezha.yaml"),
            *("--threads", threads, "--log-level", "warning", "--drain-seconds", 1),
        ]


class NezhaPmem(Nezha):
    """Persistent memory stood in for by a tmpfs, which libpmem is told to take for it."""

    name, port, admin_port = "nezha-pmem", 8012, 8013
    tiers = "    - {{medium: pmem, path: {cache}, size: {size}}}\n"
    environment = {"PMEM_IS_PMEM_FORCE": "1"}

    def prepare(self):
        self.cache.rmdir()
        self.cache.symlink_to(self.world.memory_folder(self.name))
        super().prepare()


class Nginx(Server):
    name, port, survives = "nginx", 8020, True
    aio = ""
    tls = ""

    def prepare(self):
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        words = {"FILES": files, "OPEN_FILES": min(100_000, files // 2), "AIO": self.aio, "TLS": self.tls}
        self.fill_in("nginx.conf", self.folder / "nginx.conf", SIZE="8g", **words)

    def command(self):
        return ["nginx", "-p", self.folder, "-c", self.folder / "nginx.conf"]


class NginxThreads(Nginx):
    """Reads files in threads, so that a cold one does not stop the loop; each hit then pays for the hand-over."""

    name, port = "nginx-aio", 8021
    aio = "aio threads;"


class Varnish(Server):
    name, port = "varnish", 8030
    silent = (
        "-Begin,-End,-Link,-ReqStart,-ReqMethod,-ReqURL,-ReqProtocol,-ReqHeader,-ReqUnset,-ReqAcct,-RespProtocol,"
        "-RespStatus,-RespReason,-RespHeader,-RespUnset,-Timestamp,-VCL_call,-VCL_return,-Hit,-SessOpen,-SessClose"
    )

    def prepare(self):
        self.fill_in("default.vcl", self.folder / "default.vcl")

    def command(self):
        return [
            *("varnishd", "-F", "-j", "none", "-n", self.folder / "run", "-f", self.folder / "default.vcl"),
            *("-a", f"127.0.0.1:{self.port}", "-s", "malloc,6G"),
            *("-p", "thread_pools=1"),  # the server has one core
            *("-p", "thread_pool_min=150"),  # a thread per busy connection is there before the load comes
            *("-p", "timeout_idle=300"),  # clients stay connected
            *("-p", "listen_depth=4096"),
            *("-p", f"vsl_mask={self.silent}"),  # nobody here reads its log
        ]


class TrafficServer(Server):
    name, port, survives = "ats", 8040, True

    def prepare(self):
        for folder in ("etc", "log", "run"):
            (self.folder / folder).mkdir()
        (self.folder / "resolv.conf").write_text("")
        for file in sorted((HERE / "peers" / "ats").iterdir()):
            target = self.folder / ("runroot.yaml" if file.name == "runroot.yaml" else f"etc/{file.name}")
            self.fill_in(f"ats/{file.name}", target, SIZE="8G")
        for file in ("ip_allow.yaml", "logging.yaml"):
            shutil.copy(f"/etc/trafficserver/{file}", self.folder / "etc")
        self.environment = {"TS_RUNROOT": str(self.folder)}

    def command(self):
        return ["traffic_server"]

    def ready(self):
        """It accepts before its cache is open, and fetches everything until then."""
        log = self.folder / "log" / "diags.log"
        return super().ready() and log.exists() and "fully initialized" in log.read_text(errors="replace")

    def start(self, cpus=None, empty=True):
        (self.folder / "log" / "diags.log").unlink(missing_ok=True)
        super().start(cpus, empty)


class Bare(Server):
    name, port = "bare", 8002
    sizes = (1024, 4096, 100 * 1024, 1024 * 1024, 64 * 1024 * 1024)

    def command(self):
        sizes = [word for size in self.sizes for word in ("--size", size)]
        reader = min(self.world.client_cpus)
        program = self.world.programs / "bench/bench_bare_server"
        return [program, "--port", self.port, "--reader-cpu", reader, "--folder", self.cache, *sizes]

    def ways(self):
        """What it said about the sizes: which way of sending costs less here."""
        return [line for line in (self.folder / "output.txt").read_text().splitlines() if "writev" in line]


class Relay(Server):
    name, port, caches = "relay", 8001, False

    def command(self):
        program = self.world.programs / "bench/bench_byte_relay"
        return [program, "--port", self.port, "--upstream", ORIGIN_PORT]


class Direct(Server):
    """The origin itself, without anything in between."""

    name, port, caches = "direct", ORIGIN_PORT, False

    def start(self, cpus=None, empty=True):
        pass

    def stop(self):
        pass


class Origin(Server):
    name, port = "origin", ORIGIN_PORT

    def command(self):
        return [self.world.programs / "bench/bench_origin", "--port", self.port]


def version(command):
    """The first line that a program says about its version."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()[0].strip()
