"""What of 200,000 small objects is still warm after a restart, in order and after kill -9, and how soon."""

import socket
import time

from load import client
from results import Row
from servers import HOST, Nezha, Nginx, TrafficServer

OBJECTS = 200_000
SIZE = 1024
PROBES = 200
PATH = f"/o/{SIZE}/restart-#"
PATIENCE_SECONDS = 20
SETTLE_SECONDS = 15  # Traffic Server writes its directory every few seconds, and forgets what it had not written
EVERY = {"path": PATH, "objects": OBJECTS, "requests": OBJECTS, "connections": 16}


def restart(world, runs):
    rows = {
        way: (
            Row(f"warm after {way}, 200,000 objects", "share still warm"),
            Row(f"first warm hit after {way}", "ms from the start of the process", higher_is_better=False),
        )
        for way in ("SIGTERM", "kill -9")
    }
    for kind in (Nezha, Nginx, TrafficServer):
        server = world.start(kind)
        world.say(f"storing {OBJECTS:,} objects: {server.name}")
        client(world, server, **EVERY)
        for way, (share, first) in rows.items():
            for number in range(min(runs, 3)):
                world.say(f"{share.name}: {server.name}, run {number + 1} of {min(runs, 3)}")
                _one(world, server, way, share, first)
        world.stop(server)
    for share, first in rows.values():
        share.want("nezha's share", share.median("nezha"), 0.95)
        if "nezha" in first.figures:
            first.want("nezha's first warm hit, s", first.median("nezha") / 1e3, 0.1, at_least=False)
        else:
            first.want("nezha's first warm hit, s", PATIENCE_SECONDS, 0.1, at_least=False)
    return [row for pair in rows.values() for row in pair]


def _one(world, server, way, share, first):
    time.sleep(SETTLE_SECONDS)
    if way == "SIGTERM":
        server.stop()
    else:
        server.kill()
    begin = time.monotonic()
    server.spawn()
    warm_after = _first_warm_hit(world, server, begin)
    if warm_after is None:
        remark = f"{server.name}: no warm hit in the first {PATIENCE_SECONDS} s"
        if remark not in first.remarks:
            first.remarks.append(remark)
    else:
        first.add(server.name, warm_after * 1e3)
    world.count()
    found = client(world, server, **EVERY)
    if found["errors"]:
        share.remarks.append(f"{server.name}: {found['errors']} bad answers after {way}")
    share.add(server.name, 1 - world.count()["requests"] / OBJECTS)


def _first_warm_hit(world, server, begin):
    """Asks for one object after the other until an answer came that the origin was not asked for."""
    world.count()
    number = 0
    while time.monotonic() - begin < PATIENCE_SECONDS and number < PROBES:
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
                path = PATH.replace("#", str(number * (OBJECTS // PROBES)))
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
                answer = connection.recv(64 * 1024)
                taken = time.monotonic() - begin
        except OSError:
            time.sleep(0.0005)
            continue
        number += 1
        if answer.startswith(b"HTTP/1.1 200") and world.count()["requests"] == 0:
            return taken
    return None
