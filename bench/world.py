"""The benchmark's world: a work folder, cores, the origin, and the servers that are running."""

import json
import os
import subprocess
import urllib.request

from servers import ORIGIN_PORT, Origin


class World:
    def __init__(self, programs, work):
        self.programs, self.work = programs, work
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            raise SystemExit("bench: two cores are needed, one for the server and one for the load")
        self.server_cpus, self.client_cpus, self.all_cpus = {cores[0]}, {cores[1]}, set(cores[:2])
        self._running = []
        self.origin = self.start(Origin, cpus=self.client_cpus)

    def start(self, kind, **options):
        server = kind(self)
        self._running.append(server)
        server.start(**options)
        return server

    def stop(self, server):
        self._running.remove(server)
        server.stop()

    def stop_all(self):
        while self._running:
            self._running.pop().stop()

    def limit(self, total_bytes_per_second=0, connection_bytes_per_second=0):
        self._control(f"limit?total={total_bytes_per_second}&connection={connection_bytes_per_second}")

    def count(self):
        """{"requests", "bytes"} that the origin answered since the last call."""
        return self._control("count")

    def memory_folder(self, name):
        """A folder in memory; it ends with the mount namespace of this run."""
        folder = self.work / "memory" / name
        folder.mkdir(parents=True, exist_ok=True)
        if not os.path.ismount(folder):
            subprocess.run(["mount", "-t", "tmpfs", "nezha-bench", str(folder)], check=True)
        return folder

    @staticmethod
    def _control(what):
        with urllib.request.urlopen(f"http://127.0.0.1:{ORIGIN_PORT}/control/{what}", timeout=10) as answer:
            return json.load(answer)

    @staticmethod
    def say(text):
        print(f"bench: {text}", flush=True)
