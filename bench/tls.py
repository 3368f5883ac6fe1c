"""TLS hits: nezha-cache against nginx with the same certificate and cipher, as requests or bytes per CPU-second."""

import socket
import ssl
import subprocess

from load import warm, wrk
from results import Row
from servers import HOST, Nezha, Nginx

SECONDS = 2
# label -> bytes, connections, unit, figure
SIZES = {
    "4 KiB": (4096, 32, "requests per CPU-second", lambda result: result["requests"] / result["cpu"]),
    "1 MiB": (1024 * 1024, 8, "GB per CPU-second", lambda result: result["bytes"] / result["cpu"] / 1e9),
}


class NezhaTls(Nezha):
    tls_port = 8443

    def prepare(self):
        certificate, key = certificate_in(self.world.work)
        self.extra = f"tls:\n  certificates:\n    - {{certificate: {certificate}, key: {key}}}\n"
        super().prepare()
        file = self.folder / "nezha.yaml"
        terminated = file.read_text().replace(f"hosts: [{HOST}], ", f"hosts: [{HOST}], tls: intercept, ")
        file.write_text(terminated)
        plain = f'listen: {{http: ["127.0.0.1:{self.port}"], '
        file.write_text(file.read_text().replace(plain, plain + f'https: ["127.0.0.1:{self.tls_port}"], '))


class NginxTls(Nginx):
    tls_port = 8444

    def prepare(self):
        certificate, key = certificate_in(self.world.work)
        self.tls = (
            f"listen 127.0.0.1:{self.tls_port} ssl backlog=4096; ssl_certificate {certificate}; "
            f"ssl_certificate_key {key}; ssl_protocols TLSv1.3; ssl_buffer_size 16k; "
            f"ssl_conf_command Ciphersuites {self.world.tls_cipher};"
        )
        super().prepare()


def tls(world, runs):
    _name_host(world)
    nezha = world.start(NezhaTls)
    world.tls_cipher = _cipher(nezha.tls_port)
    if not world.tls_cipher:
        world.stop(nezha)
        row = Row("TLS hits", "requests per CPU-second")
        row.remarks.append("nezha-cache does not answer TLS with the certificate of its configuration.")
        return [row]
    nginx = world.start(NginxTls)
    rows = []
    for label, (size, connections, unit, figure) in SIZES.items():
        row = Row(f"TLS hits of {label}", unit)
        path = f"/o/{size}/tls"
        for server in (nezha, nginx):
            warm(world, server, path)
        for number in range(runs):
            world.say(f"{row.name}, run {number + 1} of {runs}")
            for server in (nezha, nginx):
                row.add(server.name, figure(_run(world, server, path, connections)))
        row.want("nezha over nginx", row.ratio("nezha", "nginx"), 1.2)
        row.remarks.append(f"cipher of both: {world.tls_cipher}")
        rows.append(row)
    world.stop(nezha)
    world.stop(nginx)
    return rows


def _run(world, server, path, connections):
    return wrk(world, server, path, connections, SECONDS, scheme="https", port=server.tls_port, address=HOST)


def _name_host(world):
    """wrk sends as server name what its URL names: the host gets an address, in this run's own mount namespace."""
    hosts = world.work / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {HOST}\n")
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)


def _cipher(port):
    """The cipher that the server chooses; nothing when it does not finish a handshake."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
            with context.wrap_socket(plain, server_hostname=HOST) as secured:
                return secured.cipher()[0]
    except OSError:
        return ""


def certificate_in(folder):
    """A certificate for the benchmark's host and its key, made once per run: ECDSA P-256."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    if not certificate.exists():
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        command += ["-days", "2", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
        subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key
