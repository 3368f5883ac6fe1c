"""Two ways to the same names: `direct`, where they are addresses of servers, and `cached`, where they are the cache's.

Both ways are mount namespaces with an /etc/hosts of their own in one network namespace, so that a client is given the
very same command, environment and endpoint either way. Every process ends with the one that made the world.
"""

import os
import socket
import subprocess
import time
from pathlib import Path

CACHE_IP = "10.88.0.1"
ADMIN = f"{CACHE_IP}:9180"
ADDRESSES = [f"10.88.0.{number}" for number in range(1, 16)]
START_SECONDS_MAX = 120

ENTER = """\
for address in $ADDRESSES; do ip address add $address/32 dev lo; done
mount --bind "$HOSTS" /etc/hosts
echo ready
exec sleep infinity
"""
WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"]


class Way:
    """A place to run programs in. Not for use by several threads at once."""

    def __init__(self, name, hosts, network_of=None):
        self.name = name
        self._hosts = hosts
        if network_of:
            enter, prepare = ["nsenter", f"--net=/proc/{network_of.pid}/ns/net", "unshare", "--mount"], ""
        else:
            enter, prepare = ["unshare", "--net", "--mount"], "ip link set lo up\n"
        hosts.touch()
        self._holder = subprocess.Popen(
            [*WITH_PARENT, *enter, "sh", "-euc", prepare + ENTER],
            env={**os.environ, "HOSTS": str(hosts), "ADDRESSES": "" if network_of else " ".join(ADDRESSES)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        self.pid = self._holder.pid
        if self._holder.stdout.readline() != b"ready\n":
            raise RuntimeError("namespaces could not be made; they need root, and the commands ip, mount and setpriv")

    def names(self, table):
        """{name: address} as kubelet writes it, with the machine's own name, which Java asks for."""
        own = f"127.0.0.1 localhost {socket.gethostname()}\n"
        self._hosts.write_text(own + "".join(f"{ip} {name}\n" for name, ip in table.items()))

    def start(self, command, **options):
        enter = ["nsenter", f"--target={self.pid}", "--net", "--mount", "--"]
        return subprocess.Popen([*WITH_PARENT, *enter, *map(str, command)], **options)

    def run(self, command, **options):
        process = self.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
        said, _ = process.communicate(timeout=300)
        if process.returncode:
            raise RuntimeError(f"{command} ended with {process.returncode}:\n{said[-3000:]}")
        return said

    def end(self):
        self._holder.kill()
        self._holder.wait()


class World:
    """Both ways, the processes between them, and a log file for each."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.direct = Way("direct", self.folder / "hosts.direct")
        self.cached = Way("cached", self.folder / "hosts.cached", network_of=self.direct)
        self._running = {}

    def names(self, direct):
        """{name: address}: directly there, and the same names at the cache's address."""
        self.direct.names(direct)
        self.cached.names(dict.fromkeys(direct, CACHE_IP))

    def start(self, name, command, listening, **environment):
        """Starts a process that everybody reaches, and waits until it accepts connections at `listening`."""
        self.start_unawaited(name, command, **environment)
        self.await_listening(name, listening)

    def start_unawaited(self, name, command, **environment):
        with open(self.folder / f"{name}.log", "ab") as log:
            self._running[name] = self.direct.start(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, **environment}
            )
        return self._running[name]

    def await_listening(self, name, address):
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self.accepts(address):
            if self._running[name].poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} did not start; its last lines:\n{self.log(name)[-3000:]}")
            time.sleep(0.05)

    def accepts(self, address):
        host, port = address.rsplit(":", 1)
        probe = f"import socket; socket.create_connection(({host!r}, {port}), 5)"
        return self.direct.start(["python3", "-c", probe], stderr=subprocess.DEVNULL).wait() == 0

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def stop(self, name):
        process = self._running.pop(name)
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def end(self):
        for name in reversed(list(self._running)):
            self.stop(name)
        self.cached.end()
        self.direct.end()
