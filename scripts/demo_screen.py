"""What the demo prints: headings, a live line while something downloads, the table at the end."""

import sys
import threading
import time

BAR = 24
LIVE = sys.stdout.isatty()


def heading(text):
    print(f"\n\033[1m{text}\033[0m" if LIVE else f"\n== {text}", flush=True)


def say(text=""):
    print(text, flush=True)


def megabytes(count):
    return f"{count / 1e6:.0f} MB"


class Progress:
    """Shows how far a download is, from `done()` bytes of `total`; one plain line where there is no terminal."""

    def __init__(self, label, total, done):
        self._label, self._total, self._done = label, total, done
        self._ended = threading.Event()
        self._begin = time.monotonic()

    def __enter__(self):
        self._thread = threading.Thread(target=self._draw, daemon=True)
        if LIVE:
            self._thread.start()
        else:
            say(f"  {self._label}: {megabytes(self._total)} ...")
        return self

    def __exit__(self, *_):
        self._ended.set()
        if LIVE:
            self._thread.join()
            print("\r\033[K", end="", flush=True)

    def _draw(self):
        while not self._ended.wait(0.1):
            done = min(self._done(), self._total)
            seconds = time.monotonic() - self._begin
            filled = round(BAR * done / self._total)
            print(
                f"\r\033[K  {self._label:<24} [{'#' * filled}{'.' * (BAR - filled)}] {done / 1e6:5.0f} of "
                f"{megabytes(self._total)}  {done / 1e6 / max(seconds, 0.01):7.1f} MB/s",
                end="",
                flush=True,
            )


def table(rows):
    """rows: (client, size, {"direct": seconds, "cold": seconds, "warm": seconds})"""
    ways = ("direct", "cold", "warm")
    say(f"  {'':<26}" + "".join(f"{way:>24}" for way in ways) + f"{'warm : direct':>16}")
    for client, size, seconds in rows:
        cells = "".join(f"{f'{seconds[way]:.2f} s {size / 1e6 / seconds[way]:8.1f} MB/s':>24}" for way in ways)
        ratio = f"{seconds['direct'] / seconds['warm']:.0f} x"
        say(f"  {client:<26}{cells}{ratio:>16}")
