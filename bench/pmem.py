"""The tier of persistent memory, emulated, against the tier of a disk whose pages are dropped, at 4 KiB.

End to end from the client, and the tier's own read as the cache measures it. After a restart every record is read from
its medium and compared with its checksum, also from persistent memory, whose records are otherwise sent from where they
lie.
"""

import re
import urllib.request

from load import client
from results import Row
from servers import Nezha, NezhaPmem

OBJECTS = 200_000  # so many that a few thousand reads seldom meet what the kernel read ahead for another
FILL = {"path": "/o/4096/tier-#", "objects": OBJECTS, "requests": OBJECTS, "connections": 8}
READS = {"path": "/o/4096/tier-#", "objects": OBJECTS, "requests": 3000, "order": "random"}
HISTOGRAM = "nezha_cache_tier_read_seconds"


def pmem(world, runs):
    whole = Row("4 KiB from a tier, end to end", "p50 in µs", higher_is_better=False)
    inside = Row("4 KiB from a tier, the read itself", "p50 in µs", higher_is_better=False)
    for kind, label in ((NezhaPmem, "pmem"), (Nezha, "nvme")):
        server = world.start(kind)
        client(world, server, **FILL)
        for number in range(runs):
            world.say(f"{whole.name}: {label}, run {number + 1} of {runs}")
            server.forget_pages()
            whole.add(label, client(world, server, **READS)["p50"])
            server.stop()
            server.start(empty=False)
            server.forget_pages()
            before = _buckets(server)
            client(world, server, **READS)
            read = _median_us(before, _buckets(server))
            if read is not None:
                inside.add(label, read)
        world.stop(server)
    if not inside.figures:
        inside.remarks.append(f"nezha-cache exposes no histogram {HISTOGRAM}.")
    whole.remarks.append("the medium is emulated: a tmpfs that libpmem is told to take for persistent memory")
    return [whole, inside]


def _buckets(server):
    """Upper bound in seconds -> count, cumulative, of all media that the server reads."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server.admin_port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = {}
    for bound, count in re.findall(HISTOGRAM + r'_bucket\{[^}]*le="([^"]+)"[^}]*\} (\S+)', text):
        found[float(bound)] = found.get(float(bound), 0) + float(count)
    return found


def _median_us(before, after):
    """Of the reads between two states; linear within its bucket. None without a histogram."""
    counts = {bound: after[bound] - before.get(bound, 0) for bound in sorted(after)}
    total = max(counts.values(), default=0)
    low, below = 0.0, 0.0
    for bound, count in counts.items():
        if total and count >= total / 2:
            part = (total / 2 - below) / (count - below) if count > below else 1
            return (low + (min(bound, 10.0) - low) * part) * 1e6
        low, below = bound, count
    return None
