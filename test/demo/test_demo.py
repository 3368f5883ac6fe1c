"""The demo works from end to end, shows what it promises, and leaves nothing behind. Needs the built programs."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("NEZHA_BUILD_DIR", str(ROOT / "build"))


def run_demo(tmp_path, build=BUILD):
    return subprocess.run(
        [ROOT / "scripts/demo", "--small", build],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def done(folder):
    return run_demo(folder)


def test_shows_the_patch_the_table_and_the_origins_own_counts(done):
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert '"path": "/spec/hostAliases"' in done.stdout
    assert (
        "10.77.0.1 www.cs.toronto.edu s3.eu-west-1.amazonaws.com team-data.s3.eu-west-1.amazonaws.com" in done.stdout
    )
    assert done.stdout.count("checksum verified") == 7
    assert "the web server's own log: 2 fetches" in done.stdout
    rows = re.findall(r"^  (wget|curl|boto3), .* (\d+) x$", done.stdout, re.MULTILINE)
    assert [client for client, _ in rows] == ["wget", "curl", "boto3"]
    assert all(int(ratio) > 1 for _, ratio in rows), "warm was no faster than the line of 10 MB/s"


def test_warm_reads_of_private_data_are_checked_by_the_store_and_send_no_bytes(done):
    text = done.stdout
    sent = int(re.search(r"own log: (\d+) parts sent", text).group(1))
    checked = int(re.search(r"it checked (\d+) signatures", text).group(1))
    assert checked == 3 * sent // 2, "each part of three warm runs was asked for once, each cold or direct part once"


def test_leaves_nothing_behind(done, folder):
    assert list(folder.iterdir()) == []
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(folder) not in processes


def test_says_what_to_do_when_nothing_is_built(tmp_path):
    done = run_demo(tmp_path, build=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == f"demo: {tmp_path}/bin/nezha-webhook is missing; run: make build\n"
