"""Names the machine and the programs, so that nobody compares figures of two machines without noticing."""

import os
import platform
from pathlib import Path

from servers import version


def describe(world):
    memory_kib = int(_value("/proc/meminfo", "MemTotal").split()[0])
    return {
        "cpu": _value("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory_gib": round(memory_kib / 2**20, 1),
        "kernel": platform.release(),
        "hypervisor": "yes" if "hypervisor" in _value("/proc/cpuinfo", "flags").split() else "no",
        "congestion_control": Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="ascii").strip(),
        "load_at_start": os.getloadavg()[0],
        "programs": {
            "nezha": version([world.programs / "nezha-cache", "--version"]),
            "nginx": version(["nginx", "-v"]),
            "varnish": version(["varnishd", "-V"]),
            "ats": version(["traffic_server", "--version"]),
            "wrk": version(["wrk", "-v"]),
        },
    }


def _value(file, name):
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"
