"""The demo's little world, inside namespaces of its own: addresses, a hosts file, certificates, processes."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "test" / "support"))

CACHE_IP = "10.77.0.1"  # stands for the ClusterIP of the cache's Service
ORIGIN_IP = "10.77.0.2"  # stands for the far web server
S3_IP = "10.77.0.3"  # stands for the far object store
MOTO = "127.0.0.1:5000"
WEBHOOK = "127.0.0.1:8443"
WEBHOOK_NAME = "nezha-webhook.nezha-system.svc"
ADMIN = "127.0.0.1:9180"
START_SECONDS_MAX = 60


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


class World:
    def __init__(self, programs, work):
        self.programs, self.work = Path(programs), Path(work)
        self.downloads = self.work / "downloads"
        self._hosts = self.work / "hosts"
        self._running = []

    def lay_out(self):
        """Addresses on the loopback interface, a hosts file that only this demo sees, memory for the downloads."""
        run("ip", "link", "set", "lo", "up")
        for ip in (CACHE_IP, ORIGIN_IP, S3_IP):
            run("ip", "address", "add", f"{ip}/32", "dev", "lo")
        run("mount", "--make-rprivate", "/")
        self._hosts.write_text("127.0.0.1 localhost\n")
        run("mount", "--bind", str(self._hosts), "/etc/hosts")
        self.downloads.mkdir()
        run("mount", "-t", "tmpfs", "nezha-demo", str(self.downloads))

    def set_hosts(self, lines):
        """As kubelet writes a pod's /etc/hosts: one line per address."""
        self._hosts.write_text("".join(["127.0.0.1 localhost\n", *(line + "\n" for line in lines)]))

    def start(self, name, command, listening, **environment):
        """Starts a process and waits until it accepts connections at `listening`."""
        log = open(self.work / f"{name}.log", "w", encoding="utf-8")
        process = subprocess.Popen(
            [str(part) for part in command], stdout=log, stderr=log, env={**os.environ, **environment}
        )
        self._running.append(process)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not accepts(listening):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"demo: {name} did not start; its last lines:\n{self.tail(name)}")
            time.sleep(0.05)

    def tail(self, name):
        return "\n".join((self.work / f"{name}.log").read_text(errors="replace").splitlines()[-15:])

    def stop(self):
        for process in reversed(self._running):
            process.terminate()
        for process in self._running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def make_certificates(self):
        """A CA and a leaf for the webhook's Service name, as the controller keeps them in a cluster."""
        folder = self.work
        run(
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=nezha demo CA",
            "-keyout",
            f"{folder}/ca.key",
            "-out",
            f"{folder}/ca.crt",
        )
        run(
            "openssl",
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            f"/CN={WEBHOOK_NAME}",
            "-addext",
            f"subjectAltName=DNS:{WEBHOOK_NAME}",
            "-keyout",
            f"{folder}/tls.key",
            "-out",
            f"{folder}/tls.csr",
        )
        run(
            "openssl",
            "x509",
            "-req",
            "-in",
            f"{folder}/tls.csr",
            "-CA",
            f"{folder}/ca.crt",
            "-CAkey",
            f"{folder}/ca.key",
            "-CAcreateserial",
            "-copy_extensions",
            "copy",
            "-days",
            "2",
            "-out",
            f"{folder}/tls.crt",
        )

    def review(self, review):
        """Sends an AdmissionReview as the API server does, and returns the answer."""
        file = self.work / "review.json"
        file.write_text(json.dumps(review))
        return json.loads(
            run(
                "curl",
                "-sS",
                "--fail-with-body",
                "--cacert",
                f"{self.work}/ca.crt",
                "--connect-to",
                f"{WEBHOOK_NAME}:443:{WEBHOOK}",
                "-H",
                "Content-Type: application/json",
                "--data-binary",
                f"@{file}",
                f"https://{WEBHOOK_NAME}/mutate?timeout=5s",
            )
        )

    def wait_for(self, url):
        deadline = time.monotonic() + START_SECONDS_MAX
        while subprocess.run(["curl", "-sf", "-o", "/dev/null", url], check=False).returncode:
            if time.monotonic() > deadline:
                raise SystemExit(f"demo: {url} did not answer")
            time.sleep(0.05)


def accepts(address):
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True
