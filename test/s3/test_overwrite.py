"""What is overwritten is read in its new version from the next request on, and never in two versions at once."""

import hashlib

import pytest
from clients.process import CLIENTS
from origin import content

SIZE = 12_000_000
HELD = 3_000_000
# What asks once, or for each part with If-Match. The others (pyarrow; downloads in parts by s3fs, s5cmd and rclone) ask
# for part after part without a condition, and so may mix two versions themselves, also without a cache.
WHOLE = [("boto3", "read"), ("boto3", "download"), ("awscli", "read"), ("s3fs", "read"), ("s5cmd", "read")]
WHOLE += [("rclone", "read"), ("spark", "read")]


def hash_of(seed):
    return hashlib.sha256(content(seed, SIZE)).hexdigest()


class Overwriting:
    """One object in two versions, at one server."""

    def __init__(self, server, key, owners, pairs):
        self.key, self._behind = key, owners[server]
        self._through = pairs("boto3", server, worker="writer")  # one of its own: the reader may be waiting

    def write(self, how, version):
        arguments = {"key": self.key, "size": SIZE, "seed": version}
        if how == "behind":
            for owner in self._behind:
                owner.must("write", **arguments)
        else:
            self._through.cached.must("write", **arguments)


@pytest.fixture
def overwriting(owners, pairs):
    return lambda server, key: Overwriting(server, key, owners, pairs)


@pytest.mark.parametrize("how", ["behind", "through"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", ["moto", "versitygw"])
def test_the_next_read_has_the_new_version(server, client, how, pairs, overwriting):
    reader = pairs(client, server).cached
    it = overwriting(server, f"overwrite/{how}/{client}")
    for version in ("first", "second", "third"):
        it.write(how, version)
        for operation in ("read", "download", "read"):
            assert reader.must(operation, key=it.key)["sha256"] == hash_of(version), operation


@pytest.mark.parametrize("how", ["behind", "through"])
@pytest.mark.parametrize(("client", "operation"), WHOLE)
@pytest.mark.parametrize("server", ["moto", "versitygw"])
def test_a_slow_read_has_one_version_or_fails(servers, server, client, operation, how, pairs, overwriting):
    gate = servers[server].twins[1].gate
    it = overwriting(server, f"overwrite/slow/{how}/{client}/{operation}")
    it.write("behind", "first")
    reader, later = pairs(client, server).cached, pairs("boto3", server, worker="later").cached
    gate.say("hold", HELD)
    try:
        reader.begin(operation, key=it.key)
        gate.say("held")
        it.write(how, "second")
        later.begin("read", key=it.key)
    finally:
        gate.say("release")
    answer = reader.finish()
    assert "error" in answer or answer["value"]["sha256"] in (hash_of("first"), hash_of("second"))
    assert later.finish()["value"]["sha256"] == hash_of("second"), "asked for after it was overwritten"
    assert reader.must("read", key=it.key)["sha256"] == hash_of("second")
