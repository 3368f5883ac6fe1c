"""A cache in the pod itself: jobs of every kind read through it, it is killed meanwhile, and no job notices.

Every pod reads twice, waits until its cache's process was killed, and reads twice again, with clients that try once.
"""

import hashlib
import json

import kube
import origin_server
import pytest
from test_download import INJECT
from test_training_operator import operator, with_client  # noqa: F401

SIDECAR = "nezha-cache"
MODE = {"nezha.io/mode": "sidecar"}
URL = "http://www.cs.toronto.edu"
# The namespace of a careful admin.
LIMITS = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": {"limits": [{
    "type": "Container", "max": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi"},
    "default": {"cpu": "500m", "memory": "128Mi", "ephemeral-storage": "1Gi"},
    "defaultRequest": {"cpu": "50m", "memory": "32Mi", "ephemeral-storage": "10Mi"}}]}}
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota"}, "spec": {"hard": {
    "requests.cpu": "2", "requests.memory": "4Gi", "limits.cpu": "8", "limits.memory": "8Gi",
    "requests.ephemeral-storage": "8Gi", "pods": "10"}}}


def script(path):
    """Two reads, a pause in which the cache dies, two reads; one line per read."""
    return ["bash", "-c", f"""set -euo pipefail
get() {{ curl -sS --fail {URL}{path} | sha256sum | cut -d' ' -f1; }}
get; get
touch /tmp/waiting
until [ -e /tmp/go ]; do sleep 0.1; done
get; get"""]


@pytest.fixture(scope="module")
def sidecars(cluster, release):
    """The users' example with a sidecar's image, small enough for the node."""
    config_map, = kube.example("upstreams.yaml")
    config_map["data"]["config.yaml"] += (
        "webhook:\n  sidecar: {image: 'localhost/nezha-cache:test', size: 512Mi, "
        "resources: {cpu: 100m, memory: 128Mi}}\n")
    cluster.apply(config_map)
    probe = kube.pod("probe", INJECT)
    probe["metadata"]["annotations"] = MODE
    kube.until("every webhook knows of sidecars", lambda: all(
        "127.0.0.1" in kube.aliases(cluster.dry_run(probe)) for _ in range(20)), 60,
        lambda: cluster.account(kube.NAMESPACE))
    yield
    cluster.apply(*kube.example("upstreams.yaml"))


@pytest.fixture
def careful_team(cluster, team):
    cluster.apply(LIMITS, QUOTA, namespace=team)
    return team


def template(path):
    """A pod template that passes Pod Security "restricted", without a request of its own."""
    pod = kube.pod("x", INJECT)
    container, = pod["spec"]["containers"]
    container["command"] = script(path)
    return {"metadata": {"labels": dict(INJECT), "annotations": MODE}, "spec": pod["spec"]}


def job(name, path):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"backoffLimit": 0, "template": template(path)}}


def execute(cluster, namespace, pod, container, *command):
    return cluster.run("kubectl", "exec", pod, "-n", namespace, "-c", container, "--", *command, check=False)


def kill_cache(cluster, namespace, pod):
    """The process that serves, not the one that holds the sockets."""
    find = "for p in /proc/[0-9]*; do grep -q inherit-lin[k] $p/cmdline && kill -9 ${p#/proc/} && echo killed; done"
    done = execute(cluster, namespace, pod, SIDECAR, "bash", "-c", find)
    assert "killed" in done.stdout, f"{done.stdout}{done.stderr}\n{cluster.account(namespace)}"


def waiting_pods(cluster, namespace, count, container="client"):
    """The pods of a namespace, once all of them have read twice."""
    def names():
        return [pod["metadata"]["name"] for pod in cluster.items("pods", "-n", namespace, "-l", "nezha.io/inject=true")]

    def ready():
        pods = names()
        read = [execute(cluster, namespace, pod, container, "test", "-e", "/tmp/waiting") for pod in pods]
        return len(pods) == count and all(done.returncode == 0 for done in read)
    kube.until(f"{count} pods have read twice", ready, 120, lambda: cluster.account(namespace))
    return names()


def kill_and_go_on(cluster, namespace, pods, container="client"):
    for pod in pods:
        kill_cache(cluster, namespace, pod)
        execute(cluster, namespace, pod, container, "touch", "/tmp/go")


def sidecar_status(pod):
    return next(one for one in pod["status"]["initContainerStatuses"] if one["name"] == SIDECAR)


