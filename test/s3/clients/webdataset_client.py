"""webdataset: samples in tar files, each read in one piece by a command, as its documentation shows for S3."""

import io
import shlex

import webdataset
from common import BUCKET, ENDPOINT, content, summary

COMMAND = f"s5cmd --retry-count 0 --endpoint-url {ENDPOINT}"
SAMPLES, SAMPLE_BYTES, SHARD_SAMPLES = 120, 20_000, 50


def url(key):
    return f"s3://{BUCKET}/{key}"


def version():
    return f"webdataset {webdataset.__version__}"


def opened(key, mode="rb"):
    return webdataset.gopen(f"pipe:{COMMAND} {'cat' if mode == 'rb' else 'pipe'} {shlex.quote(url(key))}", mode)


def read(key):
    with opened(key) as stream:
        return summary(stream.read())


def download(key):
    return read(key)


def write(key, size):
    with opened(key, "wb") as stream:
        stream.write(content(key, size))
    return read(key)


def make_shards(key):
    for shard, begin in enumerate(range(0, SAMPLES, SHARD_SAMPLES)):
        made = io.BytesIO()
        with webdataset.TarWriter(made, mtime=0) as tar:
            for number in range(begin, min(begin + SHARD_SAMPLES, SAMPLES)):
                tar.write({"__key__": f"{number:06}", "bin": content(f"{key}-{number}", SAMPLE_BYTES)})
        with opened(f"{key}-{shard}.tar", "wb") as stream:
            stream.write(made.getvalue())


def read_made_shards(key):
    last = (SAMPLES - 1) // SHARD_SAMPLES
    shards = f"pipe:{COMMAND} cat '{url(key)}-{{0..{last}}}.tar'"
    samples = webdataset.WebDataset(shards, shardshuffle=False, empty_check=False)
    return [[one["__key__"], summary(one["bin"])["sha256"]] for one in samples]


def write_shards(key):
    make_shards(key)
    return read_made_shards(key)


MADE = set()


def read_shards(key):
    if key not in MADE:
        make_shards(key)
        MADE.add(key)
    return read_made_shards(key)
