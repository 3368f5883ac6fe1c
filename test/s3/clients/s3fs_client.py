"""s3fs: files on S3 as pandas, dask and many others read them."""

import urllib.request

import s3fs
from common import BUCKET, ENDPOINT, content, seen, summary

PLAIN = {"use_listings_cache": False, "skip_instance_cache": True}
FILES = s3fs.S3FileSystem(endpoint_url=ENDPOINT, **PLAIN)


def path(key):
    return f"{BUCKET}/{key}"


def version():
    return f"s3fs {s3fs.__version__}"


def read(key):
    return summary(FILES.cat_file(path(key)))


def read_range(key, first, last):
    return summary(FILES.cat_file(path(key), start=first, end=last + 1))


def read_suffix(key, count):
    return summary(FILES.cat_file(path(key), start=-count))


def conditional(key, **options):
    answer = FILES.call_s3("get_object", Bucket=BUCKET, Key=key, **options)
    return seen(answer)


def read_if_match(key):
    return conditional(key, IfMatch=FILES.info(path(key))["ETag"])


def read_if_match_wrong(key):
    return conditional(key, IfMatch='"0"')


def read_if_none_match(key):
    return conditional(key, IfNoneMatch=FILES.info(path(key))["ETag"])


def read_if_none_match_wrong(key):
    return conditional(key, IfNoneMatch='"0"')


def read_version(key, bucket, number):
    files = s3fs.S3FileSystem(endpoint_url=ENDPOINT, version_aware=True, **PLAIN)
    found = files.object_version_info(f"{bucket}/{key}")
    return summary(files.cat_file(f"{bucket}/{key}", version_id=found[-1 - number]["VersionId"]))


def download(key):
    """As readers of columns do: blocks of 5 MiB, in order."""
    with FILES.open(path(key), "rb", block_size=5 << 20) as file:
        return summary(file.read())


def write(key, size):
    FILES.pipe_file(path(key), content(key, size))
    return head(key)


def write_parts(key, size):
    with FILES.open(path(key), "wb", block_size=5 << 20) as file:
        file.write(content(key, size))
    return head(key) | read(key)


def listing(prefix):
    found = FILES.find(path(prefix.rstrip("/")), detail=True)
    return sorted([one["Key"], one["size"], one["ETag"]] for one in found.values())


def head(key):
    found = FILES.info(path(key))
    return {name: found.get(name) for name in ("ETag", "size", "type", "ContentType", "StorageClass")}


def copy(key, to):
    FILES.copy(path(key), path(to))
    return head(to) | read(to)


def delete(key):
    FILES.rm_file(path(key))


def delete_many(keys):
    FILES.rm([path(key) for key in keys])


def read_signed_url(key):
    with urllib.request.urlopen(FILES.url(path(key))) as answer:
        return summary(answer.read())
