"""p99 of small hits while somebody else reads cold large objects, against without: cold on disk, cold at the origin.

The hits are an open loop, so a stall delays every request that was due; their client goes before the reader on the core
that both share, so that the server's delays are measured and not the client's.
"""

from statistics import median

from load import client, finish_client, spawn_client, warm
from results import Row
from servers import Nezha, Nginx, NginxThreads, TrafficServer, Varnish

HITS = {"path": "/o/4096/tail-#", "objects": 200, "connections": 16, "rate": 4000}
COLD_SIZE, COLD_COUNT = 64 * 1024 * 1024, 24
SECONDS_MAX = 120


def tail(world, runs):
    disk = _row("p99 of 4 KiB hits beside cold reads from disk")
    upstream = _row("p99 of 4 KiB hits beside cold reads from the origin")
    for kind in (Nezha, Nginx, NginxThreads, Varnish, TrafficServer):
        server = world.start(kind)
        for number in range(runs):
            world.say(f"p99 beside cold reads: {server.name}, run {number + 1} of {runs}")
            fresh = f"/o/{COLD_SIZE}/fresh-{number}-#"
            _measure(world, server, upstream, fresh)
            if server.survives:
                kept = f"/o/{COLD_SIZE}/kept-#"
                _make_cold(world, server, kept)
                _measure(world, server, disk, kept)
        world.stop(server)
    for row in (disk, upstream):
        for server, details in row.details.items():
            alone, beside, ratio = (median(details[key]) for key in ("alone_us", "beside_us", "ratio"))
            speed = median(details["cold_gb_per_second"])
            row.remarks.append(
                f"{server}: p99 alone {alone:.0f} µs, beside {beside:.0f} µs, {ratio:.1f}×; reader {speed:.2f} GB/s"
            )
        row.want("nezha beside over alone", median(row.details["nezha"]["ratio"]), 2.0, at_least=False)
    disk.remarks.append("varnish keeps nothing on disk; nginx-aio is nginx with `aio threads`")
    return [disk, upstream]


def _row(name):
    return Row(name, "p99 beside over p99 alone", higher_is_better=False)


def _measure(world, server, row, cold_path):
    warm(world, server, HITS["path"], HITS["objects"])
    alone = finish_client(spawn_client(world, server, first=True, seconds=3, **HITS))
    hits = spawn_client(world, server, first=True, seconds=SECONDS_MAX, **HITS)
    reading = client(world, server, path=cold_path, objects=COLD_COUNT, requests=COLD_COUNT)
    beside = finish_client(hits, stop=True)
    row.add(server.name, beside["p99"] / alone["p99"])
    found = {
        "alone_us": alone["p99"],
        "beside_us": beside["p99"],
        "beside_p999_us": beside["p999"],
        "ratio": beside["p99"] / alone["p99"],
        "cold_gb_per_second": reading["bytes"] / reading["seconds"] / 1e9,
    }
    for key, value in found.items():
        row.details.setdefault(server.name, {}).setdefault(key, []).append(value)


def _make_cold(world, server, path):
    """The cold objects stored, but in no memory: by a restart, or without one where that would lose them."""
    fetch = {"path": path, "objects": COLD_COUNT, "requests": COLD_COUNT}
    client(world, server, **fetch)
    server.stop()
    server.forget_pages()
    server.start(empty=False)
    world.count()
    client(world, server, path=path.replace("#", "0"), requests=1)
    if world.count()["requests"]:
        client(world, server, **fetch)
    server.forget_pages()
