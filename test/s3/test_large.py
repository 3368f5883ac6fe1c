"""An object of several gigabytes, written in parts and read back: more than 32 bits count."""

import hashlib

import pytest
from origin import content

SIZE = (5 << 29) + 12_345  # 2.5 GiB and a bit; the cache of the tests has room for 1 GiB: it passes by
KEY = "large/many-gigabytes"


@pytest.mark.heavy
def test_an_upload_of_several_gigabytes(pairs):
    owner = pairs("boto3", "versitygw").cached
    written = owner.must("write_parts", key=KEY, size=SIZE)
    assert (written["size"], written["sha256"]) == (SIZE, hashlib.sha256(content(KEY, SIZE)).hexdigest())
    assert owner.must("download", key=KEY)["sha256"] == written["sha256"]
