"""The table of operations: what exists before, and the arguments that every client is given.

In each row `key` stands for a key of its own that only this client uses for this operation.
"""

from dataclasses import dataclass, field

SMALL, PARTED, LARGE = 70_000, 12_000_000, 17 << 20  # parts begin at 5 MiB in some clients, at 8 MiB in others


@dataclass(frozen=True)
class Operation:
    """`objects`: suffix of the key -> size. `arguments` may name `key`, `folder` and `versioned`."""

    words: str
    arguments: dict
    objects: dict = field(default_factory=lambda: {"": SMALL})
    changes: bool = False  # is a write: nothing of it can be a hit
    versions: int = 0


KEY = {"key": "{key}"}

OPERATIONS = {
    "read": Operation("read", KEY),
    "download": Operation("read in parts", KEY, {"": PARTED}),
    "read_range": Operation("range", KEY | {"first": 1000, "last": 2999}),
    "read_suffix": Operation("suffix range", KEY | {"count": 8}),
    "head": Operation("HEAD", KEY),
    "read_if_match": Operation("If-Match", KEY),
    "read_if_match_wrong": Operation("If-Match of another version", KEY),
    "read_if_none_match": Operation("If-None-Match", KEY),
    "read_if_none_match_wrong": Operation("If-None-Match of another version", KEY),
    "read_version": Operation("old version", KEY | {"bucket": "{versioned}", "number": 0}, {}, versions=2),
    "read_signed_url": Operation("signed URL", KEY),
    "read_signed_url_v4": Operation("signed URL, V4", KEY),
    "read_signed_url_v2": Operation("signed URL, V2", KEY),
    "listing": Operation("list", {"prefix": "{folder}/"}, {"": 10, "-b": 20, "-c/d": 30}),
    "write": Operation("write", KEY | {"size": SMALL}, {}, changes=True),
    "write_parts": Operation("write in parts", KEY | {"size": LARGE}, {}, changes=True),
    "write_table": Operation("write a table of Parquet", KEY, {}, changes=True),
    "read_table": Operation("read a table of Parquet", KEY, {}),
    "write_shards": Operation("write samples in shards", KEY, {}, changes=True),
    "read_shards": Operation("read samples from shards", KEY, {}),
    "copy": Operation("copy", KEY | {"to": "{key}-copy"}, changes=True),
    "delete": Operation("delete", KEY, changes=True),
    "delete_many": Operation(
        "delete many", {"keys": ["{key}/1", "{key}/2"]}, {"/1": 10, "/2": 20}, changes=True
    ),
    "read_absent": Operation("read what is not there", KEY, {}),
}


def filled(arguments, **values):
    """The arguments with {key}, {folder} and {versioned} put in."""
    if isinstance(arguments, dict):
        return {name: filled(value, **values) for name, value in arguments.items()}
    if isinstance(arguments, list):
        return [filled(value, **values) for value in arguments]
    return arguments.format(**values) if isinstance(arguments, str) else arguments
