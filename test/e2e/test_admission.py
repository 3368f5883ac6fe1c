"""Which pods are changed, how, and which are not."""

import json
import os
import pathlib
import subprocess

import kube
import pytest
import yaml

INJECT = {"nezha.io/inject": "true"}
HOSTS = yaml.safe_load(kube.example("upstreams.yaml")[0]["data"]["config.yaml"])["upstreams"][0]["hosts"]


def test_labelled_pod_gets_the_cache_address_for_every_host(cluster, release, team):
    result = cluster.dry_run(kube.pod("labelled", INJECT), team)
    assert kube.aliases(result) == {release.cache_address(): HOSTS}
    status = json.loads(result["metadata"]["annotations"]["nezha.io/status"])
    assert status, "the pod does not tell what was done with it"


def test_pod_without_the_label_is_untouched(cluster, release, team):
    result = cluster.dry_run(kube.pod("plain"), team)
    assert not kube.aliases(result) and "annotations" not in result["metadata"]


def test_pod_that_opted_out_is_untouched(cluster, release, team):
    result = cluster.dry_run(kube.pod("out", {"nezha.io/inject": "false"}), team)
    assert not kube.aliases(result) and "annotations" not in result["metadata"]


def test_namespace_opts_in_and_a_pod_opts_out(cluster, release):
    with cluster.namespace("opted-in", INJECT) as namespace:
        assert kube.aliases(cluster.dry_run(kube.pod("plain"), namespace))
        assert kube.aliases(cluster.dry_run(kube.pod("labelled", INJECT), namespace))
        assert not kube.aliases(cluster.dry_run(kube.pod("out", {"nezha.io/inject": "false"}), namespace))


def test_system_and_own_namespaces_are_never_considered(cluster, release):
    for namespace in "kube-system", "kube-public", "kube-node-lease", kube.NAMESPACE:
        assert not kube.aliases(cluster.dry_run(kube.pod("labelled", INJECT), namespace)), namespace


def test_users_own_alias_wins(cluster, release, team):
    own = [{"ip": "10.9.8.7", "hostnames": ["www.cs.toronto.edu"]}]
    result = kube.aliases(cluster.dry_run(kube.pod("own", INJECT, hostAliases=own), team))
    assert result == {"10.9.8.7": ["www.cs.toronto.edu"], release.cache_address(): HOSTS[1:]}


def test_pod_of_a_replica_set_without_a_name(cluster, release, team):
    template = kube.pod("x", INJECT)
    template["metadata"] = {"generateName": "many-", "labels": INJECT}
    assert kube.aliases(cluster.dry_run(template, team))


def test_updates_of_a_running_pod_are_not_rewritten(cluster, release, team):
    cluster.apply(kube.pod("runs"), namespace=team)
    cluster.kubectl("label", "pod", "runs", "nezha.io/inject=true", "-n", team)
    assert not kube.aliases(cluster.get("pod", "runs", team))


def test_pod_that_is_created_equals_the_dry_run(cluster, release, team):
    expected = cluster.dry_run(kube.pod("same", INJECT), team)
    cluster.apply(kube.pod("same", INJECT), namespace=team)
    created = cluster.get("pod", "same", team)
    assert kube.aliases(created) == kube.aliases(expected)
    key = "nezha.io/status"
    assert created["metadata"]["annotations"][key] == expected["metadata"]["annotations"][key]
    cluster.wait("pod/same", "condition=Ready", team)
    hosts = cluster.kubectl("exec", "same", "-n", team, "--", "cat", "/etc/hosts")
    line = [line for line in hosts.splitlines() if line.startswith(release.cache_address())]
    assert len(line) == 1 and line[0].split()[1:] == HOSTS


@pytest.mark.parametrize("labels", [INJECT, {}, {"nezha.io/inject": "false"}], ids=["labelled", "plain", "out"])
def test_command_line_says_what_the_webhook_does(cluster, release, team, tmp_path, labels):
    configuration = yaml.safe_load(cluster.get("configmap", "nezha-config", kube.NAMESPACE)["data"]["config.yaml"])
    configuration["webhook"] = {"cacheAddress": release.cache_address()}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(configuration))
    pod = kube.pod("compared", labels)
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod))
    offline = yaml.safe_load(nezha("inject", "--config", tmp_path / "config.yaml", "-f", tmp_path / "pod.yaml"))
    online = cluster.dry_run(pod, team)
    assert kube.aliases(offline) == kube.aliases(online)
    assert offline["metadata"].get("annotations") == online["metadata"].get("annotations")
    explained = nezha("explain", "--config", tmp_path / "config.yaml", "-f", tmp_path / "pod.yaml")
    assert ("www.cs.toronto.edu" in explained) == bool(kube.aliases(online)), explained


def nezha(*arguments):
    """Runs the command that people type; it is built beside the programs that the images hold."""
    folder = pathlib.Path(os.environ.get("NEZHA_BUILD_DIR", kube.ROOT / "build"))
    done = subprocess.run([folder / "bin/nezha", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
