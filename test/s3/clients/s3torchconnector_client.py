"""s3torchconnector: data sets and checkpoints of PyTorch, over the AWS Common Runtime, which reads in parts at once."""

import s3torchconnector
import torch
from common import BUCKET, ENDPOINT, content, summary
from s3torchconnector import S3Checkpoint, S3ClientConfig, S3IterableDataset, S3MapDataset, S3ReaderConstructor

CONFIG = S3ClientConfig(force_path_style=True, max_attempts=1, throughput_target_gbps=1.0)
PLACE = {"region": "eu-west-1", "endpoint": ENDPOINT, "s3client_config": CONFIG}
CHECKPOINTS = S3Checkpoint(**PLACE)


def url(key):
    return f"s3://{BUCKET}/{key}"


def version():
    return f"s3torchconnector {s3torchconnector.__version__} with torch {torch.__version__}"


def opened(key, **options):
    return S3MapDataset.from_objects([url(key)], **PLACE, **options)[0]


def by_ranges(key):
    return opened(key, reader_constructor=S3ReaderConstructor.range_based())


def read(key):
    return summary(opened(key).read())


def download(key):
    return summary(b"".join(reader.read() for reader in S3IterableDataset.from_objects([url(key)], **PLACE)))


def read_range(key, first, last):
    reader = by_ranges(key)
    reader.seek(first)
    return summary(reader.read(last + 1 - first))


def read_suffix(key, count):
    reader = by_ranges(key)
    reader.seek(-count, 2)
    return summary(reader.read(count))


def listing(prefix):
    return [[one.key, summary(one.read())] for one in S3IterableDataset.from_prefix(url(prefix), **PLACE)]


def write(key, size):
    with CHECKPOINTS.writer(url(key)) as writer:
        writer.write(content(key, size))
    return read(key)


def write_parts(key, size):
    """A checkpoint, as torch writes and loads it."""
    numbers = torch.frombuffer(bytearray(content(key, size)), dtype=torch.uint8)
    with CHECKPOINTS.writer(url(key)) as writer:
        torch.save({"numbers": numbers}, writer)
    with CHECKPOINTS.reader(url(key)) as reader:
        return summary(torch.load(reader, weights_only=True)["numbers"].numpy().tobytes())
