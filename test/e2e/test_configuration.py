"""Configuration that changes while everything runs: our format, a team's own rules, the predecessor's, and mistakes."""

import contextlib

import kube
import yaml

INJECT = {"nezha.io/inject": "true"}


def settings():
    config_map = kube.example("upstreams.yaml")[0]
    return config_map, yaml.safe_load(config_map["data"]["config.yaml"])


def with_text(config_map, text):
    return {**config_map, "data": {"config.yaml": text if isinstance(text, str) else yaml.safe_dump(text)}}


@contextlib.contextmanager
def restored(release):
    """Puts the example back in force, whatever the test did to it."""
    try:
        yield
    finally:
        release.configure(*kube.example("upstreams.yaml"))


def events_on(cluster, name, namespace=kube.NAMESPACE):
    return [event["message"] for event in cluster.items(
        "events", "-n", namespace, f"--field-selector=involvedObject.name={name}")]


def until_event(cluster, name, text, namespace=kube.NAMESPACE):
    return kube.until(f"an event on {name} says {text}",
                      lambda: [m for m in events_on(cluster, name, namespace) if text in m], 60,
                      lambda: "\n".join(events_on(cluster, name, namespace)) + cluster.account(kube.NAMESPACE))


def test_mistake_is_named_by_an_event_and_the_last_good_configuration_stays(cluster, release, team):
    before = kube.aliases(cluster.dry_run(kube.pod("p", INJECT), team))
    config_map, wrong = settings()
    wrong["upstreams"][0]["hosts"][1] = "*.lecun.com"
    with restored(release):
        cluster.apply(with_text(config_map, wrong))
        until_event(cluster, "nezha-config", "upstreams[0].hosts[1]")
        for _ in range(20):
            assert kube.aliases(cluster.dry_run(kube.pod("p", INJECT), team)) == before
        assert release.cache_knows_the_upstream()


def test_text_that_is_no_yaml_and_unknown_keys_are_named(cluster, release):
    config_map, unknown = settings()
    unknown["upstreams"][0]["host"] = "a.example.org"
    with restored(release):
        cluster.apply(with_text(config_map, unknown))
        until_event(cluster, "nezha-config", "upstreams[0].host")
        cluster.apply(with_text(config_map, "upstreams: [\n"))
        until_event(cluster, "nezha-config", "line ")


def test_a_change_is_live_in_webhook_and_cache(cluster, release, origin, team):
    config_map, changed = settings()
    changed["upstreams"].append({"name": "more", "hosts": ["more.example.org"]})
    changed["injection"][0]["upstreams"].append("more")
    cluster.script("host", "more.example.org", origin.address)
    cluster.apply(kube.pod("client"), namespace=team)
    cluster.wait("pod/client", "condition=Ready", team)
    fetch = ["exec", "client", "-n", team, "--", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}",
             "--resolve", f"more.example.org:80:{release.cache_address()}", "http://more.example.org/change"]
    assert cluster.kubectl(*fetch) == "421"
    with restored(release):
        cluster.apply(with_text(config_map, changed))
        kube.until("new pods get the new host", lambda: all(
            "more.example.org" in kube.aliases(cluster.dry_run(kube.pod("p", INJECT), team))[release.cache_address()]
            for _ in range(10)), 60, lambda: cluster.account(kube.NAMESPACE))
        kube.until("the cache serves the new host", lambda: cluster.kubectl(*fetch) == "200", 60,
                   lambda: cluster.account(kube.NAMESPACE))
    kube.until("the cache refuses the host again", lambda: cluster.kubectl(*fetch) == "421", 60)


def test_delegated_rules_hold_in_their_namespace_only(cluster, release, team):
    config_map, delegating = settings()
    delegating["delegation"] = [{"namespaces": ["team-a"], "upstreams": ["public-datasets"]}]
    notebook = kube.pod("notebook", {"app": "notebook"})
    with restored(release), cluster.namespace("team-a"):
        cluster.apply(with_text(config_map, delegating))
        cluster.apply(*kube.example("delegation.yaml"))
        release.until_injected(notebook, "team-a")
        assert not kube.aliases(cluster.dry_run(notebook, team))
        assert not kube.aliases(cluster.dry_run(kube.pod("other", {"app": "other"}), "team-a"))
        cluster.delete("configmap", "nezha-rules", "-n", "team-a")
        kube.until("the rule is gone with its ConfigMap", lambda: not any(
            kube.aliases(cluster.dry_run(notebook, "team-a")) for _ in range(10)))


def test_rules_of_a_namespace_that_was_not_allowed_are_refused(cluster, release, team):
    rules = kube.example("delegation.yaml")[0]
    rules["metadata"]["namespace"] = team
    cluster.apply(rules)
    messages = until_event(cluster, "nezha-rules", "delegation", team)
    assert messages and not kube.aliases(cluster.dry_run(kube.pod("n", {"app": "notebook"}), team))


def test_predecessors_format(cluster, release):
    with cluster.namespace("ancestor", {"hostaliases-injector": "enabled"}) as namespace:
        cluster.apply(*kube.example("hostaliases-config.yaml"))
        try:
            release.until_injected(kube.pod("p", {"app": "cifar"}), namespace)
            result = kube.aliases(cluster.dry_run(kube.pod("p", {"app": "cifar"}), namespace))
            assert result == {"10.96.12.34": ["www.cs.toronto.edu"]}
            assert not kube.aliases(cluster.dry_run(kube.pod("p", {"app": "other"}), namespace))
            assert not kube.aliases(cluster.dry_run(kube.pod("p", {"app": "cifar"})))
        finally:
            cluster.delete("configmap", "hostaliases-config", "-n", kube.NAMESPACE)
