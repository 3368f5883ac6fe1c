"""rclone: copies and synchronises; it checks sizes and MD5 sums of what it moved."""

import json
import urllib.request

from common import BUCKET, ENDPOINT, content, summary
from programs import downloaded, run, with_file

HERE = f"far:{BUCKET}/"
SETTINGS = {
    "RCLONE_CONFIG": "/dev/null",
    "RCLONE_CONFIG_FAR_TYPE": "s3",
    "RCLONE_CONFIG_FAR_PROVIDER": "Other",
    "RCLONE_CONFIG_FAR_ENV_AUTH": "true",
    "RCLONE_CONFIG_FAR_REGION": "eu-west-1",
    "RCLONE_CONFIG_FAR_ENDPOINT": ENDPOINT,
    "RCLONE_CONFIG_FAR_NO_CHECK_BUCKET": "true",
    "RCLONE_LOW_LEVEL_RETRIES": "1",
    "RCLONE_RETRIES": "1",
}
PARTS = ("--s3-upload-cutoff", "5M", "--s3-chunk-size", "5M")


def version():
    return run("rclone", "version", environment=SETTINGS).decode().split("\n")[0]


def rclone(*arguments):
    return run("rclone", *arguments, environment=SETTINGS)


def read(key):
    return summary(rclone("cat", HERE + key))


def read_range(key, first, last):
    return summary(rclone("cat", "--offset", str(first), "--count", str(last + 1 - first), HERE + key))


def read_suffix(key, count):
    return summary(rclone("cat", "--tail", str(count), HERE + key))


def download(key):
    """Parts at once, then the MD5 sum."""
    parts = ("--multi-thread-cutoff", "5M", "--multi-thread-streams", "3")
    return downloaded("rclone", "copyto", *parts, HERE + key, environment=SETTINGS)


def write(key, size):
    with_file(content(key, size), lambda file: rclone("copyto", file, HERE + key))
    return head(key)


def write_parts(key, size):
    with_file(content(key, size), lambda file: rclone("copyto", *PARTS, file, HERE + key))
    return head(key) | read(key)


def listing(prefix):
    found = json.loads(rclone("lsjson", "--recursive", "--hash", "--files-only", HERE + prefix.rstrip("/")))
    return sorted([one["Path"], one["Size"], one.get("Hashes")] for one in found)


def head(key):
    found = json.loads(rclone("lsjson", "--stat", "--hash", HERE + key))
    return {name: found.get(name) for name in ("Name", "Size", "MimeType", "Hashes")}


def copy(key, to):
    rclone("copyto", HERE + key, HERE + to)
    return head(to) | read(to)


def delete(key):
    rclone("deletefile", HERE + key)


def delete_many(keys):
    """All keys of one folder."""
    rclone("delete", HERE + keys[0].rpartition("/")[0])


def read_signed_url(key):
    with urllib.request.urlopen(rclone("link", "--expire", "10m", HERE + key).decode().strip()) as answer:
        return summary(answer.read())
