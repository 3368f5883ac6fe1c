"""pyarrow: the file system of Arrow's C++ library, which reads Parquet for pandas, Ray and others."""

import pyarrow
from common import BUCKET, ENDPOINT, content, summary
from pyarrow import fs

FILES = fs.S3FileSystem(
    region="eu-west-1",
    scheme="http",
    endpoint_override=ENDPOINT.removeprefix("http://"),
    retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
)


def path(key):
    return f"{BUCKET}/{key}"


def version():
    return f"pyarrow {pyarrow.__version__}"


def read(key):
    with FILES.open_input_stream(path(key)) as stream:
        return summary(stream.read()) | {"metadata": metadata(stream)}


def metadata(stream):
    told = {str(name): str(value) for name, value in (stream.metadata() or {}).items()}
    return {name: value for name, value in told.items() if name not in ("Last-Modified", "VersionId")}


def read_range(key, first, last):
    with FILES.open_input_file(path(key)) as file:
        return summary(file.read_at(last + 1 - first, first))


def read_suffix(key, count):
    with FILES.open_input_file(path(key)) as file:
        return summary(file.read_at(count, file.size() - count))


def download(key):
    return read(key)


def write(key, size):
    with FILES.open_output_stream(path(key), metadata={"Content-Type": "text/x-arrow"}) as stream:
        stream.write(content(key, size))
    return head(key)


def write_parts(key, size):
    return write(key, size) | read(key)


def listing(prefix):
    found = FILES.get_file_info(fs.FileSelector(path(prefix.rstrip("/")), recursive=True))
    return sorted([one.path, one.size] for one in found if one.type == fs.FileType.File)


def head(key):
    found = FILES.get_file_info(path(key))
    return {"type": str(found.type), "size": found.size}


def copy(key, to):
    FILES.copy_file(path(key), path(to))
    return head(to) | read(to)


def delete(key):
    FILES.delete_file(path(key))


def delete_many(keys):
    """All keys of one folder."""
    FILES.delete_dir_contents(path(keys[0].rpartition("/")[0]))
