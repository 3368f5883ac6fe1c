"""The promise itself: an unmodified job reads from the cache, and the data's server is asked once."""

import hashlib

import kube
import origin_server

INJECT = {"nezha.io/inject": "true"}


def job(name, namespace):
    """The Job that users are shown, with the tests' image, printing a checksum instead of a speed."""
    job, = kube.example("job.yaml")
    job["metadata"] = {"name": name, "namespace": namespace}
    container, = job["spec"]["template"]["spec"]["containers"]
    url = container["args"][-1]
    container.update(image="localhost/client:test", imagePullPolicy="IfNotPresent",
                     command=["bash", "-c", f"set -o pipefail; curl -sS --fail {url} | sha256sum"])
    del container["args"]
    return job


def test_second_job_reads_what_the_first_one_fetched(cluster, release, origin, team):
    before = len(origin.requests(origin_server.ARCHIVE))
    for name in "first", "second":
        cluster.apply(job(name, team))
        assert cluster.job_logs(name, team).split()[0] == origin.archive_sha256
    asked = origin.requests(origin_server.ARCHIVE)[before:]
    assert [(r["method"], r["status"], r["bytes"]) for r in asked] == [("GET", 200, origin_server.ARCHIVE_BYTES)]
    assert asked[0]["host"] == "www.cs.toronto.edu"


def test_job_without_the_label_reads_from_the_server_itself(cluster, release, origin, team):
    before = len(origin.requests(origin_server.ARCHIVE))
    plain = job("plain", team)
    del plain["spec"]["template"]["metadata"]["labels"]
    cluster.apply(plain)
    assert cluster.job_logs("plain", team).split()[0] == origin.archive_sha256
    assert len(origin.requests(origin_server.ARCHIVE)) == before + 1


def test_pods_that_start_together_share_one_fetch(cluster, release, origin, team):
    path = "/shared/together"
    many = job("many", team)
    container = many["spec"]["template"]["spec"]["containers"][0]
    container["command"] = ["bash", "-c", f"curl -sS --fail http://www.cs.toronto.edu{path} | sha256sum"]
    many["spec"].update(parallelism=4, completions=4)
    cluster.apply(many)
    cluster.wait("job/many", "condition=Complete", team, 180)
    expected = hashlib.sha256(origin_server.small_body(path)).hexdigest()
    for pod in cluster.items("pods", "-n", team, "-l", "job-name=many"):
        assert cluster.kubectl("logs", pod["metadata"]["name"], "-n", team).split()[0] == expected
    assert len(origin.requests(path)) == 1


def test_answers_say_where_they_came_from(cluster, release, origin, team):
    cluster.apply(kube.pod("client", INJECT), namespace=team)
    cluster.wait("pod/client", "condition=Ready", team)

    def headers(path, *options):
        text = cluster.kubectl("exec", "client", "-n", team, "--", "curl", "-s", "-o", "/dev/null", "-D", "-",
                               *options, f"http://www.cs.toronto.edu{path}")
        status, *fields = text.strip().splitlines()
        return status.split()[1], {k.lower(): v.strip() for k, v in (field.split(":", 1) for field in fields)}

    status, first = headers("/status/file")
    assert status == "200" and "fwd=" in first["cache-status"], first
    status, second = headers("/status/file")
    assert status == "200" and "hit" in second["cache-status"] and "age" in second, second
    assert second["etag"] == first["etag"] and second["last-modified"] == first["last-modified"]
    status, _ = headers("/missing/file")
    assert status == "404"
    assert len(origin.requests("/status/file")) == 1


def test_wget_and_python_read_the_same_bytes(cluster, release, origin, team):
    cluster.apply(kube.pod("client", INJECT), namespace=team)
    cluster.wait("pod/client", "condition=Ready", team)
    path = "/tools/file"
    url = f"http://www.cs.toronto.edu{path}"
    expected = hashlib.sha256(origin_server.small_body(path)).hexdigest()
    python = f"import hashlib,urllib.request as u; print(hashlib.sha256(u.urlopen('{url}').read()).hexdigest())"
    for command in ["sh", "-c", f"wget -qO- {url} | sha256sum"], ["python3", "-c", python]:
        assert cluster.kubectl("exec", "client", "-n", team, "--", *command).split()[0] == expected
    assert len(origin.requests(path)) == 1
