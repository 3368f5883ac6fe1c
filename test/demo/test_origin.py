"""The origin server of the demo answers as a web server does, logs what it sent, and shares its line's speed."""

import http.client
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

ORIGIN = Path(__file__).resolve().parents[1] / "support" / "origin.py"
sys.path.insert(0, str(ORIGIN.parent))
from origin import Line, byte_range, content  # noqa: E402

SIZE = 200_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """(port, log file) of a running origin; it says its port on standard output."""
    log = tmp_path_factory.mktemp("origin") / "log"
    command = [sys.executable, str(ORIGIN), "--listen", "127.0.0.1:0", "--file", f"/file={SIZE}", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield int(process.stdout.readline().rsplit(":", 1)[1]), log
        process.terminate()


def get(port, method="GET", path="/file", **fields):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in fields.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_get_head_and_absent(server):
    port, _ = server
    answer, body = get(port)
    assert (answer.status, body) == (200, content("/file", SIZE))
    assert answer.headers["ETag"].startswith('"')
    head, nothing = get(port, "HEAD")
    assert (head.status, nothing, head.headers["Content-Length"]) == (200, b"", str(SIZE))
    assert get(port, path="/other")[0].status == 404


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("bytes=0-9", 0, 9),
        ("bytes=199990-", 199_990, 199_999),
        ("bytes=-5", 199_995, 199_999),
        ("bytes=5-999999", 5, 199_999),
    ],
)
def test_ranges(server, text, first, last):
    answer, body = get(server[0], Range=text)
    assert (answer.status, body) == (206, content("/file", SIZE)[first : last + 1])
    assert answer.headers["Content-Range"] == f"bytes {first}-{last}/{SIZE}"


def test_conditions(server):
    port, _ = server
    tag = get(port, "HEAD")[0].headers["ETag"]
    assert get(port, If_None_Match=tag)[0].status == 304
    assert get(port, If_None_Match='"other"')[0].status == 200
    assert get(port, Range="bytes=0-0", If_Range=tag)[0].status == 206
    assert get(port, Range="bytes=0-0", If_Range='"other"')[0].status == 200
    assert get(port, Range="bytes=200000-")[0].status == 416


def test_what_is_no_range_is_ignored():
    for text in (None, "", "bytes=", "bytes=-", "bytes=9-5", "lines=1-2", "bytes=0-1,3-4"):
        assert byte_range(text, 10) is None


def test_log_has_one_line_per_request(server):
    port, log = server
    before = len(log.read_text().splitlines())
    get(port, Range="bytes=0-9")
    deadline = time.monotonic() + 30
    while len(lines := log.read_text().splitlines()) == before and time.monotonic() < deadline:
        time.sleep(0.01)  # the line is written after the body was sent
    assert len(lines) == before + 1
    last = json.loads(lines[-1])
    assert (last["method"], last["path"], last["range"], last["status"], last["bytes"]) == (
        "GET",
        "/file",
        "bytes=0-9",
        206,
        10,
    )
    assert last["complete"]


def test_content_depends_on_the_path_alone():
    assert content("/a", 100) == content("/a", 200)[:100]
    assert content("/a", 100) != content("/b", 100)


def test_a_line_without_a_limit_never_waits(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited"))
    Line(None).take(10**9)


def test_a_line_is_shared(monkeypatch):
    now, slept = [100.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", slept.append)
    line = Line(1_000_000)
    for _ in range(20):  # as many connections would, all at the same moment
        line.take(100_000)
    assert slept[-1] == pytest.approx(2.0, abs=0.2), (
        "2,000,000 bytes take two seconds of a line of 1,000,000 a second"
    )
