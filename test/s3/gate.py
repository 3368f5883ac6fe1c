"""A TCP relay in front of a server: notes what is asked, and can hold answers after some bytes until they are released.

    gate.py LISTEN TARGET LOG        each IP:PORT; LOG gets the bytes of every request head, as they came

Commands come as lines on standard input; an answer is one line on standard output: `hold N` lets N bytes of each answer
pass and no more, `release` lets all pass, `held` answers `ok` once an answer is being held, or `no` after a minute.
"""

import socket
import sys
import threading

PIECE = 64 * 1024


class Gate:
    """What all connections share: how much of an answer may pass. For use by any thread."""

    def __init__(self):
        self._changed = threading.Condition()
        self._limit = None
        self._held = 0

    def command(self, words):
        """Whether it could be done."""
        with self._changed:
            if words[0] == "hold":
                self._limit = int(words[1])
            elif words[0] == "release":
                self._limit = None
                self._changed.notify_all()
            elif words[0] == "held":
                return self._changed.wait_for(lambda: self._held > 0, timeout=60)
            return True

    def allowance(self, passed):
        """How many more bytes of an answer may pass now, at least one; waits while there are none."""
        with self._changed:
            if self._limit is not None and passed >= self._limit:
                self._held += 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._limit is None or passed < self._limit)
                self._held -= 1
            return PIECE if self._limit is None else self._limit - passed


class Connection:
    def __init__(self, client, target, gate, log):
        self._client, self._gate, self._log = client, gate, log
        self._server = socket.create_connection(target)
        self._passed = 0  # bytes of the answer that is under way
        threading.Thread(target=self._requests, daemon=True).start()
        threading.Thread(target=self._answers, daemon=True).start()

    def _requests(self):
        try:
            while piece := self._client.recv(PIECE):
                self._passed = 0
                if b" HTTP/1.1\r\n" in piece:
                    self._log.write(piece.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
                    self._log.flush()
                self._server.sendall(piece)
            self._server.shutdown(socket.SHUT_WR)
        except OSError:
            self._close()

    def _answers(self):
        try:
            while piece := self._server.recv(PIECE):
                while piece:
                    part = piece[: self._gate.allowance(self._passed)]
                    self._client.sendall(part)
                    self._passed += len(part)
                    piece = piece[len(part) :]
        except OSError:
            pass
        self._close()

    def _close(self):
        for end in (self._client, self._server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def accept(server, target, gate, log):
    while True:
        client, _ = server.accept()
        try:
            Connection(client, target, gate, log)
        except OSError:
            client.close()


def main():
    listen, target, log = sys.argv[1:]
    gate = Gate()
    with socket.create_server(address(listen), backlog=128) as server, open(log, "ab") as file:
        threading.Thread(target=accept, args=(server, address(target), gate, file), daemon=True).start()
        for line in sys.stdin:
            print("ok" if gate.command(line.split()) else "no", flush=True)


if __name__ == "__main__":
    main()
