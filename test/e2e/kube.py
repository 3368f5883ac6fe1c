"""The test cluster as the tests see it: kubectl, helm, the API over HTTPS, and waits that say what they waited for.

The process that holds a Cluster enters its network namespace, so everything it starts runs there too.
"""

import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "test/cluster/cluster.sh"
DIR = pathlib.Path(os.environ.get("NEZHA_CLUSTER_DIR", pathlib.Path.home() / ".cache/nezha-cluster"))
NAMESPACE = "nezha-system"
API = "10.200.0.1"
CLONE_NEWNET = 0x40000000


def until(what, predicate, seconds=60, explain=None):
    """Asks `predicate` again and again until it gives a true value, and returns that; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {seconds} s: {what}" + (f"\n{explain()}" if explain else ""))
        time.sleep(0.1)


class Cluster:
    def __init__(self):
        self.kubeconfig = DIR / "pki/admin.kubeconfig"
        self._outside = None

    # Life.

    def script(self, *arguments):
        subprocess.run([SCRIPT, *arguments], check=True, stdin=subprocess.DEVNULL)

    def is_up(self):
        return subprocess.run([SCRIPT, "status"], capture_output=True, stdin=subprocess.DEVNULL).returncode == 0

    def enter(self):
        self._outside = os.open("/proc/self/ns/net", os.O_RDONLY)
        inside = os.open("/run/netns/nezha", os.O_RDONLY)
        _set_namespace(inside)
        os.close(inside)

    def leave(self):
        if self._outside is not None:
            _set_namespace(self._outside)
            os.close(self._outside)
            self._outside = None

    # kubectl and helm.

    def run(self, program, *arguments, stdin=None, check=True, timeout=180):
        done = subprocess.run(
            [DIR / "bin" / program, *map(str, arguments)], input=stdin, text=True, capture_output=True, timeout=timeout,
            stdin=subprocess.DEVNULL if stdin is None else None,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)})
        if check and done.returncode != 0:
            raise AssertionError(f"{program} {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
        return done

    def kubectl(self, *arguments, **options):
        return self.run("kubectl", *arguments, **options).stdout

    def helm(self, *arguments, **options):
        return self.run("helm", *arguments, **options).stdout

    def get(self, kind, name, namespace="default"):
        """The object, or None when it does not exist."""
        done = self.run("kubectl", "get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        return json.loads(done.stdout) if done.stdout else None

    def items(self, kind, *arguments):
        return json.loads(self.kubectl("get", kind, "-o", "json", *arguments))["items"]

    def apply(self, *objects, namespace=None):
        text = yaml.safe_dump_all(objects)
        return self.kubectl("apply", "-f", "-", *(["-n", namespace] if namespace else []), stdin=text)

    def delete(self, *arguments):
        self.kubectl("delete", "--ignore-not-found", "--wait=true", *arguments)

    @contextlib.contextmanager
    def namespace(self, name, labels=None):
        """A namespace for one test, ready for pods, gone afterwards."""
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}})
        until(f"namespace {name} has its service account", lambda: self.get("serviceaccount", "default", name))
        try:
            yield name
        finally:
            self.kubectl("delete", "namespace", name, "--wait=false")

    def dry_run(self, pod, namespace="default"):
        """The pod as the API server would store it: admission is run, nothing is created."""
        text = self.kubectl("create", "--dry-run=server", "-o", "json", "-n", namespace, "-f", "-",
                            stdin=json.dumps(pod))
        return json.loads(text)

    # Waits.

    def wait(self, target, condition, namespace="default", seconds=120):
        """kubectl wait; on failure tells what there is to know about the target and its pods."""
        done = self.run("kubectl", "wait", f"--for={condition}", target, "-n", namespace, f"--timeout={seconds}s",
                        check=False, timeout=seconds + 30)
        if done.returncode != 0:
            raise AssertionError(f"{target} in {namespace}: no {condition} within {seconds} s\n{done.stderr}"
                                 + self.account(namespace, target))

    def job_logs(self, name, namespace="default", seconds=180):
        """Waits for the Job to complete and returns what its pods wrote."""
        self.wait(f"job/{name}", "condition=Complete", namespace, seconds)
        return self.kubectl("logs", f"job/{name}", "-n", namespace)

    def account(self, namespace, target=None):
        """Pods, events and logs of a namespace, for a failure's message."""
        parts = []
        commands = [["get", "pods", "-o", "wide"], ["get", "events", "--sort-by=.lastTimestamp"]]
        if target:
            commands.insert(0, ["describe", target])
        for command in commands:
            done = self.run("kubectl", *command, "-n", namespace, check=False)
            parts.append(f"--- kubectl {' '.join(command)} -n {namespace}\n{(done.stdout + done.stderr)[-3000:]}")
        for pod in self.items("pods", "-n", namespace)[-6:]:
            name = pod["metadata"]["name"]
            done = self.run("kubectl", "logs", name, "-n", namespace, "--all-containers", "--tail=40", check=False)
            parts.append(f"--- logs of {name}\n{done.stdout}{done.stderr}")
        return "\n".join(parts)

    # The API itself, for many calls in a row.

    def api(self):
        """A connection to the API server as an administrator. One thread at a time."""
        trust = ssl.create_default_context(cafile=DIR / "pki/ca.crt")
        trust.load_cert_chain(DIR / "pki/admin.crt", DIR / "pki/admin.key")
        return http.client.HTTPSConnection(API, 6443, context=trust, timeout=30)

    def metrics(self, pod, port, namespace=NAMESPACE):
        address = self.get("pod", pod, namespace)["status"]["podIP"]
        connection = http.client.HTTPConnection(address, port, timeout=10)
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()


def _set_namespace(descriptor):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def example(name, **replacements):
    """A file of deploy/examples as objects, with text replaced: the tests run what users are shown."""
    text = (ROOT / "deploy/examples" / name).read_text()
    for old, new in replacements.items():
        text = text.replace(old, new)
    return list(yaml.safe_load_all(text))


def pod(name, labels=None, **spec):
    """A small pod of the client image that passes Pod Security "restricted"."""
    container = {
        "name": "client", "image": "localhost/client:test", "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "infinity"],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "containers": [container], "terminationGracePeriodSeconds": 0, "restartPolicy": "Never",
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}},
            **spec,
        },
    }


def aliases(pod_object):
    """hostAliases as {ip: [names]}."""
    return {item["ip"]: item.get("hostnames", []) for item in pod_object["spec"].get("hostAliases", [])}
