"""Nothing that happens to Nezha stops a pod."""

import base64
import http.client
import json
import os
import pathlib
import subprocess
import threading

import kube

INJECT = {"nezha.io/inject": "true"}


class Reviews:
    """Creates pods (as dry runs) one after another in a thread of its own, and counts those that were not injected."""

    def __init__(self, cluster, namespace):
        self._cluster = cluster
        self._path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
        self._body = json.dumps(kube.pod("reviewed", INJECT))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.total = 0
        self.missed = []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        connection = self._cluster.api()
        while not self._stop.is_set():
            try:
                connection.request("POST", self._path, self._body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                pod = json.loads(answer.read())
            except (OSError, http.client.HTTPException) as error:
                self.missed.append(repr(error))
                connection = self._cluster.api()
                continue
            self.total += 1
            if answer.status != 201 or not kube.aliases(pod):
                self.missed.append(f"{answer.status} {json.dumps(pod)[:300]}")

    def check(self):
        assert self.total > 20, f"only {self.total} reviews: this proves nothing"
        assert not self.missed, f"{len(self.missed)} of {self.total} were not injected, for example {self.missed[0]}"


def bundle(cluster):
    entry = cluster.get("mutatingwebhookconfiguration", "nezha")["webhooks"][0]
    return base64.b64decode(entry["clientConfig"].get("caBundle", ""))


def test_upgrade_twice_misses_no_review(cluster, release, team):
    secret = cluster.get("secret", "nezha-webhook-tls", kube.NAMESPACE)["data"]
    with Reviews(cluster, team) as reviews:
        for level in "debug", "info":
            release.upgrade("--set", f"webhook.logLevel={level},cache.logLevel={level}")
    reviews.check()
    assert cluster.get("secret", "nezha-webhook-tls", kube.NAMESPACE)["data"] == secret, "the certificate was lost"
    assert bundle(cluster)


def test_certificate_is_replaced_without_a_missed_review(cluster, release, team):
    old = bundle(cluster)
    with Reviews(cluster, team) as reviews:
        cluster.delete("secret", "nezha-webhook-tls", "-n", kube.NAMESPACE)
        kube.until("the Secret is made again", lambda: (
            cluster.get("secret", "nezha-webhook-tls", kube.NAMESPACE) or {}).get("data"), 90,
            lambda: cluster.account(kube.NAMESPACE))
        data = cluster.get("secret", "nezha-webhook-tls", kube.NAMESPACE)["data"]
        authority = base64.b64decode(data["ca.crt"]).strip()
        kube.until("the API server trusts the CA of the Secret", lambda: authority in bundle(cluster), 90,
                   lambda: cluster.account(kube.NAMESPACE))
        before = reviews.total
        kube.until("reviews go on", lambda: reviews.total > before + 50)
    reviews.check()
    assert old  # there was a certificate to replace


def test_pods_start_while_no_webhook_runs(cluster, release, team):
    cluster.kubectl("scale", "deployment/nezha-webhook", "-n", kube.NAMESPACE, "--replicas=0")
    try:
        kube.until("no webhook pod is left", lambda: not cluster.items(
            "pods", "-n", kube.NAMESPACE, "-l", "app.kubernetes.io/component=webhook"), 90)
        cluster.apply(kube.pod("unaided", INJECT), namespace=team)
        assert not kube.aliases(cluster.get("pod", "unaided", team))
        cluster.wait("pod/unaided", "condition=Ready", team)
        # Data still flows, from the server itself.
        code = cluster.kubectl("exec", "unaided", "-n", team, "--", "curl", "-s", "-o", "/dev/null",
                               "-w", "%{http_code}", "http://www.cs.toronto.edu/unaided")
        assert code == "200"
        listed = cluster.run("kubectl", "get", "namespaces,pods", "-A", "-o", "json").stdout
        folder = pathlib.Path(os.environ.get("NEZHA_BUILD_DIR", kube.ROOT / "build"))
        command = [folder / "bin/nezha", "status", "-f", "-"]
        told = subprocess.run(command, input=listed, capture_output=True, text=True)
        line, = (line for line in told.stdout.splitlines() if line.startswith(team))
        assert "unaided" in line and "missed" in line and told.returncode == 1, told.stdout
    finally:
        # That these start with no webhook there to ask shows that Nezha does not wait for itself.
        cluster.kubectl("scale", "deployment/nezha-webhook", "-n", kube.NAMESPACE, "--replicas=2")
        cluster.kubectl("rollout", "status", "deployment/nezha-webhook", "-n", kube.NAMESPACE, "--timeout=120s")
    release.until_injected(kube.pod("aided", INJECT), team)
    # Told where people look: on the pod, and in the metrics.
    kube.until("the missed pod has its Event", lambda: [event for event in cluster.items("events", "-n", team)
                                                       if event["reason"] == "NezhaMissed"
                                                       and event["involvedObject"]["name"] == "unaided"], 120,
               lambda: cluster.account(kube.NAMESPACE))
    webhook = cluster.items("pods", "-n", kube.NAMESPACE, "-l", "app.kubernetes.io/component=webhook")[0]
    metrics = cluster.metrics(webhook["metadata"]["name"], 9181)
    assert any(line.startswith("nezha_webhook_missed_pods ") and float(line.split()[1]) >= 1
               for line in metrics.splitlines()), metrics


def test_webhook_pod_that_is_killed_is_replaced_without_a_missed_review(cluster, release, team):
    names = [pod["metadata"]["name"] for pod in cluster.items(
        "pods", "-n", kube.NAMESPACE, "-l", "app.kubernetes.io/component=webhook")]
    with Reviews(cluster, team) as reviews:
        cluster.delete("pod", names[0], "-n", kube.NAMESPACE)
        cluster.kubectl("rollout", "status", "deployment/nezha-webhook", "-n", kube.NAMESPACE, "--timeout=120s")
    reviews.check()
