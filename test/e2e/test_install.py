"""`helm install` alone brings everything up, restricted, and what the chart renders is sound."""

import json

import kube
import yaml


def render(cluster, *arguments):
    return cluster.helm("template", "nezha", kube.ROOT / "charts/nezha", "-n", kube.NAMESPACE, *arguments)


def test_chart_lints_clean(cluster):
    done = cluster.run("helm", "lint", "--strict", kube.ROOT / "charts/nezha")
    assert "[ERROR]" not in done.stdout and "[WARNING]" not in done.stdout, done.stdout


def test_rendering_twice_gives_the_same_text(cluster):
    # Anything random in a chart makes GitOps tools apply it for ever.
    assert render(cluster) == render(cluster)


def test_every_rendering_passes_the_api_server(cluster):
    variants = [
        [],
        ["--set", "cache.storage.type=persistentVolumeClaim,cache.replicas=3"],
        ["--set", "cache.enabled=false,webhook.cacheAddress=10.96.7.7,webhook.delegation=false"],
        ["--set", "webhook.hostNetwork=true,webhook.replicas=1,webhook.ancestorFormat=false"],
        ["--set", "validation.actions={Deny}"], ["--set", "validation.enabled=false"],
        ["--set-json", 'cache.extraTiers=[{"medium":"pmem","path":"/pmem/nezha","size":"1Gi"}]',
         "--set-json", 'cache.extraVolumes=[{"name":"pmem","emptyDir":{}}]',
         "--set-json", 'cache.extraVolumeMounts=[{"name":"pmem","mountPath":"/pmem"}]'],
    ]
    with cluster.namespace("rendered"):
        for variant in variants:
            text = cluster.helm("template", "other", kube.ROOT / "charts/nezha", "-n", "rendered", *variant)
            cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)


def test_unknown_and_wrong_values_are_refused_by_name(cluster):
    cases = {"webhook.replica=2": "replica", "cache.storage.size=20GB": "/cache/storage/size",
             "webhook.failurePolicy=ignore": "/webhook/failurePolicy", "cache.storage.tierPercent=100": "tierPercent",
             "webhook.cacheAddress=cache": "/webhook/cacheAddress", "nosuch=1": "nosuch",
             "validation.actions={Warn,Deny}": "/validation/actions"}
    for value, place in cases.items():
        done = cluster.run("helm", "template", "nezha", kube.ROOT / "charts/nezha", "--set", value, check=False)
        assert done.returncode != 0 and place in done.stderr, f"{value}: {done.stderr}"


def test_every_value_of_the_chart_is_described(cluster):
    schema = json.loads((kube.ROOT / "charts/nezha/values.schema.json").read_text())
    values = yaml.safe_load((kube.ROOT / "charts/nezha/values.yaml").read_text())

    def resolve(node):
        return resolve(schema["definitions"][node["$ref"].rsplit("/", 1)[1]]) if "$ref" in node else node

    def check(node, value, path):
        node = resolve(node)
        if "properties" not in node:
            return
        assert node.get("additionalProperties") is False, f"{path} lets unknown keys pass"
        missing = set(node["properties"]) - set(value) - {"global", "claims"}
        assert not missing, f"{path}: the schema has {missing}, values.yaml does not"
        for key, inner in value.items():
            check(node["properties"][key], inner, f"{path}.{key}")

    check(schema, values, "values")


def test_install_needs_no_manual_step(cluster, bare_release):
    for name, replicas in {"nezha-webhook": 2, "nezha-cache": 1}.items():
        status = cluster.get("deployment", name, kube.NAMESPACE)["status"]
        assert status["readyReplicas"] == replicas, status
    configuration = cluster.get("mutatingwebhookconfiguration", "nezha")
    for entry in configuration["webhooks"]:
        assert entry["clientConfig"].get("caBundle"), f"{entry['name']} has no caBundle"
        assert entry["failurePolicy"] == "Ignore" and entry["sideEffects"] == "None"
        assert entry["reinvocationPolicy"] == "IfNeeded" and entry["timeoutSeconds"] == 5
    assert cluster.get("secret", "nezha-webhook-tls", kube.NAMESPACE)["data"]
    assert cluster.get("poddisruptionbudget", "nezha-webhook", kube.NAMESPACE)["status"]["disruptionsAllowed"] == 1


def test_pods_of_the_release_pass_pod_security_restricted(cluster, bare_release):
    # The API server checks the pods that are there and warns about each that would be refused.
    label = ["label", "--overwrite", "namespace", kube.NAMESPACE, "pod-security.kubernetes.io/enforce=restricted"]
    done = cluster.run("kubectl", *label)
    assert "Warning" not in done.stderr, done.stderr
    cluster.kubectl("rollout", "restart", "deployment", "-n", kube.NAMESPACE)
    for name in "nezha-webhook", "nezha-cache":
        cluster.kubectl("rollout", "status", "deployment", name, "-n", kube.NAMESPACE, "--timeout=120s")


def test_the_webhook_may_do_what_it_must_and_no_more(cluster, bare_release):
    def may(account, verb, what, namespace=kube.NAMESPACE):
        done = cluster.run("kubectl", "auth", "can-i", verb, what, "-n", namespace,
                           f"--as=system:serviceaccount:{kube.NAMESPACE}:{account}", check=False)
        return done.stdout.strip() == "yes"

    assert may("nezha-webhook", "update", "secrets/nezha-webhook-tls")
    assert not may("nezha-webhook", "get", "secrets/other")
    assert not may("nezha-webhook", "list", "secrets")
    assert not may("nezha-webhook", "get", "secrets/nezha-webhook-tls", "default")
    assert not may("nezha-webhook", "create", "pods") and not may("nezha-webhook", "get", "pods/any", "default")
    assert may("nezha-webhook", "list", "pods", "default") and may("nezha-webhook", "create", "events", "default")
    assert not may("nezha-webhook", "list", "secrets", "default")
    assert may("nezha-cache", "watch", "configmaps/nezha-config")
    assert not may("nezha-cache", "list", "configmaps") and not may("nezha-cache", "get", "secrets")
