"""Every object of deploy/examples is accepted by the API server, or of the right shape where it has no such kind."""

import kube
import pytest
import yaml

NO_OBJECT = {"cache.yaml"}  # a file for nezha-cache --config: test/http/check_test.cc
EXAMPLES = sorted({path.name for path in (kube.ROOT / "deploy/examples").glob("*.yaml")} - NO_OBJECT)
# Kinds whose operators the test cluster does not run; where the label must stand in each.
LABEL_PLACES = {
    "SparkApplication": [("spec", "driver", "labels"), ("spec", "executor", "labels")],
    "Notebook": [("metadata", "labels")],
}
OPERATED = {"TFJob", "PyTorchJob", "MPIJob"}  # test_training_operator.py


def test_there_are_examples():
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(cluster, bare_release, name):
    for document in kube.example(name):
        kind = document["kind"]
        if kind in LABEL_PLACES:
            for place in LABEL_PLACES[kind]:
                node = document
                for key in place:
                    node = node[key]
                assert node.get("nezha.io/inject") == "true", f"{name}: no label at {'.'.join(place)}"
        elif kind not in OPERATED:
            namespace = document["metadata"].get("namespace", "default")
            if namespace == "team-a":
                document["metadata"]["namespace"] = "default"
            cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump(document))
