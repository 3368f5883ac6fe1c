"""Real S3 servers that verify every signature: moto and versitygw. Each runs twice: once for clients that reach it
directly, once behind the cache, so that both are in the same state when both were asked the same.

Each twin stands behind a gate (gate.py) that notes what it is asked, at an address of its own, port 80.
"""

import importlib.metadata
import os
import shutil
import sys
from pathlib import Path

from clients.process import CLIENTS, INSTALLED, Client

HERE = Path(__file__).resolve().parent
REGION = "eu-west-1"
OWNER = {"access": "AKIANEZHAOWNER000001", "secret": "owner-secret-0c9d8b7a6f5e4d3c2b1a0f9e8d7c6b5a"}
OTHER = {"access": "AKIANEZHAOTHER000002", "secret": "other-secret-1f2e3d4c5b6a79880716253443526170"}
REVOKED = {"access": "AKIANEZHAREVOKED0003", "secret": "revoked-secret-99aa88bb77cc66dd55ee44ff33001122"}
ADMIN_USER = {"access": "AKIANEZHAADMIN000004", "secret": "admin-secret-5566778899aabbccddeeff0011223344"}
BUCKET = "team-data"
VERSIONED = "team-history"
SEED = "7"


class Gate:
    """The gate in front of one twin."""

    def __init__(self, world, name, listen, target):
        self.log = world.folder / f"{name}.requests"
        output = world.folder / f"{name}.answers"
        os.mkfifo(output)
        command = f"exec {sys.executable} {HERE}/gate.py {listen} {target} {self.log} > {output}"
        self._process = world.start_unawaited(name, ["sh", "-c", command])
        self._answers = open(output, encoding="utf-8")
        world.await_listening(name, listen)

    def say(self, *words):
        self._process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self._process.stdin.flush()
        if (answer := self._answers.readline()) != "ok\n":
            raise RuntimeError(f"the gate said {answer!r} to {words}")


class Twin:
    """One of the two running servers of a kind."""

    def __init__(self, world, server, number):
        self.world, self.server = world, server
        self.name = f"{server.name}-{number}"
        self.ip = f"10.88.0.{server.first_ip + number}"
        self.endpoint = f"http://{self.ip}"
        self.backend = f"127.0.0.1:{server.first_port + number}"
        server.start(self)
        self.gate = Gate(world, f"gate-{self.name}", f"{self.ip}:80", self.backend)

    def client(self, credentials, bucket=BUCKET, name="boto3"):
        """A client that talks to this twin alone, by its address."""
        return Client(CLIENTS[name], self.world.direct, self.endpoint, bucket, credentials)


class Server:
    """A kind of server: `host` is what clients call it, `hosts` all its names, `owner` who owns both buckets.

    By the name `known_host` the cache has the keys of all users, and asks again after a while only.
    """

    name = host = known_host = ""
    first_ip = first_port = 0

    def __init__(self, world):
        self.world = world
        self.owner, self.other, self.revoked = OWNER, OTHER, REVOKED
        self.twins = [Twin(world, self, number) for number in (0, 1)]
        for twin in self.twins:
            self.make_users(twin)
            with twin.client(self.owner) as owner:
                owner.must("create_bucket", bucket=BUCKET)
                owner.must("create_bucket", bucket=VERSIONED)
                owner.must("turn_on_versions", bucket=VERSIONED)

    @property
    def hosts(self):
        return [self.host, f"{BUCKET}.{self.host}", f"{VERSIONED}.{self.host}"]

    @property
    def endpoint(self):
        return f"http://{self.host}"

    def version(self):
        raise NotImplementedError

    def start(self, twin):
        raise NotImplementedError

    def make_users(self, twin):
        raise NotImplementedError

    def revoke(self, twin):
        """The key REVOKED is not valid any more from now on."""
        raise NotImplementedError


