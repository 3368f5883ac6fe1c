"""Keys with every awkward character reach the server byte for byte as the client wrote them, and are told apart."""

import re

import pytest
from clients.process import CLIENTS
from comparison import differences

KEYS = [
    "a+b//c d%2Fé",
    "tilde~",
    "a=b&c=d",
    "hash#mark",
    "question?mark",
    "colon:colon",
    "ünïcödé/日本語",
    "😀",
    "trailing/",
    "./leading",
    "inner/./dot",
    "inner/../dots",
    "per%20cent",
    "per cent",
    "per+cent",
    "double//slash",
    "/leading-slash",
    "end ",
    "semi;colon,comma",
    "quote'and\"quote",
    "back\\slash",
    "star*",
    "at@dollar$",
    "round(1)",
    "square[1]{2}",
    "pipe|caret^tick`",
    "less<more>",
    "x" * 200,
]


def targets(twin):
    """What the server's twin was asked for, in order, without signatures."""
    asked = re.findall(rb"^([A-Z]+) (\S+) HTTP/1.1\r$", twin.gate.log.read_bytes(), re.M)
    return [(method, re.sub(rb"(X-Amz-[A-Za-z]+|Signature|Expires)=[^&]*", rb"\1", target)) for method, target in asked]


def mark(servers, server):
    return [len(targets(twin)) for twin in servers[server].twins]


def since(servers, server, marks):
    return [sorted(targets(twin)[mark:]) for twin, mark in zip(servers[server].twins, marks, strict=True)]


@pytest.mark.parametrize("server", ["moto", "versitygw"])
@pytest.mark.parametrize("key", KEYS)
def test_boto3_writes_reads_lists_and_deletes(servers, pairs, server, key):
    pair = pairs("boto3", server)
    marks = mark(servers, server)
    for operation, arguments in (
        ("write", {"size": 3000, "seed": "first"}),
        ("head", {}),
        ("read", {}),
        ("read", {}),
        ("read_range", {"first": 10, "last": 20}),
        ("write", {"size": 3100, "seed": "second"}),
        ("read", {}),
        ("delete", {}),
        ("read", {}),
    ):
        direct, cached = pair.ask(operation, key=key, **arguments)
        assert not differences(direct, cached), operation
    direct, cached = since(servers, server, marks)
    assert cached == direct, "the server was asked for something else"


@pytest.mark.parametrize("server", ["moto", "versitygw"])
@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "boto3"])
def test_every_client_reads_every_key(servers, pairs, server, client):
    pair = pairs(client, server)
    differing = []
    for key in KEYS:
        pairs("boto3", server).ask("write", key=key, size=2000)
        marks = mark(servers, server)
        for state in ("cold", "warm"):
            direct, cached = pair.ask("read", key=key)
            if cached != direct:
                differing.append((state, key, differences(direct, cached)))
        asked_direct, asked_cached = since(servers, server, marks)
        if asked_direct != asked_cached:
            differing.append(("asked", key, asked_direct, asked_cached))
    assert not differing


@pytest.mark.parametrize("server", ["moto", "versitygw"])
def test_encodings_of_one_key_are_relayed_as_they_are(servers, pairs, put, server):
    """A path that is signed in one spelling is not respelt, whatever the server makes of it."""
    put(server, "spell/a b~c", 500)
    pair = pairs("boto3", server)
    for path in ("a%20b~c", "a%20b%7Ec", "a%20b%7ec", "%61%20b~c", "./a%20b~c", "/a%20b~c"):
        path = f"spell/{path}"
        marks = mark(servers, server)
        for _ in ("cold", "warm"):
            direct, cached = pair.ask("http_signed", target=f"/team-data/{path}")
            assert not differences(direct, cached), path
        direct, cached = since(servers, server, marks)
        assert cached == direct == [(b"GET", f"/team-data/{path}".encode())] * 2


@pytest.mark.parametrize("server", ["moto", "versitygw"])
@pytest.mark.parametrize("operation", ["read", "read_range", "head", "write", "listing", "delete"])
def test_the_bucket_in_the_hosts_name(pairs, put, server, operation):
    key = f"virtual/{operation}"
    put(server, key, 5000)
    arguments = {"read_range": {"first": 3, "last": 9}, "write": {"size": 70}}.get(operation, {})
    arguments |= {"prefix": "virtual/"} if operation == "listing" else {"key": key}
    pair = pairs("boto3", server, style="virtual")
    for _ in ("cold", "warm"):
        direct, cached = pair.ask(operation, **arguments)
        assert not differences(direct, cached)
        assert "value" in direct, direct
