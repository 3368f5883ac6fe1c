"""The cache between the cached way and the servers' second twins."""

import os
from pathlib import Path

from world import ADMIN, CACHE_IP

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("NEZHA_BUILD_DIR", ROOT / "build")) / "bin/nezha-cache"

CONFIGURATION = """\
listen: {{http: ["{ip}:80"], admin: "{admin}"}}
cache:
  memory: 512Mi
  credentialsDirectory: {folder}/keys
  tiers:
    - {{medium: memory, size: 64Mi}}
    - {{medium: nvme, path: {folder}/tier, size: 1Gi}}
upstreams:
"""


class Cache:
    def __init__(self, world, servers, freshness="{mode: revalidate}"):
        self._world = world
        self.folder = world.folder / "cache"
        self.folder.mkdir()
        text = CONFIGURATION.format(ip=CACHE_IP, admin=ADMIN, folder=self.folder)
        for server in servers:
            text += f"  - name: {server.name}\n    protocol: s3\n    hosts: [{', '.join(server.hosts)}]\n"
            text += f"    endpoint: {server.twins[1].endpoint}:80\n    freshness: {freshness}\n"
            text += f"  - name: known-{server.name}\n    protocol: s3\n    hosts: [{server.known_host}]\n"
            text += f"    endpoint: {server.twins[1].endpoint}:80\n    freshness: {{ttl: 1h}}\n"
            text += f"    credentialsSecretRef: {{name: {server.name}}}\n"
            self._mount_keys(server)
        (self.folder / "cache.yaml").write_text(text)
        world.start("nezha-cache", [PROGRAM, "--config", self.folder / "cache.yaml"], f"{CACHE_IP}:80")

    def _mount_keys(self, server):
        folder = self.folder / "keys" / server.name
        folder.mkdir(parents=True)
        (folder / "accessKeyId").write_text(server.owner["access"])
        (folder / "secretAccessKey").write_text(server.owner["secret"])
        readers = (server.other, server.revoked)
        (folder / "readers").write_text("".join(f"{user['access']} {user['secret']}\n" for user in readers))

    def metrics_text(self):
        return self._world.direct.run(["curl", "-sS", "--fail", f"http://{ADMIN}/metrics"])

    def answered(self):
        """{result: requests answered so} since the start; the whole under "all"."""
        counts = {}
        for line in self.metrics_text().splitlines():
            if line.startswith("nezha_cache_requests_total{"):
                name, value = line.rsplit(" ", 1)
                counts[name.split('"')[1]] = int(float(value))
        return counts | {"all": sum(counts.values())}

    def log(self):
        return self._world.log("nezha-cache")

    def stored_files(self):
        return [path for path in (self.folder / "tier").rglob("*") if path.is_file()]
