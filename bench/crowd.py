"""A hundred clients at once for one large object that nobody has yet: one fetch, no client slower than directly."""

from load import client
from results import Row
from servers import Direct, Nezha, Nginx, TrafficServer, Varnish

KIND = (Direct, Nezha, Nginx, Varnish, TrafficServer)
CLIENTS = 100
SIZE = 256 * 1024 * 1024


def crowd(world, runs):
    row = Row("100 clients, one cold 256 MiB object", "p95 in seconds", higher_is_better=False)
    fetches = {}
    servers = [world.start(kind, cpus=world.all_cpus) for kind in KIND]
    world.origin.process.pin(world.all_cpus)
    for number in range(min(runs, 3)):
        world.say(f"{row.name}, run {number + 1} of {min(runs, 3)}")
        for server in servers:
            world.count()
            path = f"/o/{SIZE}/crowd-{number}"
            result = client(world, server, world.all_cpus, path=path, connections=CLIENTS, requests=CLIENTS)
            row.add(server.name, result["p95"] / 1e6)
            fetches.setdefault(server.name, []).append(world.count()["requests"])
            if result["errors"]:
                row.remarks.append(f"{server.name}: {result['errors']} of {CLIENTS} clients got a bad answer")
    world.origin.process.pin(world.client_cpus)
    for server in servers:
        world.stop(server)
    row.details["fetches"] = fetches
    row.remarks.append("fetches: " + ", ".join(f"{name} {max(counts)}" for name, counts in fetches.items()))
    row.want("nezha's fetches", max(fetches["nezha"]), 1, at_least=False)
    row.want("nezha over direct", row.ratio("nezha", "direct"), 1.0, at_least=False)
    return [row]
