"""Runs one client's operations: serve.py MODULE reads {"operation", "arguments"} as lines of JSON and answers each.

An answer is {"value": …} or {"error": …}, the latter without what differs from one request to the next.
"""

import importlib
import json
import os
import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2] / "support")]

PASSING = (
    (r"[Rr]equest ?[Ii][dD][:=]? ?[\w-]+", "request id"),
    (r"[Hh]ost ?[Ii][dD][:=]? ?[\w+/=-]*", "host id"),
    (r"<(RequestId|HostId)>[^<]*", r"<\1>"),
    (r"x-amz-id-2[:=]? ?[\w+/=-]*", "host id"),
    (r"\d{4}[/-]\d\d[/-]\d\d[T ]\d\d:\d\d:\d\d[.\dZ]*", "time"),
    (r"0x[0-9a-f]{6,}", "address"),
    (r"/tmp/[\w./-]+", "file"),
)


def without_passing(text):
    for pattern, instead in PASSING:
        text = re.sub(pattern, instead, text)
    return text


def described(error):
    """What a program could tell of the error: its class, S3's code and status, its words."""
    told = {"type": type(error).__name__, "words": without_passing(str(error))}
    answer = getattr(error, "response", None)
    if isinstance(answer, dict) and "Error" in answer:
        told |= {"code": answer["Error"].get("Code"), "status": answer["ResponseMetadata"]["HTTPStatusCode"]}
    return told


def main():
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    module = importlib.import_module(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"value": getattr(module, request["operation"])(**request["arguments"])}
        except Exception as error:  # noqa: BLE001 - whatever a client raises is the result that is compared
            answer = {"error": described(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
