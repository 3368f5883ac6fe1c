"""The data's real server, as far as the cluster can tell: origin_server.py ADDRESS PORT FOLDER [CERTIFICATE KEY]

Serves FOLDER/cifar (169,001,437 bytes) at /~kriz/cifar-100-python.tar.gz and 64 KiB made from the path at any other,
with validators, HEAD and single ranges. Writes FOLDER/access.log, one JSON object per answered request; `bytes` counts
what was written to the socket. /missing/... is a 404. Stays in the foreground.
"""

import hashlib
import http.server
import json
import os
import pathlib
import random
import re
import ssl
import sys
import threading

ARCHIVE = "/~kriz/cifar-100-python.tar.gz"
ARCHIVE_BYTES = 169_001_437
LAST_MODIFIED = "Wed, 08 Apr 2009 17:25:39 GMT"


def make_archive(folder):
    """The same bytes on every machine; made once."""
    path = pathlib.Path(folder) / "cifar"
    if not path.exists() or path.stat().st_size != ARCHIVE_BYTES:
        source, left = random.Random(100), ARCHIVE_BYTES
        with open(path.with_suffix(".new"), "wb") as out:
            while left:
                piece = source.randbytes(min(left, 1 << 20))
                out.write(piece)
                left -= len(piece)
        path.with_suffix(".new").rename(path)
    return path


def small_body(path):
    return random.Random(path).randbytes(64 * 1024)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "origin"
    folder = None
    lock = threading.Lock()

    def do_GET(self):
        self.answer(body=True)

    def do_HEAD(self):
        self.answer(body=False)

    def answer(self, body):
        if self.path.startswith("/missing/"):
            return self.finish(404, {}, b"no such file\n" if body else b"")
        etag = '"' + hashlib.sha256(self.path.encode()).hexdigest()[:16] + '"'
        total = ARCHIVE_BYTES if self.path == ARCHIVE else 64 * 1024
        headers = {"ETag": etag, "Last-Modified": LAST_MODIFIED, "Accept-Ranges": "bytes",
                   "Content-Type": "application/x-gzip"}
        if self.headers.get("If-None-Match") == etag:
            return self.finish(304, headers, None)
        first, last, status = 0, total - 1, 200
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted and int(wanted[1]) < total:
            first, status = int(wanted[1]), 206
            last = min(int(wanted[2] or total - 1), total - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{total}"
        self.begin(status, headers, last - first + 1)
        sent = 0
        try:
            sent = self.write_slice(first, last) if body else 0
        finally:
            self.record(status, sent)

    def write_slice(self, first, last):
        if self.path != ARCHIVE:
            self.wfile.write(small_body(self.path)[first:last + 1])
            return last + 1 - first
        self.wfile.flush()
        sent = 0
        with open(self.folder / "cifar", "rb") as file:
            while sent < last + 1 - first:
                count = os.sendfile(self.connection.fileno(), file.fileno(), first + sent, last + 1 - first - sent)
                if count == 0:
                    break
                sent += count
        return sent

    def begin(self, status, headers, length):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def finish(self, status, headers, body):
        self.begin(status, headers, None if body is None else len(body))
        if body:
            self.wfile.write(body)
        self.record(status, len(body or b""))

    def record(self, status, sent):
        entry = {"method": self.command, "path": self.path, "host": self.headers.get("Host"), "status": status,
                 "range": self.headers.get("Range"), "bytes": sent, "from": self.client_address[0]}
        with self.lock, open(self.folder / "access.log", "a") as log:
            log.write(json.dumps(entry) + "\n")

    def log_message(self, *_):
        pass


def main():
    address, port, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    Handler.folder = folder
    server = http.server.ThreadingHTTPServer((address, port), Handler)
    if len(sys.argv) > 5:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[4], sys.argv[5])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
