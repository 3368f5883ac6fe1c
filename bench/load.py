"""Load on a server, and what it cost: wrk where it suffices, our own client for what it cannot tell."""

import json
import os
import subprocess

from servers import HERE, HOST


def wrk(world, server, path, connections, seconds, scheme="http", port=None, address="127.0.0.1"):
    """One run. Returns wrk's counts and "cpu": the seconds of CPU that the server used for it."""
    port = port or server.port
    command = [
        *("wrk", "-t", "1", "-c", str(connections), "-d", str(seconds), "--timeout", "60"),
        *("-s", str(HERE / "wrk_done.lua"), "-H", f"Host: {HOST}", f"{scheme}://{address}:{port}{path}"),
    ]
    result = _measured(server, command, world.client_cpus)
    if result["errors"] or not result["requests"]:
        raise SystemExit(f"bench: {server.name} answered {path} with errors: {result}")
    return result


def client(world, server, cpus=None, **options):
    """One run of bench_client; options as it takes them. Returns its line and "cpu"."""
    return _measured(server, client_command(world, server, **options), cpus or world.client_cpus)


def spawn_client(world, server, first=False, **options):
    """bench_client in the background; `first` puts it before all others on its core. See finish_client()."""
    command = client_command(world, server, **options)
    if first:
        command = ["chrt", "--fifo", "10", *command]
    pin = lambda: os.sched_setaffinity(0, world.client_cpus)  # noqa: E731
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=pin)


def finish_client(process, stop=False):
    """Its line, after it ended by itself or was told to stop."""
    if stop:
        process.terminate()
    output, _ = process.communicate(timeout=300)
    if process.returncode:
        raise SystemExit(f"bench: {' '.join(process.args)} failed")
    return json.loads(output.splitlines()[-1])


def client_command(world, server, **options):
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [str(world.programs / "bench/bench_client"), "--port", str(server.port), "--host", HOST, *words]


def _measured(server, command, cpus):
    process = server.process or server.world.origin.process
    before = process.cpu_seconds()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        preexec_fn=lambda: os.sched_setaffinity(0, cpus),
    )
    cpu = process.cpu_seconds() - before
    if done.returncode:
        raise SystemExit(f"bench: {' '.join(command)} at {server.name}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return {**json.loads(done.stdout.splitlines()[-1]), "cpu": cpu}


def warm(world, server, path, objects=1, connections=1):
    """Fetches objects twice, checks every byte, and makes sure that the second time nobody asked the origin."""
    options = {"path": path, "objects": objects, "requests": objects, "connections": connections, "verify": 1}
    first = client(world, server, **options)
    world.count()
    second = client(world, server, **options)
    fetched = world.count()["requests"]
    if first["errors"] or second["errors"]:
        raise SystemExit(f"bench: {server.name} serves {path} wrongly: {first} {second}")
    if fetched and server.caches:
        raise SystemExit(f"bench: {server.name} does not cache {path}: {fetched} of {objects} fetched again")
