"""mosaicml-streaming: shards of samples, written and read by their index; with boto3 below."""

import os
import tempfile

from common import BUCKET, ENDPOINT, content, summary

os.environ["S3_ENDPOINT_URL"] = ENDPOINT  # read when it is imported
import streaming  # noqa: E402
from streaming.base.storage import S3Downloader, S3Uploader  # noqa: E402

SAMPLES, SAMPLE_BYTES, SHARD_BYTES = 120, 20_000, 1 << 20


def url(key):
    return f"s3://{BUCKET}/{key}"


def version():
    return f"mosaicml-streaming {streaming.__version__}"


def in_folder(use):
    with tempfile.TemporaryDirectory(prefix="nezha-client-") as folder:
        return use(folder)


def read(key):
    def get(folder):
        S3Downloader().download(url(key), f"{folder}/body", timeout=60)
        with open(f"{folder}/body", "rb") as file:
            return summary(file.read())

    return in_folder(get)


def download(key):
    return read(key)


def write(key, size):
    def put(folder):
        name = key.rpartition("/")[2]
        with open(f"{folder}/{name}", "wb") as file:
            file.write(content(key, size))
        S3Uploader((f"{folder}/kept", url(key.rpartition("/")[0])), keep_local=True).s3.upload_file(
            f"{folder}/{name}", BUCKET, key
        )
        return read(key)

    return in_folder(put)


def make_shards(key):
    columns = {"number": "int", "body": "bytes"}
    with streaming.MDSWriter(
        out=url(key), columns=columns, size_limit=SHARD_BYTES, hashes=["sha1"], compression="zstd"
    ) as shards:
        for number in range(SAMPLES):
            shards.write({"number": number, "body": content(f"{key}-{number}", SAMPLE_BYTES)})


def write_shards(key):
    make_shards(key)
    return read_made_shards(key)


def read_made_shards(key):
    """All samples, into a folder that is empty before."""

    def get(folder):
        samples = streaming.StreamingDataset(
            remote=url(key), local=folder, batch_size=1, validate_hash="sha1", download_retry=1
        )
        return [[one["number"], summary(one["body"])["sha256"]] for one in map(samples.__getitem__, range(SAMPLES))]

    streaming.base.util.clean_stale_shared_memory()
    return in_folder(get)


MADE = set()


def read_shards(key):
    if key not in MADE:
        make_shards(key)
        MADE.add(key)
    return read_made_shards(key)
