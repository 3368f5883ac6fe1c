"""Writes docs/compatibility.md from the rows of test_operations.py, in runs with NEZHA_COMPATIBILITY=FILE.

A row that fails, or is marked as a known difference, is shown as one.
"""

import datetime
import os
from pathlib import Path

from clients.process import CLIENTS
from operations import OPERATIONS

HEAD = """\
# S3 clients that were tested

Written by `make test-clients` on {date}. Each client ran against real servers that verify signatures, twice with the
very same command and settings: directly, and through the cache, there on an object that it had not seen, again, and
once more after all of it was stored. *same*: result, checksum of the body, ETag, metadata and errors were the same
each time. *both refuse*: the server itself does not do it, and says so through the cache in the same words. *differs*:
a known difference, named below. Blank: the client does not offer it, or it was not run.

Servers: {servers}. Clients: {clients}.
"""

ABSENT = {
    "TensorFlow (`tf.io.gfile`)": "it reads S3 through tensorflow-io, whose last version, 0.37.1 of July 2024, is made "
    "for TensorFlow 2.16; with later ones there is no S3 in it",
}


class Results:
    def __init__(self, file):
        self._file = Path(file)
        self._cells = {}  # (server, operation, client) -> word
        self._notes = {}

    def add(self, report, server, client, name, refused):
        word = "both refuse" if refused else "same"
        if report.failed:
            word = "**fails**"
        elif hasattr(report, "wasxfail"):
            word = "differs"
            self._notes[f"{client}, {OPERATIONS[name].words}"] = report.wasxfail.removeprefix("reason: ")
        self._cells[server, name, client] = word

    def clients(self):
        """The names of those that were run."""
        return [name for name in CLIENTS if any(key[2] == name for key in self._cells)]

    def write(self, versions, servers):
        clients = self.clients()
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        lines = [HEAD.format(date=date, servers=", ".join(servers), clients=", ".join(versions))]
        for server in dict.fromkeys(key[0] for key in self._cells):
            lines += [f"## {server}", "", "| operation | " + " | ".join(clients) + " |"]
            lines.append("| --- " * (len(clients) + 1) + "|")
            for name, operation in OPERATIONS.items():
                cells = [self._cells.get((server, name, client), "") for client in clients]
                if any(cells):
                    lines.append(f"| {operation.words} | " + " | ".join(cells) + " |")
            lines.append("")
        if self._notes:
            lines += ["## Known differences", ""]
            lines += [f"- {place}: {reason}." for place, reason in sorted(self._notes.items())] + [""]
        lines += ["## Not tested", ""] + [f"- {client}: {reason}." for client, reason in ABSENT.items()]
        self._file.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def wanted():
    file = os.environ.get("NEZHA_COMPATIBILITY")
    return Results(file) if file else None
