"""Processes of the benchmark: started in sessions of their own, pinned, accounted with all their children, ended."""

import ctypes
import os
import signal
import subprocess
import time

_libc = ctypes.CDLL(None, use_errno=True)
_SYS_PROCESS_MADVISE = 440  # the same number on every architecture
_MADV_PAGEOUT = 21
_CPU_CLOCK = 2  # the kind of clock that sums the time of all threads of a process, see clock_getcpuclockid(3)


class Process:
    """A program and everything that it starts."""

    def __init__(self, name, command, log, cpus=None, environment=None):
        self.name, self.log = name, log
        with open(log, "ab") as output:
            self._popen = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the benchmark, which then ends this in order
                env={**os.environ, **(environment or {})},
                preexec_fn=(lambda: os.sched_setaffinity(0, cpus)) if cpus else None,
            )
        self.pid = self._popen.pid

    def wait(self):
        self._popen.wait()

    def running(self):
        return self._popen.poll() is None

    def tree(self):
        """The ids of the process and of all its descendants."""
        children = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(parent, []).append(int(pid))
        found = [self.pid]
        for pid in found:
            found += children.get(pid, [])
        return found

    def cpu_seconds(self):
        """User and system time of all threads so far, to the microsecond: the kernel's own account, not samples."""
        return sum(_of_clock(pid) for pid in self.tree())

    def user_system_seconds(self):
        """The same, split in two; to the tick."""
        user = system = 0
        for pid in self.tree():
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    fields = file.read().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            user, system = user + int(fields[11]), system + int(fields[12])
        tick = os.sysconf("SC_CLK_TCK")
        return user / tick, system / tick

    def resident_bytes(self):
        total = 0
        for pid in self.tree():
            try:
                with open(f"/proc/{pid}/statm", encoding="utf-8") as file:
                    total += int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            except (FileNotFoundError, ProcessLookupError):
                continue
        return total

    def page_out(self, folder):
        """Takes the pages of the files in `folder` from the mappings of the process. They stay in the page cache."""
        for pid in self.tree():
            ranges = []
            with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
                for line in maps:
                    fields = line.split(maxsplit=5)
                    if len(fields) == 6 and fields[5].startswith(folder):
                        begin, end = (int(edge, 16) for edge in fields[0].split("-"))
                        ranges.append((begin, end - begin))
            _advise(pid, ranges, _MADV_PAGEOUT)

    def pin(self, cpus):
        for pid in self.tree():
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setaffinity(int(thread), cpus)

    def kill(self):
        """As the kernel's out-of-memory killer would: all of it, at once, without a word."""
        for pid in self.tree():
            _send(pid, signal.SIGKILL)
        self._popen.wait()

    def stop(self, seconds=30):
        """SIGTERM, and SIGKILL for what is left after a while. Returns how long it took."""
        begin = time.monotonic()
        tree = self.tree()
        if self.running():
            self._popen.terminate()
            try:
                self._popen.wait(seconds)
            except subprocess.TimeoutExpired:
                print(f"bench: {self.name} does not end on SIGTERM, killing it", flush=True)
        for pid in tree:
            _send(pid, signal.SIGKILL)
        self._popen.wait()
        return time.monotonic() - begin


def _of_clock(pid):
    try:
        return time.clock_gettime((~pid << 3) | _CPU_CLOCK)
    except OSError:
        return 0.0


def _send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _advise(pid, ranges, advice):
    """process_madvise(2), which Python does not have."""
    descriptor = os.pidfd_open(pid)
    try:
        for begin, size in ranges:
            vector = (ctypes.c_uint64 * 2)(begin, size)
            result = _libc.syscall(_SYS_PROCESS_MADVISE, descriptor, ctypes.byref(vector), 1, advice, 0)
            if result < 0:
                raise OSError(ctypes.get_errno(), "process_madvise")
    finally:
        os.close(descriptor)
