"""Spark's questions to tables of Parquet on S3, 20 ms away over 1 Gbit/s, by S3A: directly and through a warm cache.

Every run is a job of its own: a new JVM, which has nothing in its memory. The ways take turns.
"""

import json
from statistics import median

from results import Row
from s3_servers import BUCKET, HOST, INSTALLED, STORE_PORT, Line, NezhaKeys, NezhaS3, Store, Way
from servers import HERE

LESS_MIN = 0.3  # of the time, for all three together


def spark(world, runs):
    row = Row("Spark: three questions to warm tables on S3", "seconds", higher_is_better=False)
    if not (INSTALLED / "stamp/spark").exists():
        row.remarks.append("Spark is not installed; scripts/install-deps clients installs it.")
        return [row]
    store = world.start(Store, cpus=world.all_cpus)
    world.say("storing the tables of the row spark")
    direct = Way(world, "direct", "127.0.0.1")
    _job(direct, f"127.0.0.1:{STORE_PORT}", "make")
    line = world.start(Line, cpus=world.all_cpus)
    caches = [world.start(kind, cpus=world.all_cpus) for kind in (NezhaS3, NezhaKeys)]
    _measure(row, [direct, *(Way(world, cache.name, cache.ip) for cache in caches)], runs)
    for server in (*caches, line, store):
        world.stop(server)
    for cache in caches:
        _judge(row, cache.name)
    return [row]


def _measure(row, ways, runs):
    """First once for each way, which fills the caches; what it found is what every run must find."""
    right = None
    for number in range(runs + 1):
        for way in ways:
            found = _job(way, HOST, "run")
            answers = {question: one["rows"] for question, one in found.items()}
            right = right or answers
            if answers != right or not all(answers.values()):
                raise SystemExit(f"bench: Spark found something else through {way.name}")
            seconds = {question: one["seconds"] for question, one in found.items()}
            which = f"run {number} of {runs}" if number else "cold"
            way.world.say(f"{row.name}, {which}, {way.name}: {sum(seconds.values()):.1f} s")
            if number:
                row.add(way.name, sum(seconds.values()))
            row.details.setdefault(way.name, []).append(seconds)


def _judge(row, name):
    pairs = zip(row.figures[name], row.figures["direct"], strict=True)
    less = [1 - cached / direct for cached, direct in pairs]
    row.want(f"{name}: less time than directly, median of pairs", median(less), LESS_MIN)
    row.remarks.append(f"{name}, less time in each pair: {', '.join(f'{one:.0%}' for one in less)}.")
    for question in row.details[name][0]:
        own, direct = (median(one[question] for one in row.details[way][1:]) for way in (name, "direct"))
        took = f"{own:.2f} s, directly {direct:.2f} s, {1 - own / direct:.0%} less"
        row.remarks.append(f"{name}, {question}: {took}.")


def _job(way, host, what):
    """Java wants an address of the machine's own name, which has none in these namespaces."""
    named = ["unshare", "--uts", "sh", "-c", 'hostname localhost && exec "$@"', "sh"]
    python = INSTALLED / "spark/bin/python"
    said = way.run([*named, python, HERE / "spark_queries.py", f"http://{host}", BUCKET, what])
    return json.loads(said.splitlines()[-1]) if what == "run" else None
