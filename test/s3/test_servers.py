"""The servers are real ones: each refuses a signature made with a wrong secret, so that what passes was verified."""

import pytest


@pytest.mark.parametrize("server", ["moto", "versitygw"])
@pytest.mark.parametrize("operation", ["read", "write", "head", "delete"])
def test_a_wrong_secret_is_refused(servers, put, server, operation):
    put(server, "refused/object", 100)
    owner = servers[server].owner
    arguments = {"key": "refused/object"} | ({"size": 10} if operation == "write" else {})
    for twin in servers[server].twins:
        with twin.client({**owner, "secret": owner["secret"] + "x"}) as wrong:
            answer = wrong.ask(operation, **arguments)
        assert answer["error"]["status"] == 403, answer
        with twin.client(owner) as right:
            assert right.must("read", key="refused/object")["size"] == 100


def test_a_changed_signed_url_is_refused(servers, put):
    put("versitygw", "refused/signed", 100)
    for twin in servers["versitygw"].twins:
        with twin.client(servers["versitygw"].owner) as owner:
            url = owner.must("signed_url", key="refused/signed")
            assert owner.must("ask_url", url=url)["status"] == 200
            assert owner.must("ask_url", url=url.replace("refused/signed", "refused/object"))["status"] == 403
