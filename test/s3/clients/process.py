"""Clients as processes: each runs in a Way, with endpoint, bucket and keys in its environment, as people set them.

A client is a module of this folder, run by serve.py under the Python of its own environment, which
test/s3/install.sh makes. Its functions are the operations that it offers.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
INSTALLED = Path(os.environ.get("NEZHA_CLIENTS", Path.home() / ".cache/nezha/clients"))


@dataclass
class Kind:
    """A client program or library: its module here, and the environment of install.sh that it runs in."""

    name: str
    environment: str = ""
    heavy: bool = False
    operations: frozenset = field(init=False)

    def __post_init__(self):
        tree = ast.parse((HERE / f"{self.name}_client.py").read_text(encoding="utf-8"))
        self.operations = frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))

    @property
    def python(self):
        return INSTALLED / self.environment / "bin/python" if self.environment else sys.executable


CLIENTS = {
    kind.name: kind
    for kind in (
        Kind("boto3"),
        Kind("awscli", "awscli"),
        Kind("s3fs", "s3fs"),
        Kind("pyarrow", "pyarrow"),
        Kind("s5cmd"),
        Kind("rclone"),
        Kind("spark", "spark", heavy=True),
        Kind("s3torchconnector", "torch", heavy=True),
        Kind("streaming", "torch", heavy=True),
        Kind("webdataset", "torch", heavy=True),
    )
}


class Failed(Exception):
    """An operation that had to succeed did not."""


class Client:
    """A running client. For use by one thread at a time."""

    def __init__(self, kind, way, endpoint, bucket, credentials, style="path"):
        self.kind = kind
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
        environment |= {
            "PATH": f"{INSTALLED}/bin:{os.environ['PATH']}",
            "AWS_REGION": "eu-west-1",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": str(HERE / "aws.config"),
            "AWS_ENDPOINT_URL_S3": endpoint,
            "S3_BUCKET": bucket,
            "S3_STYLE": style,
        }
        if credentials:
            environment |= {"AWS_ACCESS_KEY_ID": credentials["access"], "AWS_SECRET_ACCESS_KEY": credentials["secret"]}
        if credentials and credentials.get("token"):
            environment["AWS_SESSION_TOKEN"] = credentials["token"]
        command = [kind.python, HERE / "serve.py", f"{kind.name}_client"]
        self._complaints = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process = way.start(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaints, text=True
        )

    def begin(self, operation, **arguments):
        """Starts an operation; finish() waits for it. So two clients work at the same time."""
        self._process.stdin.write(json.dumps({"operation": operation, "arguments": arguments}) + "\n")
        self._process.stdin.flush()

    def finish(self):
        line = self._process.stdout.readline()
        if not line:
            self._complaints.seek(0)
            raise Failed(f"{self.kind.name} ended: {self._complaints.read()[-3000:]}")
        return json.loads(line)

    def ask(self, operation, **arguments):
        self.begin(operation, **arguments)
        return self.finish()

    def must(self, operation, **arguments):
        answer = self.ask(operation, **arguments)
        if "error" in answer:
            raise Failed(f"{self.kind.name} {operation} {arguments}: {answer['error']}")
        return answer.get("value")

    def end(self):
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._complaints.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
