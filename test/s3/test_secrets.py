"""No secret key, session token or signature that the tests used is in what the cache wrote: log, metrics, tiers."""

import mmap
import re
import urllib.parse

import pytest
from origin import content
from servers import ADMIN_USER, OTHER, OWNER, REVOKED

pytestmark = pytest.mark.after_all

HEX = re.compile(rb"[0-9a-f]{64,}")
SIGNATURE_V4 = re.compile(rb"Signature=([0-9a-f]{64})")
SIGNATURE_V2 = re.compile(rb"[?&]Signature=([A-Za-z0-9%+/=]{20,80})[& ]")
TOKEN = re.compile(rb"^x-amz-security-token: *(\S+)\r$", re.I | re.M)


@pytest.fixture(scope="module")
def written(cache):
    """{place: bytes} of all that the cache wrote."""
    places = {"log": cache.log().encode(), "metrics": cache.metrics_text().encode()}
    for path in cache.stored_files():
        if path.stat().st_size:
            with open(path, "rb") as file:
                places[path.name] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return places


def asked(servers):
    """All request heads that came through the cache."""
    return b"".join(server.twins[1].gate.log.read_bytes() for server in servers.values())


def test_what_is_stored_would_be_found(servers, pairs, put, written, cache):
    """The search below can find something: bodies that went through the cache are there."""
    put("versitygw", "secrets/canary", 5000)
    pairs("boto3", "versitygw").cached.must("read", key="secrets/canary")
    pairs("boto3", "versitygw").cached.must("read", key="secrets/canary")
    stored = b"".join(path.read_bytes() for path in cache.stored_files())
    assert content("secrets/canary", 5000) in stored


def test_no_secret_key_is_found(servers, written):
    secrets = {user["secret"] for user in (OWNER, OTHER, REVOKED, ADMIN_USER)}
    for server in servers.values():
        secrets |= {user["secret"] for user in (server.owner, server.other, server.revoked)}
    for place, found in written.items():
        for secret in secrets:
            assert found.find(secret.encode()) < 0, f"a secret key in {place}"


def test_no_signature_is_found(servers, written):
    heads = asked(servers)
    signatures = set(SIGNATURE_V4.findall(heads))
    assert signatures, "no signed request came through the cache"
    for place, found in written.items():
        for digits in set(HEX.findall(found)):
            parts = {digits[begin : begin + 64] for begin in range(len(digits) - 63)}
            assert not signatures & parts, f"a signature in {place}"
        for encoded in set(SIGNATURE_V2.findall(heads)):
            for text in {encoded, urllib.parse.unquote_to_bytes(encoded)}:
                assert found.find(text) < 0, f"a signature in {place}"


def test_no_session_token_is_found(servers, written):
    tokens = set(TOKEN.findall(asked(servers)))
    assert tokens, "no session token came through the cache"
    for place, found in written.items():
        for token in tokens:
            assert found.find(token) < 0, f"a session token in {place}"
