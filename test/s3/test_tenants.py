"""Who may not read an object directly may not read it through the cache: cold, warm, or on its way to the owner.

Requests are signed once and sent twice, byte for byte the same: to the server, and to the cache. By the server's other
name the cache has the keys of all users.
"""

import pytest
from clients.process import CLIENTS, Client

SIZE = 2_000_000
HELD = 400_000
STATES = ("cold", "warm", "being fetched")


def target(key):
    return f"/team-data/{key}"


class Signers:
    """boto3 with the keys of each user; signing asks nobody."""

    def __init__(self, server, world):
        self._server, self._made = server, {}

    def __getitem__(self, user):
        if user not in self._made:
            owner = self._server.owner
            keys = {
                "owner": owner,
                "other": self._server.other,
                "revoked": self._server.revoked,
                "wrong secret": {**owner, "secret": owner["secret"][:-1] + "_"},
                "unknown key": {**owner, "access": "AKIANEZHANOBODY00009"},
                "wrong token": {**owner, "token": "session-token-2468ace013579bdf"},
            }[user]
            self._made[user] = self._server.twins[0].client(keys)
        return self._made[user]

    def end(self):
        for client in self._made.values():
            client.end()


def by_fields(user, **how):
    def make(signers, endpoint, key, other_key):
        return {"url": endpoint + target(key)} | signers[user].must(
            "signed_fields", url=endpoint + target(key), **how
        )

    return make


def replayed(method="GET", of_other_key=False, **how):
    """The signature of a GET by the owner, sent with another method or for another key."""

    def make(signers, endpoint, key, other_key):
        signed_for = endpoint + target(other_key if of_other_key else key)
        return {"url": endpoint + target(key), "method": method} | signers["owner"].must(
            "signed_fields", url=signed_for, **how
        )

    return make


def by_url(user="owner", change=lambda url, key, other_key: url, **how):
    def make(signers, endpoint, key, other_key):
        url = signers[user].must("signed_url_for", url=endpoint + target(key), **how)
        return {"url": change(url, key, other_key)}

    return make


def anonymous(signers, endpoint, key, other_key):
    return {"url": endpoint + target(key)}


# name -> the request, and whether the server lets it in; moto does not verify signed URLs, so they are versitygw's
FIELDS = {
    "owner": (by_fields("owner"), True),
    "other tenant": (by_fields("other"), False),
    "anonymous": (anonymous, False),
    "wrong secret": (by_fields("wrong secret"), False),
    "unknown key": (by_fields("unknown key"), False),
    "owner with a made-up session token": (by_fields("wrong token"), False),
    "revoked key": (by_fields("revoked"), False),
    "replayed as HEAD": (replayed("HEAD"), False),
    "replayed as PUT": (replayed("PUT"), False),
    "replayed as DELETE": (replayed("DELETE"), False),
    "replayed for another key": (replayed(of_other_key=True), False),
}
URLS = {
    "signed an hour ago": (by_fields("owner", age_s=3600), False),
    "signed URL of the owner": (by_url(), True),
    "signed URL of the other tenant": (by_url("other"), False),
    "signed URL of a revoked key": (by_url("revoked"), False),
    "expired signed URL": (by_url(age_s=700, seconds=600), False),
    "signed URL for another key": (by_url(change=lambda url, key, other: url.replace(key, other)), False),
    "signed URL with a longer life": (by_url(change=lambda url, *_: url.replace("Expires=600", "Expires=6000")), False),
    "signed URL and one more parameter": (by_url(change=lambda url, *_: url + "&versionId=null"), False),
    "signed URL without its signature": (by_url(change=lambda url, *_: url.partition("&X-Amz-Signature")[0]), False),
}
CASES = [
    pytest.param(server, known, name, request, may, state, id=f"{server}{known}-{name}-{state}".replace(" ", "-"))
    for server, cases in (("moto", FIELDS), ("versitygw", {**FIELDS, **URLS}), ("radosgw", {**FIELDS, **URLS}))
    for known in ("", "-known")
    for name, (request, may) in cases.items()
    for state in STATES
    if not (may and state == "being fetched")  # it would wait for the rest, as it does directly
]


@pytest.fixture(scope="module")
def signers(servers, world):
    made = {name: Signers(server, world) for name, server in servers.items()}
    yield made
    for one in made.values():
        one.end()


@pytest.fixture(scope="module")
def revoked(servers, owners, pairs):
    """The key worked, through the cache too, and is then taken away at each server."""
    for name, server in servers.items():
        for owner in owners[name]:
            owner.must("write", key="before-it-was-revoked", size=SIZE)
            if name == "versitygw":
                owner.must("let_read", readers=[server.revoked["access"]], owner=server.owner["access"])
        for answer in pairs("boto3", name, "revoked").ask("read", key="before-it-was-revoked"):
            assert answer["value"]["size"] == SIZE
        for twin in server.twins:
            server.revoke(twin)


def brought_into(state, server, key, owner, servers):
    """Brings the object into the state in the cache; returns what ends it."""
    if state == "cold":
        return lambda: None
    gate = servers[server].twins[1].gate
    if state == "being fetched":
        gate.say("hold", HELD)
        owner.begin("read", key=key)
        gate.say("held")
    else:
        owner.must("read", key=key)
        return lambda: None

    def end():
        gate.say("release")
        assert owner.finish()["value"]["size"] == SIZE

    return end


@pytest.fixture(scope="module")
def owner_by_known_name(servers, world):
    kind = CLIENTS["boto3"]
    made = {
        name: Client(kind, world.cached, f"http://{server.known_host}", "team-data", server.owner)
        for name, server in servers.items()
    }
    yield made
    for one in made.values():
        one.end()


@pytest.mark.parametrize(("server", "known", "name", "request_of", "may", "state"), CASES)
def test_gets_what_the_server_says(
    servers, pairs, put, signers, revoked, owner_by_known_name, server, known, name, request_of, may, state
):
    key, other_key = (f"tenants{known}/{name}/{state}/{part}".replace(" ", "-") for part in ("object", "second"))
    put(server, key, SIZE)
    put(server, other_key, SIZE)
    endpoint = f"http://{servers[server].known_host}" if known else servers[server].endpoint
    request = request_of(signers[server], endpoint, key, other_key)
    nobody = pairs("boto3", server, "nobody")
    owner = owner_by_known_name[server] if known else pairs("boto3", server).cached
    end = brought_into(state, server, key, owner, servers)
    try:
        direct, cached = (answer["value"] for answer in nobody.ask("ask_url", **request))
    finally:
        end()
    assert (cached["status"], cached.get("code")) == (direct["status"], direct.get("code"))
    assert cached.get("sha256") == direct.get("sha256")
    assert (direct["status"] < 300) == may, direct
    assert owner.must("read", key=key)["size"] == SIZE, "what was refused changed the object"


@pytest.mark.parametrize("server", ["moto", "versitygw"])
def test_a_known_reader_is_not_asked_for_again(servers, put, signers, owner_by_known_name, cache, server):
    owner = owner_by_known_name[server]
    log = servers[server].twins[1].gate.log

    def asked(key):
        """Whether the server saw something of a read."""
        before = log.read_bytes().count(key.encode())
        assert owner.must("read", key=key)["size"] == SIZE
        return log.read_bytes().count(key.encode()) > before

    # The cache is full by now, and may keep a part of the keys only.
    for number in range(30):
        key = f"tenants-known/again-{number}-"
        put(server, key, SIZE)
        assert asked(key)
        if not asked(key) or not asked(key):
            assert not any([asked(key) for _ in range(3)])
            return
    raise AssertionError("each of them is asked for again and again")
