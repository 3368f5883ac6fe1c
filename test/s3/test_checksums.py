"""Whole-object checksums are told to those who asked for them, as the server does (x-amz-checksum-mode)."""

import pytest

CHECKSUM = "x-amz-checksum-crc32"
WISH = {"x-amz-checksum-mode": "ENABLED"}


def told(pairs, server, key, method, fields):
    """(directly, through the cache): the checksum in the answer, or nothing."""
    pair = pairs("boto3", server.name)
    request = {"url": f"{server.endpoint}/team-data/{key}", "method": method}
    answers = pair.ask("ask_url", **request, **pair.direct.must("signed_fields", **request, fields=fields))
    return [answer["value"]["fields"].get(CHECKSUM) for answer in answers]


@pytest.mark.parametrize("server", ["moto", "versitygw"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param({}, {}, id="none"),
        pytest.param(WISH, WISH, id="both"),
        pytest.param(WISH, {}, id="first"),
        pytest.param({}, WISH, id="second"),
    ],
)
def test_the_checksum_is_told_to_those_who_ask(servers, pairs, put, server, method, first, then):
    key = f"checksum/{method}-{len(first)}{len(then)}"
    put(server, key, 4000, ChecksumAlgorithm="CRC32")
    told(pairs, servers[server], key, "GET", first)
    direct, cached = told(pairs, servers[server], key, method, then)
    assert cached == direct
