"""Hits from memory: requests per CPU-second of small objects, bytes per CPU-second of large ones."""

from load import warm, wrk
from results import Row
from servers import Bare, Nezha, Nginx, TrafficServer, Varnish

KIND = (Nezha, Nginx, Varnish, TrafficServer, Bare)
PEERS = ("nginx", "varnish", "ats")
SMALL = {"1 KiB": 1024, "4 KiB": 4096}
LARGE = {"100 KiB": 100 * 1024, "1 MiB": 1024 * 1024, "64 MiB": 64 * 1024 * 1024}
SECONDS = 2


def connections(size):
    return 32 if size <= 100 * 1024 else 8


def measure(world, runs, sizes, unit, figure):
    """All servers run, idle but for the one that is measured; every round asks each of them once."""
    servers = [world.start(kind) for kind in KIND]
    rows = []
    for label, size in sizes.items():
        row = Row(f"hits of {label}", unit)
        path = f"/o/{size}/hit"
        for server in servers:
            warm(world, server, path)
            wrk(world, server, path, connections(size), 1)
        for number in range(runs):
            world.say(f"{row.name}, run {number + 1} of {runs}")
            for server in servers:
                result = wrk(world, server, path, connections(size), SECONDS)
                row.add(server.name, figure(result))
                detail = row.details.setdefault(server.name, {"per_second": [], "cpu_share": [], "cpu_us": []})
                detail["per_second"].append(figure({**result, "cpu": result["seconds"]}))
                detail["cpu_share"].append(result["cpu"] / result["seconds"])
                detail["cpu_us"].append(result["cpu"] / result["requests"] * 1e6)
        row.remarks += [f"bare server: {line}" for line in servers[-1].ways() if line.startswith(f"{size} ")]
        rows.append(row)
    for server in servers:
        world.stop(server)
    return rows


def small(world, runs):
    rows = measure(world, runs, SMALL, "requests per CPU-second", lambda result: result["requests"] / result["cpu"])
    for row in rows:
        row.want("nezha over nginx", row.ratio("nezha", "nginx"), 1.8)
        row.want("nezha over the best peer", min(row.ratio("nezha", peer) for peer in PEERS), 1.0)
        row.want("nezha over the bare server", row.ratio("nezha", "bare"), 0.75)
    return rows


def large(world, runs):
    rows = measure(world, runs, LARGE, "GB per CPU-second", lambda result: result["bytes"] / result["cpu"] / 1e9)
    for row in rows:
        row.want("nezha over the best peer", min(row.ratio("nezha", peer) for peer in PEERS), 1.0)
        row.want("nezha over the bare server", row.ratio("nezha", "bare"), 0.9)
    return rows
