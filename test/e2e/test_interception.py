"""Pods of a namespace that trusts the cache: what the webhook makes for them, and that https:// holds under it."""

import hashlib
import subprocess
import sys

import kube
import origin_server
import pytest
import yaml

INJECT = {"nezha.io/inject": "true"}
TRUST_SERVICE = "nezha-cache-tls"  # and the Secret of that name
HOST = "www.cs.toronto.edu"
RELAYED = "yann.lecun.com"
# Every read checks the server's certificate: by a variable, or by the place where images have their roots.
READ = f"""set -euo pipefail
read_once() {{ curl -sS --fail -D- -o /dev/null "$@" | tr -d '\\r' | sed -n 's/^cache-status: //Ip'; }}
read_once https://{HOST}/twice
read_once https://{HOST}/twice
env -u SSL_CERT_FILE -u CURL_CA_BUNDLE curl -sS --fail https://{HOST}/twice | sha256sum
curl -sS --fail https://{RELAYED}/relayed | sha256sum
python3 -c 'import urllib.request as u; print(len(u.urlopen("https://{HOST}/by/python").read()))'
"""


@pytest.fixture(scope="module")
def tls_origin(cluster, origin):
    """The origin over TLS, with a certificate that nobody trusts by himself; yields the certificate."""
    folder = kube.DIR / "tls-origin"
    folder.mkdir(exist_ok=True)
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=origin", "-addext", f"subjectAltName=DNS:{HOST},DNS:{RELAYED}", "-keyout", key,
            "-out", certificate]
    subprocess.run(make, check=True, capture_output=True)
    serve = [sys.executable, origin_server.__file__, origin.address, "443", folder, certificate, key]
    process = subprocess.Popen(serve, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"ready\n", "the origin server did not start"
    yield certificate.read_text()
    process.terminate()
    process.wait()


@pytest.fixture(scope="module")
def intercepting(cluster, release, origin, tls_origin):
    """One host intercepted and one relayed, the origin's own root for pods and cache, and a cache that knows it all."""
    cluster.script("host", RELAYED, origin.address)
    config_map, = kube.example("upstreams.yaml")
    config = yaml.safe_load(config_map["data"]["config.yaml"])
    first, = config["upstreams"]
    config["upstreams"] = [{**first, "hosts": [HOST], "tls": "intercept"}, {"name": "relayed", "hosts": [RELAYED]}]
    config["injection"][0]["upstreams"] = [first["name"], "relayed"]
    config_map["data"] = {"config.yaml": yaml.safe_dump(config), "extra-roots.pem": tls_origin}
    cluster.apply(config_map)
    kube.until("the cache has a certificate", lambda: HOST + ".crt" in (
        cluster.get("secret", TRUST_SERVICE, kube.NAMESPACE).get("data") or {}), 60,
        lambda: cluster.account(kube.NAMESPACE))
    # It would see both by itself after a minute or two.
    cluster.kubectl("rollout", "restart", "deployment/nezha-cache", "-n", kube.NAMESPACE)
    cluster.kubectl("rollout", "status", "deployment/nezha-cache", "-n", kube.NAMESPACE, "--timeout=120s")
    yield
    cluster.apply(*kube.example("upstreams.yaml"))


def bundle_of(cluster, namespace):
    return [c for c in cluster.items("configmaps", "-n", namespace) if c["metadata"]["name"] == "nezha-trust"]


def test_pod_of_a_labelled_namespace_checks_certificates_by_the_bundle(cluster, intercepting, team):
    cluster.kubectl("label", "namespace", team, "nezha.io/inject=true")
    kube.until("the namespace has its bundle", lambda: bundle_of(cluster, team), 60,
               lambda: cluster.account(kube.NAMESPACE))
    address = cluster.get("service", TRUST_SERVICE, kube.NAMESPACE)["spec"]["clusterIP"]
    kube.until("every webhook sends pods there", lambda: all(
        address in kube.aliases(cluster.dry_run(kube.pod("probe", INJECT), team)) for _ in range(20)), 60,
        lambda: cluster.account(kube.NAMESPACE))
    reader = kube.pod("reader", INJECT)
    reader["spec"]["restartPolicy"] = "Never"
    reader["spec"]["containers"][0]["command"] = ["bash", "-c", READ]
    cluster.apply(reader, namespace=team)
    cluster.wait("pod/reader", "jsonpath={.status.phase}=Succeeded", team)
    first, second, system, relayed, size = cluster.kubectl("logs", "reader", "-n", team).splitlines()
    assert "fwd" in first and "hit" in second, (first, second)
    for path, line in ("/twice", system), ("/relayed", relayed):
        assert line.split()[0] == hashlib.sha256(origin_server.small_body(path)).hexdigest()
    assert size == str(64 * 1024)


def test_first_pod_of_another_namespace_is_relayed_and_the_next_is_not(cluster, intercepting, team):
    first = cluster.dry_run(kube.pod("first", INJECT), team)
    assert "does not trust the cache" in first["metadata"]["annotations"]["nezha.io/status"]
    assert not bundle_of(cluster, team), "a dry run makes nothing"
    cluster.apply(kube.pod("first", INJECT), namespace=team)
    address = cluster.get("service", TRUST_SERVICE, kube.NAMESPACE)["spec"]["clusterIP"]
    kube.until("later pods are intercepted", lambda: address in kube.aliases(
        cluster.dry_run(kube.pod("later", INJECT), team)), 60, lambda: cluster.account(kube.NAMESPACE))
    owner, = bundle_of(cluster, team)[0]["metadata"]["ownerReferences"]
    assert owner["kind"] == "MutatingWebhookConfiguration"
