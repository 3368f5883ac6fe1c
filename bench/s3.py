"""Private objects of an S3 server that verifies signatures, 20 ms away over 1 Gbit/s: directly and through the cache.

Without keys the cache asks the server each time (`nezha`); with those of the reader it need not (`nezha, known keys`).
"""

import hashlib
import json
import os
import resource
import shutil
import time
from statistics import median

from results import Row
from s3_servers import BUCKET, DELAY_US, GIGABIT, Line, NezhaKeys, NezhaS3, Store, Way
from s3_servers import lacking, reader, s5cmd, upload

MIB = 1024 * 1024
RTT_MS = 2 * DELAY_US / 1000
SMALL, SMALL_BYTES = 10_000, 100 * 1024
# key -> bytes
OBJECTS = {"first": SMALL_BYTES, "large": 64 * MIB, "long": 256 * MIB, "cold": 1024 * MIB}
FIRST_REQUESTS = 100
CONNECTION_BITS = GIGABIT // 10
KEYS = NezhaKeys.name


class Scene:
    """The store, the line and the ways of this run, and what every object holds."""

    def __init__(self, world):
        self.world, self.digests = world, {}
        self.store = world.start(Store, cpus=world.all_cpus)
        self._make_objects()
        self.line = world.start(Line, cpus=world.all_cpus)
        self.direct = Way(world, "direct", "127.0.0.1")
        self.caches, self.refusal = {NezhaS3.name: NezhaS3}, NezhaKeys(world).refusal()
        if not self.refusal:
            self.caches[KEYS] = NezhaKeys

    def _make_objects(self):
        folder = self.world.work / "s3-objects"
        (folder / "small").mkdir(parents=True)
        block = os.urandom(MIB)
        for key, size in OBJECTS.items():
            self.digests[key] = _write(folder / key, size, block)
        for number in range(SMALL):
            _write(folder / f"small/{number:05}", SMALL_BYTES, block)
        self.digests["small"] = _digest_of_files(folder / "small")
        self.world.say("storing the objects of the S3 rows")
        upload(self.world, folder)
        shutil.rmtree(folder)

    def limit_connections(self, bits):
        """Anew, with another rate of each connection; nobody may be connected."""
        self.world.stop(self.line)
        self.line = self.world.start(Line, cpus=self.world.all_cpus, connection_bits=bits)

    def cached(self, name):
        """An empty cache and the way to it."""
        server = self.world.start(self.caches[name], cpus=self.world.all_cpus)
        return server, Way(self.world, name, server.ip)

    def download(self, way, key, client="s5cmd"):
        """Seconds, of a whole object or of a folder of small ones, into files in memory."""
        target = self.world.memory_folder("s3-target")
        _empty(target)
        if client == "boto3":
            seconds = json.loads(way.run(reader("boto3", key, target / key)))["whole"][0]
        else:
            what = f"s3://{BUCKET}/{key}/*" if key == "small" else f"s3://{BUCKET}/{key}"
            begin = time.monotonic()
            way.run(s5cmd("cp", what, f"{target}/"))
            seconds = time.monotonic() - begin
        self.check(way.name, key, _digest_of_files(target) if key == "small" else _digest(target / key))
        _empty(target)
        return seconds

    def add_download(self, row, way, key, client="s5cmd", server=None):
        before = self._spent(client, server)
        row.add(way.name, self.download(way, key, client))
        after = self._spent(client, server)
        used = {who: after[who] - before[who] for who in after}
        row.details.setdefault("spent", {}).setdefault(way.name, []).append(used)

    def _spent(self, client, server):
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        servers = {"cache": server} if server else {}
        servers |= {"store": self.store, "line": self.line}
        of_servers = {who: one.process.cpu_seconds() for who, one in servers.items()}
        line = {"MiB over the line": self.line.bytes() / MIB}
        return {client: ended.ru_utime + ended.ru_stime} | of_servers | line

    def check(self, name, key, digest):
        if digest != self.digests[key]:
            raise SystemExit(f"bench: {name} read {key} wrongly")

    def end(self):
        self.world.stop(self.line)
        self.world.stop(self.store)

    def skip_without_keys(self, row):
        if self.refusal:
            row.remarks.append(f"{KEYS}: skipped, the cache refuses credentialsSecretRef: {self.refusal[-300:]}")


def s3(world, runs):
    if absent := lacking():
        row = Row("S3", "seconds")
        row.remarks.append(f"missing: {', '.join(absent)}; scripts/install-deps bench installs them.")
        return [row]
    scene = Scene(world)
    try:
        rows = [*_warm(scene, runs), _small(scene, min(runs, 3))]
        rows += [_cold(scene, client, min(runs, 2)) for client in ("s5cmd", "boto3")]
        return [*rows, _single_stream(scene, min(runs, 2))]
    finally:
        scene.end()


