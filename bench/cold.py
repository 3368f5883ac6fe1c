"""Cold downloads: one client, 1 GiB that nobody has yet, the server and everything else on the same two cores."""

from load import client
from results import Row
from servers import Direct, Nezha, Nginx, Relay, TrafficServer, Varnish

KIND = (Direct, Relay, Nezha, Nginx, Varnish, TrafficServer)
PEERS = ("nginx", "varnish", "ats")
SIZE = 1024 * 1024 * 1024
GIGABIT = 125_000_000


def cold(world, runs):
    servers = [world.start(kind, cpus=world.all_cpus) for kind in KIND]
    world.origin.process.pin(world.all_cpus)
    limited = Row("cold, 1 GiB at 1 Gbit/s", "seconds", higher_is_better=False)
    unlimited = Row("cold, 1 GiB, unlimited", "seconds", higher_is_better=False)
    for row, rate, count in ((unlimited, 0, runs), (limited, GIGABIT, min(runs, 2))):
        world.limit(rate)
        for number in range(count):
            world.say(f"{row.name}, run {number + 1} of {count}")
            for server in servers:
                path = f"/o/{SIZE}/cold-{rate}-{number}"
                result = client(world, server, cpus=world.all_cpus, path=path, requests=1)
                if result["errors"]:
                    raise SystemExit(f"bench: {server.name} failed at {path}")
                row.add(server.name, result["seconds"])
                row.details.setdefault(server.name, {"cpu_seconds": []})["cpu_seconds"].append(result["cpu"])
    world.limit(0)
    world.origin.process.pin(world.client_cpus)
    for server in servers:
        world.stop(server)
    limited.want("nezha over direct", limited.ratio("nezha", "direct"), 1.05, at_least=False)
    unlimited.want("nezha over the byte relay", unlimited.ratio("nezha", "relay"), 1.1, at_least=False)
    best = max(unlimited.ratio("nezha", peer) for peer in PEERS)
    unlimited.want("nezha over the best peer", best, 1.0, at_least=False)
    return [limited, unlimited]