def expect_well_read(cluster, namespace, pods, sha256, container="client"):
    for name in pods:
        pod = cluster.get("pod", name, namespace)
        read = cluster.kubectl("logs", name, "-n", namespace, "-c", container).split()
        assert read == [sha256] * 4, f"{read}\n{cluster.account(namespace)}"
        assert sidecar_status(pod)["restartCount"] == 0, "its first process lived"
        status = json.loads(pod["metadata"]["annotations"]["nezha.io/status"])
        assert status["mode"] == "sidecar" and "www.cs.toronto.edu" in status["hosts"]


def expect_ended_well(cluster, namespace, pods):
    for name in pods:
        ended = kube.until(f"the sidecar of {name} ended", lambda name=name: sidecar_status(
            cluster.get("pod", name, namespace))["state"].get("terminated"), 60, lambda: cluster.account(namespace))
        assert ended["exitCode"] == 0, ended


def test_job_reads_on_while_its_cache_dies(cluster, sidecars, origin, careful_team):
    before = len(origin.requests(origin_server.ARCHIVE))
    cluster.apply(job("reads", origin_server.ARCHIVE), namespace=careful_team)
    pods = waiting_pods(cluster, careful_team, 1)
    assert len(origin.requests(origin_server.ARCHIVE)) == before + 1, "the second read is the cache's"
    kill_and_go_on(cluster, careful_team, pods)
    cluster.wait("job/reads", "condition=Complete", careful_team)
    expect_well_read(cluster, careful_team, pods, origin.archive_sha256)
    expect_ended_well(cluster, careful_team, pods)


def test_cron_job(cluster, sidecars, origin, careful_team):
    path = "/sidecar/cron"
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
            "spec": {"schedule": "0 3 1 1 *", "jobTemplate": {"spec": job("", path)["spec"]}}}
    cluster.apply(cron, namespace=careful_team)
    cluster.kubectl("create", "job", "now", "--from=cronjob/nightly", "-n", careful_team)
    pods = waiting_pods(cluster, careful_team, 1)
    kill_and_go_on(cluster, careful_team, pods)
    cluster.wait("job/now", "condition=Complete", careful_team)
    expect_well_read(cluster, careful_team, pods, digest(path))


def test_notebook_of_a_stateful_set(cluster, sidecars, origin, careful_team):
    path = "/sidecar/notebook"
    notebook = template(path)
    notebook["metadata"]["labels"]["app"] = "notebook"
    notebook["spec"].update(restartPolicy="Always", automountServiceAccountToken=False)
    notebook["spec"]["containers"][0]["command"][-1] += "\nsleep infinity"
    cluster.apply({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "notebook"}, "spec": {
        "serviceName": "notebook", "selector": {"matchLabels": {"app": "notebook"}}, "template": notebook}},
        namespace=careful_team)
    pods = waiting_pods(cluster, careful_team, 1)
    kill_and_go_on(cluster, careful_team, pods)
    kube.until("the notebook has read on", lambda: len(
        cluster.kubectl("logs", pods[0], "-n", careful_team, "-c", "client").split()) == 4, 60,
        lambda: cluster.account(careful_team))
    expect_well_read(cluster, careful_team, pods, digest(path))


@pytest.mark.parametrize("example, target, role, container", [
    ("tfjob.yaml", "tfjob/cifar-tf", None, "tensorflow"),
    ("pytorchjob.yaml", "pytorchjob/cifar-torch", "Master", "pytorch")])
def test_training_jobs_with_backoff_limit_0(
    cluster, sidecars, origin, operator, example, target, role, container  # noqa: F811
):
    path = f"/sidecar/{container}"
    training = with_client(kube.example(example)[0], script(path))
    specs = next(v for k, v in training["spec"].items() if k.endswith("ReplicaSpecs"))
    for name in list(specs):
        if role and name != role:
            del specs[name]  # others wait for it in an image of the operator's
        else:
            specs[name]["template"]["metadata"]["annotations"] = MODE
    training["spec"].setdefault("runPolicy", {})["backoffLimit"] = 0
    with cluster.namespace(f"sidecar-{container}") as namespace:
        cluster.apply(training, namespace=namespace)
        count = sum(spec["replicas"] for spec in specs.values())
        pods = waiting_pods(cluster, namespace, count, container)
        kill_and_go_on(cluster, namespace, pods, container)
        cluster.wait(target, "condition=Succeeded", namespace, 180)
        expect_well_read(cluster, namespace, pods, digest(path), container)


def digest(path):
    return hashlib.sha256(origin_server.small_body(path)).hexdigest()