def _warm(scene, runs):
    first = Row("S3: warm private hit of 100 KiB, first byte", "ms", higher_is_better=False)
    large = Row("S3: warm private 64 MiB, one connection", "seconds", higher_is_better=False)
    servers = {name: scene.cached(name) for name in scene.caches}
    ways = {"direct": scene.direct} | {name: way for name, (_, way) in servers.items()}
    for name, way in ways.items():
        for key in ("first", "large"):
            _single(scene, way, key, 2)  # fills it
    for number in range(runs):
        scene.world.say(f"{first.name}, run {number + 1} of {runs}")
        for name, way in ways.items():
            found = _single(scene, way, "first", FIRST_REQUESTS, warm=name != "direct")
            first.add(name, 1e3 * median(found["first"]))
            found = _single(scene, way, "large", 3, warm=name != "direct")
            large.add(name, median(found["whole"]))
            large.details.setdefault("cache", {})[name] = found["cache"]
    for server, _ in servers.values():
        scene.world.stop(server)
    first.want("nezha, ms: a round trip and 1 ms", first.median("nezha"), RTT_MS + 1, at_least=False)
    large.want("direct over nezha", large.ratio("direct", "nezha"), 5)
    if KEYS in ways:
        first.want(f"{KEYS}, ms", first.median(KEYS), 2, at_least=False)
        large.want(f"direct over {KEYS}", large.ratio("direct", KEYS), 5)
    scene.skip_without_keys(first)
    return [first, large]


def _small(scene, runs):
    row = Row("S3: 10,000 warm private objects of 100 KiB by s5cmd", "seconds", higher_is_better=False)
    servers = {name: scene.cached(name) for name in scene.caches}
    ways = {"direct": scene.direct} | {name: way for name, (_, way) in servers.items()}
    for way in list(ways.values())[1:]:
        scene.download(way, "small")
    for number in range(runs):
        scene.world.say(f"{row.name}, run {number + 1} of {runs}")
        for name, way in ways.items():
            scene.add_download(row, way, "small", server=servers.get(name, (None,))[0])
    for server, _ in servers.values():
        scene.world.stop(server)
    _say_spent(row)
    for name in scene.caches:
        row.want(f"direct over {name}", row.ratio("direct", name), 3)
    scene.skip_without_keys(row)
    return row


def _cold(scene, client, runs):
    row = Row(f"S3: cold 1 GiB by {client}, parallel ranges", "seconds", higher_is_better=False)
    for number in range(runs):
        scene.world.say(f"{row.name}, run {number + 1} of {runs}")
        scene.add_download(row, scene.direct, "cold", client)
        for name in scene.caches:
            server, way = scene.cached(name)
            scene.add_download(row, way, "cold", client, server)
            scene.world.stop(server)
    _say_spent(row)
    for name in scene.caches:
        row.want(f"{name} over direct", row.ratio(name, "direct"), 1.05, at_least=False)
    scene.skip_without_keys(row)
    return row


def _single_stream(scene, runs):
    row = Row("S3: cold 256 MiB in one stream, 100 Mbit/s a connection", "seconds", higher_is_better=False)
    scene.limit_connections(CONNECTION_BITS)
    for number in range(runs):
        scene.world.say(f"{row.name}, run {number + 1} of {runs}")
        row.add("direct", _single(scene, scene.direct, "long", 1)["whole"][0])
        for name in scene.caches:
            server, way = scene.cached(name)
            row.add(name, _single(scene, way, "long", 1)["whole"][0])
            scene.world.stop(server)
    scene.limit_connections(0)
    if KEYS in scene.caches:
        row.want(f"direct over {KEYS}", row.ratio("direct", KEYS), 4)
    scene.skip_without_keys(row)
    return row


def _single(scene, way, key, count, warm=False):
    found = json.loads(way.run(reader("single", key, count)))
    scene.check(way.name, key, found["sha256"])
    if warm and not _from_cache(found["cache"]):
        raise SystemExit(f"bench: {way.name} does not cache {key}: {found['cache']}")
    return found


def _from_cache(status):
    """The cache's own bytes, also where the source was asked whether they may be served."""
    return "; hit" in status or "fwd-status=304" in status


def _say_spent(row):
    """The machine's cores are everybody's: who used them, as medians of the runs; and what came over the line."""
    for name, runs in row.details["spent"].items():
        parts = ", ".join(f"{who} {median(run[who] for run in runs):.1f}" for who in runs[0])
        row.remarks.append(f"{name}, CPU-seconds: {parts}")


def _write(path, size, block):
    """Its digest. Every file is its name and then the block, again and again: the same length, other bytes."""
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        for piece in range(0, size, len(block)):
            head = f"{path.name} {piece}\n".encode()
            data = (head + block)[: min(len(block), size - piece)]
            file.write(data)
            digest.update(data)
    return digest.hexdigest()


def _digest(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(MIB):
            digest.update(piece)
    return digest.hexdigest()


def _digest_of_files(folder):
    lines = [f"{file.name} {_digest(file)}\n" for file in sorted(folder.iterdir())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _empty(folder):
    for file in folder.iterdir():
        file.unlink()
