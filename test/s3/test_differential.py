"""The same random operations in two worlds, one direct and one through the cache: every result is the same.

Several workers at once, each with keys of its own and now this client, now that one; within a worker both worlds do
each step at the same time and are compared before the next one. NEZHA_SEED repeats a run, NEZHA_S3_STEPS makes it
longer.
"""

import concurrent.futures
import os
import random
import time

import pytest
from comparison import differences

STEPS = int(os.environ.get("NEZHA_S3_STEPS", "60"))  # of each worker
WORKERS = 3
CLIENTS = ("boto3", "s3fs", "pyarrow", "s5cmd")
KEYS = ("one", "two", "deep/three", "sp ace+four")
SIZES = (0, 1, 999, 70_000, 1_500_000, 9_000_000)


def step(dice, folder):
    """(client, operation, arguments)"""
    key, other = (f"{folder}/{name}" for name in dice.sample(KEYS, 2))
    first = dice.randrange(2000)
    operations = {
        "read": {"key": key},
        "read_range": {"key": key, "first": first, "last": first + dice.randrange(100_000)},
        "read_suffix": {"key": key, "count": dice.randrange(1, 3000)},
        "head": {"key": key},
        "download": {"key": key},
        "read_if_match": {"key": key},
        "read_if_none_match": {"key": key},
        "listing": {"prefix": f"{folder}/"},
        "write": {"key": key, "size": dice.choice(SIZES)},
        "write_parts": {"key": key, "size": 7 << 20},
        "copy": {"key": key, "to": other},
        "delete": {"key": key},
        "delete_many": {"keys": [key, other]},
    }
    weights = {"read": 6, "read_range": 6, "write": 5, "head": 2, "download": 2}
    name = dice.choices(list(operations), [weights.get(name, 1) for name in operations])[0]
    arguments = operations[name]
    if name == "write":  # boto3 alone takes bytes that do not follow from the key
        return "boto3", name, arguments | {"seed": str(dice.random())}
    return dice.choice(CLIENTS), name, arguments


def without_checksums_of_all(result):
    """Some servers tell the checksums of the whole to a range that covers all of it; a cache does not know."""
    fields = result.get("value", {}).get("fields", {}) if isinstance(result.get("value"), dict) else {}
    first, _, rest = fields.get("content-range", "bytes 1-0/0").removeprefix("bytes ").partition("-")
    last, _, total = rest.partition("/")
    if first == "0" and int(last) + 1 == int(total):
        for name in [name for name in fields if name.startswith("x-amz-checksum-")]:
            del fields[name]
    return result


def work(number, seed, server, clients):
    dice = random.Random(f"{seed}-{server}-{number}")
    done = []
    for _ in range(STEPS):
        client, operation, arguments = step(dice, f"random/{number}")
        pair = clients[client]
        if operation not in pair.direct.kind.operations:
            client, pair = "boto3", clients["boto3"]
        if operation == "delete_many" and client != "boto3":
            continue  # others delete whole folders
        done.append((client, operation, arguments))
        direct, cached = (without_checksums_of_all(result) for result in pair.ask(operation, **arguments))
        problems = differences(direct, cached)
        assert not problems, f"NEZHA_SEED={seed}, worker {number}, step {len(done)}: {problems}; before: {done[-8:]}"


@pytest.mark.parametrize("server", ["moto", "versitygw"])
def test_random_operations_give_the_same_results(server, pairs):
    seed = os.environ.get("NEZHA_SEED") or str(time.time_ns())
    print(f"NEZHA_SEED={seed}")
    clients = [{name: pairs(name, server, worker=number) for name in CLIENTS} for number in range(WORKERS)]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        jobs = [pool.submit(work, number, seed, server, clients[number]) for number in range(WORKERS)]
        for job in jobs:
            job.result()
