"""boto3, and plain HTTP requests that it signs or not."""

import contextlib
import datetime
import http.client
import io
import json
import os
import urllib.parse

import boto3
import botocore.auth
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from common import BUCKET, ENDPOINT, content, seen, summary

POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Resource": "*"}]}
STYLE = os.environ["S3_STYLE"]


def made(service="s3", **options):
    settings = Config(s3={"addressing_style": STYLE}, retries={"max_attempts": 1}, **options)
    return boto3.client(service, endpoint_url=ENDPOINT, config=settings)


S3 = made()


def version():
    return f"boto3 {boto3.__version__}"


def create_bucket(bucket):
    S3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})


def turn_on_versions(bucket):
    S3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


def make_user(user, may):
    iam = made("iam")
    iam.create_user(UserName=user)
    if may:
        policy = {**POLICY, "Statement": [{**POLICY["Statement"][0], "Action": may}]}
        iam.put_user_policy(UserName=user, PolicyName="own", PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName=user)["AccessKey"]
    return {"access": key["AccessKeyId"], "secret": key["SecretAccessKey"]}


def end_user(user, access):
    made("iam").delete_access_key(UserName=user, AccessKeyId=access)


def read(key, **options):
    answer = S3.get_object(Bucket=BUCKET, Key=key, **options)
    return seen(answer) | summary(answer["Body"].read())


def read_range(key, first, last):
    return read(key, Range=f"bytes={first}-{last}")


def read_suffix(key, count):
    return read(key, Range=f"bytes=-{count}")


def read_if_match(key, right=True):
    tag = S3.head_object(Bucket=BUCKET, Key=key)["ETag"]
    return read(key, IfMatch=tag if right else '"0"')


def read_if_match_wrong(key):
    return read_if_match(key, right=False)


def read_if_none_match(key):
    return read(key, IfNoneMatch=S3.head_object(Bucket=BUCKET, Key=key)["ETag"])


def read_if_none_match_wrong(key):
    return read(key, IfNoneMatch='"0"')


def read_version(key, bucket, number):
    """The number-th version, the oldest first."""
    found = S3.list_object_versions(Bucket=bucket, Prefix=key)["Versions"]  # the newest first
    answer = S3.get_object(Bucket=bucket, Key=key, VersionId=found[-1 - number]["VersionId"])
    return {"versions": len(found)} | seen(answer) | summary(answer["Body"].read())


def download(key):
    """As download_file does: parts of 8 MiB at once."""
    body = io.BytesIO()
    S3.download_fileobj(BUCKET, key, body)
    return summary(body.getvalue())


def write(key, size, seed=None, bucket=BUCKET, metadata=None, **options):
    body = content(seed or key, size)
    answer = S3.put_object(Bucket=bucket, Key=key, Body=body, Metadata=metadata or {}, **options)
    return seen(answer)


def write_parts(key, size):
    parts = []
    upload = S3.create_multipart_upload(Bucket=BUCKET, Key=key, Metadata={"way": "parts"})["UploadId"]
    body = content(key, size)
    for number, begin in enumerate(range(0, size, 6 << 20), 1):
        piece = body[begin : begin + (6 << 20)]
        answer = S3.upload_part(Bucket=BUCKET, Key=key, UploadId=upload, PartNumber=number, Body=piece)
        parts.append({"PartNumber": number, "ETag": answer["ETag"]})
    S3.complete_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload, MultipartUpload={"Parts": parts})
    return read(key)


def listing(prefix):
    answer = S3.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    return [[one["Key"], one["Size"], one["ETag"]] for one in answer.get("Contents", [])]


def head(key):
    answer = S3.head_object(Bucket=BUCKET, Key=key)
    return seen(answer)


def copy(key, to):
    S3.copy_object(Bucket=BUCKET, Key=to, CopySource={"Bucket": BUCKET, "Key": key})
    return read(to)


def delete(key):
    return seen(S3.delete_object(Bucket=BUCKET, Key=key))


def delete_many(keys):
    answer = S3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key} for key in keys]})
    return sorted(one["Key"] for one in answer["Deleted"])


def signed_url(key, signer="s3v4", seconds=600, method="get_object"):
    parameters = {"Bucket": BUCKET, "Key": key}
    return made(signature_version=signer).generate_presigned_url(method, parameters, ExpiresIn=seconds)


def read_signed_url_v4(key):
    return ask_url(signed_url(key, "s3v4"))


def read_signed_url_v2(key):
    return ask_url(signed_url(key, "s3"))


def let_read(readers, owner):
    """A bucket policy: others may read all objects."""
    whole = [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"]
    rules = [
        {"Effect": "Allow", "Principal": {"AWS": [owner]}, "Action": "s3:*", "Resource": whole},
        {"Effect": "Allow", "Principal": {"AWS": readers}, "Action": "s3:GetObject", "Resource": whole[1]},
    ]
    S3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps({"Version": "2012-10-17", "Statement": rules}))


@contextlib.contextmanager
def earlier(seconds):
    """Signatures are made as if it were so many seconds ago."""
    now = botocore.auth.get_current_datetime
    botocore.auth.get_current_datetime = lambda *given: now(*given) - datetime.timedelta(seconds=seconds)
    try:
        yield
    finally:
        botocore.auth.get_current_datetime = now


def keys():
    return boto3.Session().get_credentials().get_frozen_credentials()


def signed_fields(url, method="GET", age_s=0, fields=None):
    """{"fields"}: with a V4 signature for the path as it is written here: nothing is encoded, nothing made simpler."""
    request = AWSRequest(method, url, headers=fields or {})
    with earlier(age_s):
        S3SigV4Auth(keys(), "s3", "eu-west-1").add_auth(request)
    return {"fields": dict(request.headers.items())}


def signed_url_for(url, age_s=0, seconds=600):
    request = AWSRequest("GET", url)
    with earlier(age_s):
        S3SigV4QueryAuth(keys(), "s3", "eu-west-1", expires=seconds).add_auth(request)
    return request.url


def http_signed(target):
    return ask_url(ENDPOINT + target, **signed_fields(ENDPOINT + target))


def ask_url(url, method="GET", fields=None, body=""):
    """The request as it is written here; returns status, fields and the body's hash."""
    host = urllib.parse.urlsplit(url).netloc
    connection = http.client.HTTPConnection(host, timeout=120)
    target = url[url.index(host) + len(host) :] or "/"
    connection.request(method, target, body=body.encode() or None, headers=fields or {})
    answer = connection.getresponse()
    received = answer.read()
    connection.close()
    told = {name.lower(): value for name, value in answer.getheaders()}
    outcome = {"status": answer.status} | seen({"ResponseMetadata": {"HTTPHeaders": told}})
    return outcome | (summary(received) if answer.status < 300 else {"code": error_code(received)})


def error_code(body):
    """S3's own word for an error; what else a server sends with it differs from one request to the next."""
    return body.decode(errors="replace").partition("<Code>")[2].partition("<")[0]
