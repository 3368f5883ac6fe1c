#!/usr/bin/env python3
"""The benchmark, run by scripts/bench inside its namespaces: run.py PROGRAMS WORK RESULTS, with ROWS and RUNS set.

ROWS names the rows, for example "small cold"; nothing or "all" means all of them. RUNS is how often each is measured.
"""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import machine
import report
from cold import cold
from crowd import crowd
from headline import headline
from hits import large, small
from limits import limits
from pmem import pmem
from restart import restart
from s3 import s3
from spark import spark
from tail import tail
from tls import tls
from world import World

ROWS = {
    "small": small,
    "large": large,
    "tls": tls,
    "cold": cold,
    "s3": s3,
    "spark": spark,
    "tail": tail,
    "restart": restart,
    "crowd": crowd,
    "pmem": pmem,
    "headline": headline,
    "limits": limits,
}


def chosen():
    names = os.environ.get("ROWS", "").split()
    unknown = [name for name in names if name not in (*ROWS, "all")]
    if unknown:
        raise SystemExit(f"bench: no row is called {' '.join(unknown)}; there are: {' '.join(ROWS)}")
    return [name for name in ROWS if not names or name in names or "all" in names]


def how_often():
    runs = os.environ.get("RUNS") or "5"
    if not (runs.isascii() and runs.isdecimal() and int(runs) > 0):
        raise SystemExit(f"bench: RUNS={runs} is not a number above zero; write for example RUNS=5")
    return int(runs)


def lay_out_network():
    """The loopback of this run's own network namespace, without BBR: it paces by timers, and over a loopback interface
    those would be measured. A namespace may choose only among what the machine allows; Reno is always there."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for name in ("cubic", "reno"):
        try:
            Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text(name, encoding="ascii")
            return
        except OSError:
            continue


def main():
    programs, work, target = (Path(argument) for argument in sys.argv[1:4])
    names, runs = chosen(), how_often()
    lay_out_network()
    files_max = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))  # nginx keeps open what it serves
    os.nice(-15)  # all that is started here goes before what else runs on the machine
    target.mkdir(parents=True, exist_ok=True)
    world, rows = World(programs, work), []
    try:
        about = machine.describe(world)
        for name in names:
            begin = time.monotonic()
            for row in ROWS[name](world, runs):
                rows.append(row)
                print("\n" + report.section(row), flush=True)
            world.say(f"{name}: {time.monotonic() - begin:.0f} s")
            report.write(target, about, runs, rows)  # after each: an interrupted run keeps what it has
    finally:
        world.stop_all()
    world.say(f"results are in {target}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
