"""Every header compiles alone, so that including it first is always enough.

A header that some source includes before anything else is proved by the build; the others are compiled here. A
verdict is kept by a hash of the compiler, the flags, the header and every header of ours that it reaches: a second run
compiles only what changed.
"""

import hashlib
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tree import ROOT, load

COMPILER = os.environ.get("CXX", "g++")
FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++", "-DCPPHTTPLIB_OPENSSL_SUPPORT"]
KEPT = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "nezha" / "headers"
PARALLEL = 2


def reached(path, texts, seen):
    """`path` and every header of ours that it includes, directly or not."""
    if path in texts and path not in seen:
        seen.add(path)
        for target in re.findall(r'^#include "([^"]+)"', texts[path], re.M):
            reached("include/" + target if target.startswith("nezha/") else target, texts, seen)
    return seen


def proved_by_the_build(texts):
    """Headers that are the first include of a source: it would not compile if they lacked something."""
    firsts = set()
    for path, text in texts.items():
        match = path.endswith(".cc") and re.search(r'^#include ["<]([^">]+)', text, re.MULTILINE)
        if match:
            firsts.add("include/" + match.group(1) if match.group(1).startswith("nezha/") else match.group(1))
    return firsts


def verdict_file(path, texts, compiler):
    digest = hashlib.sha256(repr((compiler, FLAGS, path)).encode())
    for name in sorted(reached(path, texts, set())):
        digest.update(texts[name].encode())
    return KEPT / digest.hexdigest()


def compile_alone(path, root):
    """The compiler's complaints about a file that includes only this header, or nothing."""
    name = path.removeprefix("include/")
    done = subprocess.run(
        [COMPILER, *FLAGS, f"-I{root}", f"-I{root}/include", "-"],
        input=f'#include "{name}"\n',
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr if done.returncode else ""


def check(path, texts, compiler):
    kept = verdict_file(path, texts, compiler)
    if kept.exists():
        return ""
    problem = compile_alone(path, ROOT)
    if not problem:
        kept.touch()
    return problem


def test_every_header_compiles_alone():
    texts = dict(load().code())
    headers = sorted(path for path in texts.keys() - proved_by_the_build(texts) if path.endswith(".h"))
    compiler = subprocess.run([COMPILER, "--version"], capture_output=True, text=True, check=True).stdout
    KEPT.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(PARALLEL) as pool:
        problems = list(pool.map(lambda path: check(path, texts, compiler), headers))
    failed = [f"{path}:\n{problem}" for path, problem in zip(headers, problems, strict=True) if problem]
    assert not failed, "\n" + "\n".join(failed)


def test_only_the_first_include_counts_as_proof():
    texts = {"src/a/a.cc": '#include "nezha/a/a.h"\n\n#include "src/a/b.h"\n', "src/a/c.cc": "#include <string>\n"}
    assert proved_by_the_build(texts) == {"include/nezha/a/a.h", "string"}


@pytest.mark.parametrize(
    ("text", "compiles"), [("std::string f();", False), ("#include <string>\nstd::string f();", True)]
)
def test_canary(tmp_path, text, compiles):
    (tmp_path / "canary.h").write_text(f"// A canary.\n#pragma once\n{text}\n")
    assert (compile_alone("canary.h", tmp_path) == "") == compiles
