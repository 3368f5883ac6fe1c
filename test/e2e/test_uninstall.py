"""Last of all, by its name: `helm uninstall` leaves nothing, and another name in another namespace works as well."""

import kube

# What a namespace has by itself, and what is recorded about the past.
NATURAL = ("configmap/kube-root-ca.crt", "serviceaccount/default", "event/", "event.events.k8s.io/", "lease.")


def everything(cluster, namespace):
    kinds = cluster.kubectl("api-resources", "--verbs=list", "--namespaced=true", "-o", "name").split()
    own = cluster.kubectl("get", ",".join(kinds), "-n", namespace, "-o", "name").split()
    wide = cluster.kubectl(
        "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,"
        "validatingadmissionpolicybindings,clusterroles,clusterrolebindings,customresourcedefinitions,"
        "persistentvolumes,priorityclasses", "-o", "name").split()
    return {name for name in own if not name.startswith(NATURAL)} | {name for name in wide if "nezha" in name}


def until_nothing_is_left(cluster, namespace):
    kube.until(f"nothing of the release is left in {namespace}", lambda: not everything(cluster, namespace), 90,
               lambda: f"left: {everything(cluster, namespace)}")


def leave_a_bundle(cluster):
    """As interception does in a namespace of users."""
    config_map, = kube.example("upstreams.yaml")
    data = config_map["data"]
    data["config.yaml"] = data["config.yaml"].replace("tls: passthrough", "tls: intercept")
    cluster.apply(config_map, {"apiVersion": "v1", "kind": "Namespace",
                               "metadata": {"name": "bundled", "labels": {"nezha.io/inject": "true"}}})
    kube.until("the namespace has its bundle", lambda: cluster.kubectl(
        "get", "configmaps", "-n", "bundled", "-l", "nezha.io/trust=true", "-o", "name").split(), 60,
        lambda: cluster.account(kube.NAMESPACE))


def test_uninstall_leaves_nothing(cluster, release):
    leave_a_bundle(cluster)
    cluster.delete("configmap", "nezha-config", "-n", kube.NAMESPACE)  # the admin's, not the chart's
    cluster.helm("uninstall", "nezha", "-n", kube.NAMESPACE, "--wait")
    until_nothing_is_left(cluster, kube.NAMESPACE)
    kube.until("nothing is left in users' namespaces", lambda: not cluster.kubectl(
        "get", "configmaps,secrets", "-A", "-l", "nezha.io/trust=true", "-o", "name").split(), 90)
    result = cluster.dry_run(kube.pod("later", {"nezha.io/inject": "true"}))
    assert not kube.aliases(result)


def test_another_name_in_another_namespace(cluster, bare_release):
    assert cluster.run("helm", "status", "nezha", "-n", kube.NAMESPACE, check=False).returncode != 0
    config_map, = kube.example("upstreams.yaml")
    config_map["metadata"]["namespace"] = "elsewhere"
    bare_release.install("fast", "elsewhere", "--set", "webhook.replicas=1")
    cluster.apply(config_map)
    bare_release.until_injected(kube.pod("p", {"nezha.io/inject": "true"}))
    address = cluster.get("service", "fast-nezha-cache", "elsewhere")["spec"]["clusterIP"]
    assert list(kube.aliases(cluster.dry_run(kube.pod("p", {"nezha.io/inject": "true"})))) == [address]
    assert not kube.aliases(cluster.dry_run(kube.pod("p", {"nezha.io/inject": "true"}), "elsewhere"))
    cluster.delete("configmap", "nezha-config", "-n", "elsewhere")
    cluster.helm("uninstall", "fast", "-n", "elsewhere", "--wait")
    until_nothing_is_left(cluster, "elsewhere")
