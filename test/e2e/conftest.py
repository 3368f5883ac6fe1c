"""Fixtures of the end-to-end tests: one cluster, one origin server and one Helm release for all of them.

NEZHA_E2E_KEEP=1 leaves the cluster running and uses it again, for work on a single test:
    NEZHA_E2E_KEEP=1 scripts/e2e -k job
"""

import hashlib
import http.client
import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import kube  # noqa: E402
import origin_server  # noqa: E402

KEEP = os.environ.get("NEZHA_E2E_KEEP") == "1"
HERE = pathlib.Path(__file__).resolve().parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.cluster)


@pytest.fixture(scope="session")
def cluster():
    cluster = kube.Cluster()
    cluster.script("build")
    cluster.script("images")
    if not (KEEP and cluster.is_up()):
        cluster.script("down")
        cluster.script("up")
    try:
        cluster.script("load-all")
        cluster.enter()
        yield cluster
    finally:
        cluster.leave()
        if not KEEP:
            cluster.script("down")


class Origin:
    """The server behind www.cs.toronto.edu, and what it was asked."""

    address = "10.200.0.2"
    archive_url = "http://www.cs.toronto.edu" + origin_server.ARCHIVE

    def __init__(self, folder):
        self._folder = folder
        archive = origin_server.make_archive(folder)
        with open(archive, "rb") as file:
            self.archive_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        self._log = folder / "access.log"
        self._log.write_text("")
        self._process = subprocess.Popen([sys.executable, origin_server.__file__, self.address, "80", folder],
                                         stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert self._process.stdout.readline() == b"ready\n", "the origin server did not start"

    def stop(self):
        self._process.terminate()
        self._process.wait()

    def requests(self, path):
        """The entries of the access log for one path, in the order in which they ended."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines()]
        return [line for line in lines if line["path"] == path]


@pytest.fixture(scope="session")
def origin(cluster):
    folder = kube.DIR / "origin"
    folder.mkdir(exist_ok=True)
    origin = Origin(folder)
    yield origin
    origin.stop()


class Release:
    """Nezha as installed by Helm."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.chart = kube.ROOT / "charts/nezha"
        self.values = HERE / "values.yaml"

    def install(self, name="nezha", namespace=kube.NAMESPACE, *arguments):
        try:
            self.cluster.helm("install", name, self.chart, "-n", namespace, "--create-namespace", "-f", self.values,
                              "--wait", "--timeout", "120s", *arguments)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.cluster.account(namespace)}") from None

    def upgrade(self, *arguments):
        self.cluster.helm("upgrade", "nezha", self.chart, "-n", kube.NAMESPACE, "-f", self.values,
                          "--wait", "--timeout", "180s", *arguments, timeout=240)

    def cache_address(self):
        return self.cluster.get("service", "nezha-cache", kube.NAMESPACE)["spec"]["clusterIP"]

    def configure(self, *objects):
        """Applies configuration, and waits until both webhook pods and the cache act on it."""
        self.cluster.apply(*objects)
        self.until_injected(kube.pod("probe", {"nezha.io/inject": "true"}))
        kube.until("the cache serves www.cs.toronto.edu", self.cache_knows_the_upstream, 60,
                   lambda: self.cluster.account(kube.NAMESPACE))

    def until_injected(self, pod, namespace="default", seconds=60):
        """Waits until twenty reviews in a row, which reach every replica, add aliases."""
        kube.until(f"pod {pod['metadata']['name']} is injected", lambda: all(
            kube.aliases(self.cluster.dry_run(pod, namespace)) for _ in range(20)), seconds,
            lambda: self.cluster.account(kube.NAMESPACE))

    def cache_knows_the_upstream(self):
        connection = http.client.HTTPConnection(self.cache_address(), 80, timeout=10)
        try:
            connection.request("GET", "/probe", headers={"Host": "www.cs.toronto.edu"})
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


@pytest.fixture(scope="session")
def bare_release(cluster):
    """Installed, with nothing configured yet."""
    release = Release(cluster)
    if not (KEEP and cluster.run("helm", "status", "nezha", "-n", kube.NAMESPACE, check=False).returncode == 0):
        release.install()
    return release


@pytest.fixture(scope="session")
def release(bare_release, origin):
    """Installed and configured by the example that users are shown."""
    bare_release.configure(*kube.example("upstreams.yaml"))
    return bare_release


@pytest.fixture
def team(cluster, request):
    """A namespace of the test's own in which Pod Security "restricted" is enforced."""
    name = "t-" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:8]
    with cluster.namespace(name, {"pod-security.kubernetes.io/enforce": "restricted"}) as namespace:
        yield namespace
