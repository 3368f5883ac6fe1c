"""A 169 MB file behind a slow line of 10 MB/s: directly, cold and warm."""

from load import client
from results import Row
from servers import Direct, Nezha, Nginx, TrafficServer, Varnish

SIZE = 169_001_437
LINE = 10_000_000
PATH = f"/o/{SIZE}/headline"


def headline(world, runs):
    row = Row("169 MB behind a line of 10 MB/s, warm", "GB/s")
    direct = world.start(Direct)
    servers = [world.start(kind) for kind in (Nezha, Nginx, Varnish, TrafficServer)]
    world.limit(LINE)
    world.say(f"{row.name}: direct and cold")
    row.add("direct", _speed(world, direct))
    cold = _speed(world, servers[0])
    row.remarks.append(f"nezha cold: {cold:.4f} GB/s")
    world.limit(0)
    for server in servers[1:]:
        client(world, server, path=PATH, requests=1)
    for number in range(runs):
        world.say(f"{row.name}, run {number + 1} of {runs}")
        for server in servers:
            row.add(server.name, _speed(world, server))
    for server in (*servers, direct):
        world.stop(server)
    row.want("nezha, GB/s", row.median("nezha"), 2.0)
    return [row]


def _speed(world, server):
    result = client(world, server, path=PATH, requests=1, verify=0)
    return result["bytes"] / result["seconds"] / 1e9
