"""What another webhook removes from an injected pod is noticed: its annotation says more than is left."""

import json

import kube
from test_download import INJECT

STATUS = {"rule": "default", "mode": "central", "hosts": ["www.cs.toronto.edu", "yann.lecun.com"], "reasons": []}


def stripped(name, status, **spec):
    """A pod as it is stored after others had it: nobody adds to it, because it does not opt in."""
    pod = kube.pod(name, **spec)
    pod["metadata"]["annotations"] = {"nezha.io/status": json.dumps(status, separators=(",", ":"))}
    return pod


def told(cluster, pod, namespace):
    done = cluster.run("kubectl", "create", "--dry-run=server", "-f", "-", "-n", namespace, stdin=json.dumps(pod),
                       check=False)
    return done.returncode, done.stderr


def test_whoever_creates_a_stripped_pod_is_warned(cluster, release, team):
    aliases = [{"ip": "10.96.0.9", "hostnames": ["www.cs.toronto.edu"]}]
    cases = {
        "hostAliases lack www.cs.toronto.edu, yann.lecun.com": stripped("bare", STATUS),
        "hostAliases lack yann.lecun.com": stripped("half", STATUS, hostAliases=aliases),
        "no init container nezha-cache": stripped("alone", STATUS | {"mode": "sidecar", "hosts": []}),
    }
    for words, pod in cases.items():
        # A policy takes a moment to be in force.
        kube.until(f"a warning: {words}", lambda pod=pod, words=words: words in told(cluster, pod, team)[1], 60,
                   lambda pod=pod: told(cluster, pod, team))
        assert told(cluster, pod, team)[0] == 0, "warned, not refused"


def test_other_pods_are_not_warned_about(cluster, release, team):
    opted_out = stripped("empty", STATUS | {"hosts": []})
    for pod in kube.pod("injected", INJECT), kube.pod("plain"), opted_out:
        assert told(cluster, pod, team) == (0, ""), pod["metadata"]["name"]


def test_it_may_refuse_instead(cluster, release, team):
    pod = stripped("bare", STATUS)
    patch = {"spec": {"validationActions": ["Deny"]}}
    binding = "validatingadmissionpolicybinding/nezha"
    cluster.kubectl("patch", binding, "--type=merge", "-p", json.dumps(patch))
    try:
        kube.until("it is refused", lambda: told(cluster, pod, team)[0] != 0, 60)
        assert "hostAliases lack" in told(cluster, pod, team)[1]
        assert told(cluster, kube.pod("injected", INJECT), team)[0] == 0
    finally:
        patch = {"spec": {"validationActions": ["Warn", "Audit"]}}
        cluster.kubectl("patch", binding, "--type=merge", "-p", json.dumps(patch))
