#!/usr/bin/env python3
"""An origin server for the demo and the tests: files of deterministic bytes behind a line of limited speed.

    origin.py --listen 127.0.0.1:8000 --file /~kriz/cifar-100-python.tar.gz=169001437 --bytes-per-second 10000000
    origin.py --listen 127.0.0.1:8001 --relay 127.0.0.1:5000 --bytes-per-second 10000000

`--file PATH=SIZE` (repeatable) serves SIZE bytes that depend on PATH alone, see content(). GET and HEAD, one Range,
If-None-Match and If-Modified-Since are answered; a strong ETag and a Last-Modified are sent. `--relay HOST:PORT`
passes every connection on instead, at the same speed. `--log FILE` gets one JSON line per finished request:
{"host", "method", "path", "range", "status", "bytes", "complete"}; "bytes" counts the body bytes handed to the
connection. All connections of one process share the line. Port 0 takes any free one; "serving on IP:PORT" is printed
once files are served. Standard library only. Ends on SIGTERM.
"""

import argparse
import email.utils
import hashlib
import json
import re
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 64 * 1024
LAST_MODIFIED = 1_262_304_000  # 2010-01-01, any fixed time in the past


def content(path, size):
    """The bytes of the file at `path`."""
    return hashlib.shake_128(path.encode()).digest(size)


class Line:
    """A token bucket shared by all connections; None is a line without a limit."""

    def __init__(self, bytes_per_second):
        self._rate = bytes_per_second
        self._lock = threading.Lock()
        self._free_at = time.monotonic()

    def take(self, count):
        """Waits until `count` more bytes may pass."""
        if not self._rate:
            return
        with self._lock:
            now = time.monotonic()
            self._free_at = max(self._free_at, now - PIECE / self._rate) + count / self._rate
            wait = self._free_at - now
        if wait > 0:
            time.sleep(wait)


class Log:
    def __init__(self, path):
        self._file = open(path, "a", encoding="utf-8", buffering=1) if path else None
        self._lock = threading.Lock()

    def write(self, **fields):
        if self._file:
            with self._lock:
                self._file.write(json.dumps(fields) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    files: dict = {}
    line = Line(None)
    log = Log(None)

    def do_GET(self):
        self.answer(with_body=True)

    def do_HEAD(self):
        self.answer(with_body=False)

    def answer(self, with_body):
        body = self.files.get(self.path)
        if body is None:
            return self.reply(404, {"Content-Type": "text/plain"}, b"no such file\n", with_body)
        fields = {
            "Content-Type": "application/x-gzip",
            "ETag": etag(body),
            "Accept-Ranges": "bytes",
            "Last-Modified": email.utils.formatdate(LAST_MODIFIED, usegmt=True),
        }
        if self.is_current(fields["ETag"]):
            return self.reply(304, fields, b"", with_body=False)
        wanted = byte_range(self.headers.get("Range"), len(body))
        if wanted is None or not self.range_applies(fields["ETag"]):
            return self.reply(200, fields, body, with_body)
        first, last = wanted
        if first > last:
            fields["Content-Range"] = f"bytes */{len(body)}"
            return self.reply(416, fields, b"", with_body)
        fields["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
        return self.reply(206, fields, memoryview(body)[first : last + 1], with_body)

    def is_current(self, tag):
        if "If-None-Match" in self.headers:
            tags = [one.strip().removeprefix("W/") for one in self.headers["If-None-Match"].split(",")]
            return tag in tags or "*" in tags
        since = email.utils.parsedate_tz(self.headers.get("If-Modified-Since", ""))
        return since is not None and email.utils.mktime_tz(since) >= LAST_MODIFIED

    def range_applies(self, tag):
        condition = self.headers.get("If-Range")
        return condition is None or condition in (tag, email.utils.formatdate(LAST_MODIFIED, usegmt=True))

    def reply(self, status, fields, body, with_body):
        sent, complete = 0, False
        try:
            self.send_response(status)
            for name, value in fields.items():
                self.send_header(name, value)
            if status != 304:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            sent = self.send_body(body) if with_body else 0
            complete = True
        except OSError:
            self.close_connection = True
        finally:
            self.log.write(
                host=self.headers.get("Host"),
                method=self.command,
                path=self.path,
                range=self.headers.get("Range"),
                status=status,
                bytes=sent,
                complete=complete,
            )

    def send_body(self, body):
        view = memoryview(body)
        for begin in range(0, len(view), PIECE):
            piece = view[begin : begin + PIECE]
            self.line.take(len(piece))
            self.wfile.write(piece)
        return len(view)

    def version_string(self):
        return "origin"

    def log_message(self, *_):
        pass  # the log above is the one that is read


TAGS: dict = {}


def etag(body):
    """A strong validator, computed once per file."""
    if id(body) not in TAGS:
        TAGS[id(body)] = f'"{hashlib.md5(body).hexdigest()}"'
    return TAGS[id(body)]


def byte_range(text, size):
    """(first, last) of a Range of one part; first > last when none of it exists; None when there is no such Range."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", (text or "").replace(" ", ""))
    if not match or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        return max(size - int(last), 0), size - 1
    if last and int(last) < int(first):
        return None
    return int(first), min(int(last or size - 1), size - 1)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    address_family = socket.AF_INET


def relay_connection(client, target, line):
    """Both directions of one connection; bytes towards the client wait for the line."""
    try:
        upstream = socket.create_connection(target)
    except OSError:
        client.close()
        return
    threading.Thread(target=pump, args=(client, upstream, Line(None)), daemon=True).start()
    pump(upstream, client, line)


def pump(source, sink, line):
    try:
        while piece := source.recv(PIECE):
            line.take(len(piece))
            sink.sendall(piece)
    except OSError:
        pass
    for end, how in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)):
        try:
            end.shutdown(how)
        except OSError:
            pass


def relay(listen, target, line):
    with socket.create_server(listen, backlog=128) as server:
        while True:
            client, _ = server.accept()
            threading.Thread(target=relay_connection, args=(client, target, line), daemon=True).start()


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", type=address, required=True, metavar="IP:PORT")
    parser.add_argument("--file", action="append", default=[], metavar="PATH=SIZE")
    parser.add_argument("--relay", type=address, metavar="HOST:PORT")
    parser.add_argument("--bytes-per-second", type=int)
    parser.add_argument("--log")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    line = Line(options.bytes_per_second)
    if options.relay:
        return relay(options.listen, options.relay, line)
    for item in options.file:
        path, _, size = item.rpartition("=")
        Handler.files[path] = content(path, int(size))
        etag(Handler.files[path])
    Handler.line, Handler.log = line, Log(options.log)
    server = Server(options.listen, Handler)
    print(f"serving on {server.server_address[0]}:{server.server_address[1]}", flush=True)
    return server.serve_forever()


if __name__ == "__main__":
    main()
