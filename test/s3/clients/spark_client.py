"""Spark with S3A: tables as Spark writes and reads them, and files by Hadoop's FileSystem, which Hive and others use.

S3A's own settings, but for the endpoint, and that it asks once.
"""

import functools
import os
import tempfile

from common import BUCKET, ENDPOINT, content, summary
from py4j.protocol import Py4JJavaError
from pyspark import __version__ as spark_version
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count_distinct, hash, sum
from serve import without_passing

ROWS = 100_000
PASSING_FIELDS = ("header.Date", "header.Last-Modified", "header.x-amz-version-id")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "768m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": tempfile.gettempdir(),
    "spark.hadoop.fs.s3a.endpoint": ENDPOINT,
    "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
    "spark.hadoop.fs.s3a.path.style.access": str(os.environ["S3_STYLE"] == "path").lower(),
    "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    "spark.hadoop.fs.s3a.multipart.size": "5M",
    "spark.hadoop.fs.s3a.attempts.maximum": "1",
    "spark.hadoop.fs.s3a.retry.limit": "1",
}


def started():
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


SPARK = started()
JAVA = SPARK._jvm
FILES = JAVA.org.apache.hadoop.fs.Path(f"s3a://{BUCKET}/").getFileSystem(SPARK._jsc.hadoopConfiguration())
to_bytes = JAVA.org.apache.commons.io.IOUtils.toByteArray


class JavaFailed(Exception):
    """What Java threw, without the stack, which differs with what the JVM has compiled by then."""


def in_java(operation):
    @functools.wraps(operation)
    def called(*arguments, **named):
        try:
            return operation(*arguments, **named)
        except Py4JJavaError as error:
            raise JavaFailed(without_passing(error.java_exception.toString())) from None
        except PySparkException as error:
            raise JavaFailed(without_passing(str(error).partition("\n")[0])) from None

    return called


def path(key):
    return JAVA.org.apache.hadoop.fs.Path("s3a", BUCKET, f"/{key}")


def version():
    return f"Spark {spark_version} with S3A {JAVA.org.apache.hadoop.util.VersionInfo.getVersion()}"


def opened(key, use):
    stream = FILES.open(path(key))
    try:
        return summary(use(stream))
    finally:
        stream.close()


@in_java
def read(key):
    return opened(key, to_bytes)


@in_java
def read_range(key, first, last):
    def part(stream):
        stream.seek(first)
        return to_bytes(stream, last + 1 - first)

    return opened(key, part)


@in_java
def read_suffix(key, count):
    def end(stream):
        stream.seek(FILES.getFileStatus(path(key)).getLen() - count)
        return to_bytes(stream)

    return opened(key, end)


@in_java
def download(key):
    with tempfile.TemporaryDirectory(prefix="nezha-client-") as folder:
        FILES.copyToLocalFile(False, path(key), JAVA.org.apache.hadoop.fs.Path(f"{folder}/body"), True)
        with open(f"{folder}/body", "rb") as stream:
            return summary(stream.read())


@in_java
def write(key, size):
    stream = FILES.create(path(key), True)
    stream.write(content(key, size))
    stream.close()
    return head(key)


@in_java
def write_parts(key, size):
    return write(key, size) | read(key)


@in_java
def listing(prefix):
    found = FILES.listFiles(path(prefix), True)
    files = []
    while found.hasNext():
        files.append(described(found.next()))
    return sorted(files, key=lambda file: file["path"])


def described(status):
    return {"path": status.getPath().toString(), "size": status.getLen(), "tag": status.getEtag()}


@in_java
def head(key):
    fields = FILES.getXAttrs(path(key))
    told = {name: bytes(fields[name]).decode() for name in fields if name not in PASSING_FIELDS}
    return described(FILES.getFileStatus(path(key))) | {"fields": told}


@in_java
def copy(key, to):
    """S3A copies when it renames; then back, to be asked again."""
    FILES.rename(path(key), path(to))
    found = head(to) | read(to) | {"left": FILES.exists(path(key))}
    FILES.rename(path(to), path(key))
    return found


@in_java
def delete(key):
    return FILES.delete(path(key), False)


@in_java
def delete_many(keys):
    """All keys of one folder."""
    return FILES.delete(path(keys[0].rpartition("/")[0]), True)


def make_table(key):
    rows = SPARK.range(ROWS, numPartitions=2).select(
        col("id").alias("ticket"),
        hash("id").alias("customer"),
        (col("id") % 97).cast("int").alias("day"),
        (col("id") * 7 % 1000 / 10).alias("price"),
    )
    rows.write.mode("overwrite").parquet(path(key).toString())


@in_java
def write_table(key):
    """Spark names the files by random numbers; so what is in them is the result."""
    make_table(key)
    return read_table(key)


@in_java
def read_table(key):
    """Footers, then some columns of some row groups, then all."""
    if not FILES.exists(path(f"{key}/_SUCCESS")):
        make_table(key)
    table = SPARK.read.parquet(path(key).toString())
    some = table.where("ticket > 90000").groupBy("day").agg(sum("price").alias("sum")).orderBy("day").collect()
    every = table.agg(count_distinct("customer"), sum(hash("ticket", "customer", "day", "price"))).collect()
    return {"schema": table.schema.simpleString(), "some": [[*row] for row in some], "every": [*every[0]]}
