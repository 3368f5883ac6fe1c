"""Readers of one S3 object in Python: s3_reader.py ENDPOINT BUCKET single KEY COUNT | boto3 KEY FILE

`single` sends signed requests over one connection, one after the other, each signed before its time begins. `boto3`
downloads by parallel ranges, as boto3 does without being told how. Keys and region come from AWS's variables. One line
of JSON: "first" and "whole", seconds per request; "sha256" of the last body; "cache", what the cache said of it.
"""

import hashlib
import json
import os
import socket
import sys
import time
import urllib.parse

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials


class Signer:
    def __init__(self):
        keys = Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
        self._auth = S3SigV4Auth(keys, "s3", os.environ["AWS_REGION"])

    def head(self, url):
        request = AWSRequest(method="GET", url=url)
        request.context["payload_signing_enabled"] = False
        self._auth.add_auth(request)
        address = urllib.parse.urlsplit(url)
        fields = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        return f"GET {address.path} HTTP/1.1\r\nHost: {address.hostname}\r\n{fields}\r\n".encode()


class Reader:
    """One connection. The body of the last answer stays in `body`, whose memory is used again."""

    def __init__(self, endpoint):
        address = urllib.parse.urlsplit(endpoint)
        self._connection = socket.create_connection((address.hostname, address.port or 80))
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head, self._memory = bytearray(64 * 1024), bytearray()
        self.body = memoryview(self._memory)

    def get(self, request):
        """Seconds to the first byte and to the last, and the fields of the answer."""
        begin = time.perf_counter()
        self._connection.sendall(request)
        got = self._receive(memoryview(self._head))
        first = time.perf_counter() - begin
        while (edge := self._head.find(b"\r\n\r\n", 0, got)) < 0:
            got += self._receive(memoryview(self._head)[got:])
        head = self._head[:edge].decode()
        lines = (line.partition(":") for line in head.split("\r\n"))
        fields = {name.lower(): value.strip() for name, _, value in lines}
        if not head.startswith("HTTP/1.1 200"):
            raise SystemExit(f"not the object: {head}")
        self._take_body(int(fields["content-length"]), self._head[edge + 4 : got])
        return first, time.perf_counter() - begin, fields

    def _take_body(self, size, begin):
        if len(self._memory) < size:
            self._memory = bytearray(size)
        self.body = memoryview(self._memory)[:size]
        self.body[: len(begin)] = begin
        filled = len(begin)
        while filled < size:
            filled += self._receive(self.body[filled:])

    def _receive(self, room):
        got = self._connection.recv_into(room)
        if not got:
            raise SystemExit("the connection ended early")
        return got


def single(endpoint, bucket, key, count):
    signer, reader, found = Signer(), Reader(endpoint), {"first": [], "whole": []}
    for _ in range(int(count)):
        first, whole, fields = reader.get(signer.head(f"{endpoint}/{bucket}/{key}"))
        found["first"].append(first)
        found["whole"].append(whole)
    digest = hashlib.sha256(reader.body).hexdigest()
    return found | {"sha256": digest, "cache": fields.get("cache-status", "")}


def boto3_download(endpoint, bucket, key, file):
    import boto3  # the other reader starts without it

    client = boto3.client("s3", endpoint_url=endpoint)
    begin = time.perf_counter()
    client.download_file(bucket, key, file)
    return {"whole": [time.perf_counter() - begin]}


if __name__ == "__main__":
    where, how, arguments = sys.argv[1:3], sys.argv[3], sys.argv[4:]
    print(json.dumps({"single": single, "boto3": boto3_download}[how](*where, *arguments)))
