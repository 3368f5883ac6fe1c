"""What limits us at each size: CPU per request split in our code and the kernel, system calls, the costliest functions.

The bare server stands for the limit; what nezha-cache spends beyond it is ours to save. Tools that are missing or not
allowed here are left out, with a remark.
"""

import re
import subprocess
import time

from hits import LARGE, SMALL, connections
from load import warm, wrk
from results import Row
from servers import Bare, Nezha

SECONDS = 2
FUNCTIONS_MAX = 12


def limits(world, runs):
    servers = [world.start(Nezha), world.start(Bare)]
    rows = []
    for label, size in {**SMALL, **LARGE}.items():
        row = Row(f"what limits hits of {label}", "µs of CPU per request", higher_is_better=False)
        for server in servers:
            warm(world, server, f"/o/{size}/limits")
        for number in range(min(runs, 3)):
            world.say(f"{row.name}, run {number + 1} of {min(runs, 3)}")
            for server in servers:
                _account(world, server, size, row)
        for server in servers:
            calls = _system_calls(world, server, size)
            functions = _functions(world, server, size)
            row.details[server.name].update({"calls": calls, "functions": functions})
            row.remarks += _told(row, server.name, calls, functions)
        row.remarks.append(_verdict(row))
        rows.append(row)
    for server in servers:
        world.stop(server)
    return rows


def _account(world, server, size, row):
    before = server.process.user_system_seconds()
    result = wrk(world, server, f"/o/{size}/limits", connections(size), SECONDS)
    after = server.process.user_system_seconds()
    row.add(server.name, result["cpu"] / result["requests"] * 1e6)
    details = row.details.setdefault(server.name, {"user_us": [], "kernel_us": [], "resident_mib": []})
    for key, begin, end in zip(("user_us", "kernel_us"), before, after):
        details[key].append((end - begin) / result["requests"] * 1e6)
    details["resident_mib"].append(server.process.resident_bytes() / 2**20)


def _observed(world, server, size, command):
    """Runs `command`, which watches the server until it is interrupted, during a load. Returns the load's result."""
    observer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        return wrk(world, server, f"/o/{size}/limits", connections(size), SECONDS)
    finally:
        observer.send_signal(2)
        observer.wait(60)


def _system_calls(world, server, size):
    """Name -> calls per request; the counts are right although strace slows what it counts."""
    file = server.folder / "strace"
    pids = [word for pid in server.process.tree() for word in ("-p", str(pid))]
    try:
        result = _observed(world, server, size, ["strace", "-c", "-f", "-o", str(file), *pids])
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    calls = {}
    for line in lines:
        match = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:(\d+)\s+)?(\w+)$", line)
        if match and match.group(3) != "total" and int(match.group(1)) > result["requests"] / 100:
            calls[match.group(3)] = int(match.group(1)) / result["requests"]
            if match.group(2):
                calls[match.group(3) + " failed"] = int(match.group(2)) / result["requests"]
    return calls


def _functions(world, server, size):
    """The functions that most samples were in, as (percent, name, where)."""
    file = server.folder / "perf.data"
    pids = ",".join(str(pid) for pid in server.process.tree())
    try:
        _observed(world, server, size, ["perf", "record", "-F", "1999", "-o", str(file), "-p", pids])
        command = ["perf", "report", "-i", str(file), "--stdio", "--sort", "symbol,dso", "-t", "\t"]
        lines = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120).stdout.splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) >= 3 and fields[0].endswith("%"):
            found.append((float(fields[0][:-1]), re.sub(r"^\[[.k]\] ", "", fields[1])[:80], fields[2]))
    return found[:FUNCTIONS_MAX]


def _told(row, name, calls, functions):
    details = row.details[name]
    user, kernel = (sorted(details[key])[len(details[key]) // 2] for key in ("user_us", "kernel_us"))
    lines = [f"{name}: {user:.1f} µs in its own code, {kernel:.1f} µs in the kernel"]
    if calls:
        listed = ", ".join(f"{call} {count:.2f}" for call, count in sorted(calls.items(), key=lambda item: -item[1]))
        lines.append(f"{name}: system calls per request: {listed}")
    if functions:
        listed = ", ".join(f"{symbol} {percent:.0f} %" for percent, symbol, _ in functions[:6])
        lines.append(f"{name}: most samples: {listed}")
    return lines


def _verdict(row):
    ours, floor = row.median("nezha"), row.median("bare")
    distance = f"{ours / floor:.2f} times it, {ours - floor:.1f} µs to save"
    return f"the limit is {floor:.1f} µs here and nezha needs {ours:.1f}: {distance}"
