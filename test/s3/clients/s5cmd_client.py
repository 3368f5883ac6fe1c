"""s5cmd: parallel copies by Go's SDK, which signs the Range of every part."""

import json
import urllib.request

from common import BUCKET, ENDPOINT, content, summary
from programs import downloaded, run, with_file

HERE = f"s3://{BUCKET}/"
S5CMD = ("s5cmd", "--retry-count", "0", "--endpoint-url", ENDPOINT)
PARTS = ("--part-size", "5", "--concurrency", "3")


def version():
    return "s5cmd " + run("s5cmd", "version").decode().split()[0]


def s5cmd(*arguments, body=None):
    return run(*S5CMD, *arguments, body=body)


def read(key):
    return summary(s5cmd("cat", HERE + key))


def read_version(key, bucket, number):
    found = [line.split()[-1] for line in s5cmd("ls", "--all-versions", f"s3://{bucket}/{key}").decode().splitlines()]
    return summary(s5cmd("cat", "--version-id", found[-1 - number], f"s3://{bucket}/{key}"))


def download(key):
    return downloaded(*S5CMD, "cp", *PARTS, HERE + key)


def write(key, size):
    with_file(content(key, size), lambda file: s5cmd("cp", file, HERE + key))
    return head(key)


def write_parts(key, size):
    with_file(content(key, size), lambda file: s5cmd("cp", *PARTS, file, HERE + key))
    return head(key) | download(key)


def listing(prefix):
    found = [json.loads(line) for line in run(*S5CMD, "--json", "ls", "--etag", HERE + prefix + "*").splitlines()]
    return sorted([one["key"], one.get("size"), one.get("etag")] for one in found)


def head(key):
    found = json.loads(s5cmd("head", HERE + key))
    return {name: found.get(name) for name in ("key", "type", "size", "etag", "metadata")}


def copy(key, to):
    s5cmd("cp", HERE + key, HERE + to)
    return head(to) | read(to)


def delete(key):
    s5cmd("rm", HERE + key)


def delete_many(keys):
    s5cmd("rm", *(HERE + key for key in keys))


def read_signed_url(key):
    with urllib.request.urlopen(s5cmd("presign", HERE + key).decode().strip()) as answer:
        return summary(answer.read())
