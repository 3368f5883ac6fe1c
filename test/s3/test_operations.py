"""Real clients see the same through the cache as directly: every client, every operation it offers, every server.

Each row runs three times in both worlds: on an object that the cache has never seen, again, and once more after all of
the object was read, so that the answer comes from what is stored where it may.
"""

import pytest
from clients.process import CLIENTS
from comparison import differences
from operations import OPERATIONS, filled
from servers import VERSIONED

SERVERS = ("moto", "versitygw", "radosgw")
ERRORS = ("read_absent", "read_if_match_wrong", "read_if_none_match", "delete")  # each at the latest the second time
LACKING = {  # what the server itself does not do; it says so through the cache as well
    "moto": ("read_signed_url", "read_signed_url_v4", "read_signed_url_v2"),  # not while it verifies signatures
    "versitygw": ("read_signed_url_v2",),
    "radosgw": (),
}


def offered(client, operation):
    return {"read_absent": "read"}.get(operation, operation) in CLIENTS[client].operations


ROWS = [
    pytest.param(server, client, name, id=f"{server}-{client}-{name}")
    for server in SERVERS
    for client, kind in CLIENTS.items()
    for name in OPERATIONS
    if offered(client, name) and not (server == "radosgw" and kind.heavy)
]


def prepare(owners, server, operation, key):
    for owner in owners[server]:
        for suffix, size in operation.objects.items():
            owner.must("write", key=key + suffix, size=size, metadata={"made": "for-this-row"}, ContentType="text/x-n")
        for number in range(operation.versions):
            owner.must("write", key=key, size=1000 + number, seed=str(number), bucket=VERSIONED)


@pytest.mark.parametrize(("server", "client", "name"), ROWS)
def test_the_result_is_the_same_through_the_cache(server, client, name, owners, pairs, cache, record_property):
    operation = OPERATIONS[name]
    folder = f"{client}/{name}"
    key = f"{folder}/object"
    prepare(owners, server, operation, key)
    arguments = filled(operation.arguments, key=key, folder=folder, versioned=VERSIONED)
    pair = pairs(client, server)
    before = cache.answered()
    for state in ("cold", "again", "after all of it was read"):
        if state == "after all of it was read":
            if operation.changes:
                break
            pairs("boto3", server).ask("read", key=key)
        for _ in range(3):
            direct, cached = pair.ask({"read_absent": "read"}.get(name, name), **arguments)
            # A server that now and then refuses what it takes a moment later is asked again, both ways.
            if not differences(direct, cached) or ("error" in direct) == ("error" in cached):
                break
        assert not differences(direct, cached), state
        assert "value" in direct or name in (*ERRORS, *LACKING[server]), direct
    record_property("refused", name in LACKING[server])
    assert cache.answered()["all"] > before["all"], "nothing went through the cache"
