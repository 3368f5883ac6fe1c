"""The AWS command line, as `aws …`; within one process, because it takes a second to start."""

import contextlib
import io
import json
import shlex
import urllib.request

import awscli
from awscli.clidriver import create_clidriver
from common import BUCKET, content, summary
from programs import ProgramFailed, with_file
from serve import without_passing

HERE = f"s3://{BUCKET}/"


class Output(io.StringIO):
    """What the command writes, text or bytes."""

    def __init__(self):
        super().__init__()
        self.buffer = io.BytesIO()

    def bytes(self):
        return self.buffer.getvalue() + self.getvalue().encode()


def aws(*arguments):
    said, complaint = Output(), Output()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complaint):
        status = create_clidriver().main([str(one) for one in arguments])
    if status:
        words = without_passing(complaint.bytes().decode(errors="replace")).strip()
        raise ProgramFailed(f"{status}: {words} ({shlex.join(map(str, arguments[:2]))})")
    return said.bytes()


def version():
    return f"aws-cli {awscli.__version__}"


def told(answer, *drop):
    """The command's JSON without what differs between two servers."""
    answer = json.loads(answer or b"{}")
    for name in ("LastModified", "VersionId", "CopyObjectResult", *drop):
        answer.pop(name, None)
    return answer


def get_object(key, *options):
    def get(file):
        answer = told(aws("s3api", "get-object", "--bucket", BUCKET, "--key", key, *options, file))
        with open(file, "rb") as stream:
            return answer | summary(stream.read())

    return with_file(b"", get)


def head(key):
    return told(aws("s3api", "head-object", "--bucket", BUCKET, "--key", key))


def read(key):
    return with_file(b"", lambda file: [aws("s3", "cp", HERE + key, file)] and summary(open(file, "rb").read()))


def read_range(key, first, last):
    return get_object(key, "--range", f"bytes={first}-{last}")


def read_suffix(key, count):
    return get_object(key, "--range", f"bytes=-{count}")


def read_if_match(key):
    return get_object(key, "--if-match", head(key)["ETag"])


def read_if_match_wrong(key):
    return get_object(key, "--if-match", '"0"')


def read_if_none_match(key):
    return get_object(key, "--if-none-match", head(key)["ETag"])


def read_if_none_match_wrong(key):
    return get_object(key, "--if-none-match", '"0"')


def read_version(key, bucket, number):
    found = json.loads(aws("s3api", "list-object-versions", "--bucket", bucket, "--prefix", key))["Versions"]
    wanted = ["--bucket", bucket, "--key", key, "--version-id", found[-1 - number]["VersionId"]]
    return with_file(b"", lambda file: told(aws("s3api", "get-object", *wanted, file)))


def download(key):
    return read(key)


def write(key, size):
    with_file(content(key, size), lambda file: aws("s3", "cp", file, HERE + key))
    return head(key)


def write_parts(key, size):
    return write(key, size) | read(key)


def listing(prefix):
    found = told(aws("s3api", "list-objects-v2", "--bucket", BUCKET, "--prefix", prefix)).get("Contents", [])
    return [[one["Key"], one["Size"], one["ETag"]] for one in found]


def copy(key, to):
    aws("s3", "cp", HERE + key, HERE + to)
    return head(to) | read(to)


def delete(key):
    aws("s3", "rm", HERE + key)


def delete_many(keys):
    wanted = json.dumps({"Objects": [{"Key": key} for key in keys]})
    answer = json.loads(aws("s3api", "delete-objects", "--bucket", BUCKET, "--delete", wanted))
    return sorted(one["Key"] for one in answer["Deleted"])


def signed_url(key):
    return aws("s3", "presign", HERE + key).decode().strip()


def read_signed_url(key):
    with urllib.request.urlopen(signed_url(key)) as answer:
        return summary(answer.read())
