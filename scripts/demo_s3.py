"""An S3 client as people write it: boto3 with its defaults (parallel ranged GETs above 8 MiB), run by the demo.

    demo_s3.py put ENDPOINT BUCKET KEY FILE    makes a user with a key, a bucket and the object; prints the key as JSON
    demo_s3.py get BUCKET KEY FILE             downloads with the key of the environment; prints the seconds it took
The demo's object store checks every signature after the three calls that make the user.
"""

import json
import sys
import time

import boto3
from botocore.config import Config

REGION = "eu-west-1"
POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}


def put(endpoint, bucket, key, file):
    iam = boto3.client(
        "iam", endpoint_url=endpoint, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x"
    )
    iam.create_user(UserName="data-scientist")
    iam.put_user_policy(UserName="data-scientist", PolicyName="s3", PolicyDocument=json.dumps(POLICY))
    made = iam.create_access_key(UserName="data-scientist")["AccessKey"]
    keys = {"AWS_ACCESS_KEY_ID": made["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"]}
    s3 = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=made["AccessKeyId"],
        aws_secret_access_key=made["SecretAccessKey"],
        config=Config(s3={"addressing_style": "path"}),
    )
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.upload_file(file, bucket, key)
    print(json.dumps(keys))


def get(bucket, key, file):
    client = boto3.client("s3", region_name=REGION, use_ssl=False)
    begin = time.monotonic()
    client.download_file(bucket, key, file)
    print(time.monotonic() - begin)


if __name__ == "__main__":
    {"put": put, "get": get}[sys.argv[1]](*sys.argv[2:])