class Moto(Server):
    """Verifies V4 signatures in headers; signed URLs are not verified. Users have no rights but by their policies."""

    name, host = "moto", "s3.eu-west-1.amazonaws.com"
    known_host = "s3-eu-west-1.amazonaws.com"
    first_ip, first_port = 2, 5100

    def version(self):
        return f"moto {importlib.metadata.version('moto')}"

    def start(self, twin):
        host, port = twin.backend.split(":")
        command = [sys.executable, "-m", "moto.server", "-H", host, "-p", port]
        twin.world.start(twin.name, command, twin.backend, INITIAL_NO_AUTH_ACTION_COUNT="3")

    def make_users(self, twin):
        with twin.client({"access": "none", "secret": "none"}) as nobody:
            nobody.must("ask_url", method="POST", url=f"http://{twin.backend}/moto-api/seed?a={SEED}")
            self.owner = nobody.must("make_user", user="owner", may="*")  # the three calls that need no signature
        with twin.client(self.owner) as owner:
            self.other = owner.must("make_user", user="other", may=None)
            self.revoked = owner.must("make_user", user="revoked", may="*")

    def revoke(self, twin):
        with twin.client(self.owner) as owner:
            owner.must("end_user", user="revoked", access=self.revoked["access"])


class Versitygw(Server):
    """Verifies V4 signatures in headers and in URLs; a bucket is its owner's alone."""

    name, host = "versitygw", "s3.lab.example"
    known_host = "known-s3.example"
    first_ip, first_port = 4, 5200

    @property
    def program(self):
        return INSTALLED / "bin/versitygw"

    def version(self):
        return "versitygw " + (INSTALLED / "stamp/versitygw").read_text().rpartition("@")[2]

    def start(self, twin):
        folders = {name: twin.world.folder / twin.name / name for name in ("data", "versions", "iam")}
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        command = [self.program, "--port", twin.backend, "--region", REGION, "--virtual-domain", self.host]
        command += ["--iam-dir", folders["iam"], "--iam-cache-disable", "posix"]
        command += ["--versioning-dir", folders["versions"], folders["data"]]
        keys = {"ROOT_ACCESS_KEY": ADMIN_USER["access"], "ROOT_SECRET_KEY": ADMIN_USER["secret"]}
        twin.world.start(twin.name, command, twin.backend, **keys)

    def make_users(self, twin):
        for user, role in ((OWNER, "userplus"), (OTHER, "user"), (REVOKED, "userplus")):
            keys = ["--access", user["access"], "--secret", user["secret"], "--role", role]
            self._admin(twin, "create-user", *keys)

    def revoke(self, twin):
        self._admin(twin, "delete-user", "--access", REVOKED["access"])

    def _admin(self, twin, *command):
        keys = ["--access", ADMIN_USER["access"], "--secret", ADMIN_USER["secret"]]
        endpoint = ["--endpoint-url", f"http://{twin.backend}", "--region", REGION]
        twin.world.direct.run([self.program, "admin", *keys, *endpoint, *command])


class Radosgw(Server):
    """Ceph's: verifies V2 and V4 signatures, in headers and in URLs. A bucket is its owner's alone; the key that will
    be revoked is the owner's second one.
    """

    name, host = "radosgw", "s3.ceph.example"
    known_host = "known-ceph.example"
    first_ip, first_port = 6, 5300

    def version(self):
        said = self.world.direct.run(["radosgw", "--version"])
        return "radosgw " + said.split()[2]

    def _folder(self, twin):
        return twin.world.folder / twin.name

    def start(self, twin):
        monitor = self.first_port + 50 + int(twin.name[-1])
        command = [HERE / "radosgw.sh", self._folder(twin), twin.backend, monitor, self.host, REGION]
        twin.world.start(twin.name, command, twin.backend)

    def make_users(self, twin):
        for user, keys in (("owner", OWNER), ("other", OTHER)):
            self._admin(twin, "user", "create", f"--uid={user}", f"--display-name={user}", *self._keys(keys))
        self._admin(twin, "key", "create", "--uid=owner", *self._keys(REVOKED))

    def revoke(self, twin):
        self._admin(twin, "key", "rm", "--uid=owner", f"--access-key={REVOKED['access']}")

    @staticmethod
    def _keys(user):
        return f"--access-key={user['access']}", f"--secret-key={user['secret']}"

    def _admin(self, twin, *command):
        twin.world.direct.run(["radosgw-admin", "-c", self._folder(twin) / "ceph.conf", *command])
