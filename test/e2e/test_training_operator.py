"""Distributed jobs of the real training-operator: the label stands in each replica's template."""

import hashlib
import json

import kube
import origin_server
import pytest
import yaml

OPERATOR_NAMESPACE = "kubeflow"


@pytest.fixture(scope="module")
def operator(cluster):
    manifests = kube.DIR / "training-operator/overlays/standalone"
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", manifests)
    patch = {"spec": {"template": {"spec": {"containers": [
        {"name": "training-operator", "image": "localhost/training-operator:test",
         "imagePullPolicy": "IfNotPresent"}]}}}}
    cluster.kubectl("patch", "deployment/training-operator", "-n", OPERATOR_NAMESPACE, "-p", json.dumps(patch))
    try:
        cluster.kubectl("rollout", "status", "deployment/training-operator", "-n", OPERATOR_NAMESPACE, "--timeout=180s")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{cluster.account(OPERATOR_NAMESPACE)}") from None
    for kind in "tfjobs", "pytorchjobs", "mpijobs":
        cluster.wait(f"crd/{kind}.kubeflow.org", "condition=Established")


def with_client(document, command):
    """The example with the tests' image and command, and no more CPU than the node has."""
    for role in next(v for k, v in document["spec"].items() if k.endswith("ReplicaSpecs")).values():
        for container in role["template"]["spec"]["containers"]:
            container.update(image="localhost/client:test", imagePullPolicy="IfNotPresent", command=command)
            container["resources"] = {"requests": {"cpu": "10m", "memory": "32Mi"}}
    return document


def test_tfjob_is_injected_in_every_role_and_completes(cluster, release, origin, operator):
    before = len(origin.requests("/tfjob/file"))
    command = ["bash", "-c", "set -o pipefail; curl -sS --fail http://www.cs.toronto.edu/tfjob/file | sha256sum"]
    job = with_client(kube.example("tfjob.yaml")[0], command)
    with cluster.namespace("training") as namespace:
        cluster.apply(job, namespace=namespace)
        cluster.wait("tfjob/cifar-tf", "condition=Succeeded", namespace, 240)
        pods = cluster.items("pods", "-n", namespace)
        roles = sorted(pod["metadata"]["labels"]["training.kubeflow.org/replica-type"] for pod in pods)
        assert roles == ["ps", "worker", "worker"]
        for pod in pods:
            name = pod["metadata"]["name"]
            assert kube.aliases(pod), f"{name} was not injected"
            cluster.wait(f"pod/{name}", "jsonpath={.status.phase}=Succeeded", namespace)
            expected = origin_server.small_body("/tfjob/file")
            assert cluster.kubectl("logs", name, "-n", namespace).split()[0] == _sha256(expected)
    assert len(origin.requests("/tfjob/file")) == before + 1


@pytest.mark.parametrize("name", ["tfjob.yaml", "pytorchjob.yaml", "mpijob.yaml"])
def test_examples_are_valid_for_the_operator(cluster, operator, name):
    for document in kube.example(name):
        cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(document))


def _sha256(data):
    return hashlib.sha256(data).hexdigest()
