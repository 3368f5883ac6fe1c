"""What clients share: where they read and write, and how they tell what they saw."""

import hashlib
import os

from origin import content as content_bytes

ENDPOINT = os.environ["AWS_ENDPOINT_URL_S3"]
BUCKET = os.environ["S3_BUCKET"]

# Fields that no two answers have alike, and those by which a cache may be known (docs/semantics.md).
PASSING_FIELDS = {
    "age", "cache-status", "connection", "date", "keep-alive", "last-modified", "server", "via",
    "x-amz-id-2", "x-amz-request-id", "x-amz-version-id", "x-amzn-requestid",
}


def content(seed, size):
    return content_bytes(seed, size)


def summary(body):
    return {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()}


def seen(answer):
    """The fields of an answer of boto3 or aiobotocore that a program may rely on."""
    fields = answer["ResponseMetadata"]["HTTPHeaders"]
    kept = {name.lower(): value for name, value in fields.items() if name.lower() not in PASSING_FIELDS}
    return {"fields": dict(sorted(kept.items())), "dated": "last-modified" in map(str.lower, fields)}
