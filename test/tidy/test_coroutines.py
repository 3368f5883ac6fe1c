"""What g++ 12 miscompiles around co_await: temporaries of a conditional operand are lost or freed twice.

Such values are named in a statement of their own first.
"""

import re

import pytest
from rules import line_of
from tree import Tree, blank_out, load

BEHIND_CONDITION = re.compile(r"(?:&&|\|\|)\s*!?\s*\(*\s*co_await\b")


def awaits_are_plain(tree):
    problems = []
    for path, text in tree.code():
        blank = blank_out(text)
        if "co_await" not in blank:
            continue
        for match in BEHIND_CONDITION.finditer(blank):
            line = line_of(blank, match.end())
            problems.append(f"{path}:{line}: co_await behind && or ||: name its value in a statement before")
        for match in re.finditer(r"[^;{}]+", blank):
            statement = match.group()
            if "co_await" in statement and re.search(r"\s\?\s", statement):
                line = line_of(blank, match.start() + statement.index("co_await"))
                problems.append(f"{path}:{line}: co_await in one statement with ?: — name its value before")
    return problems


def test_awaits_are_plain():
    problems = awaits_are_plain(load())
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ("if (a && co_await f()) g();", True),
        ("if (a || !co_await f()) g();", True),
        ("if (a &&\n      !(co_await f())) g();", True),
        ("x = a ? co_await f() : b;", True),
        ('co_await f(a ? "b" : c);', True),
        ("const bool got = co_await f();\n  if (a && got) g();", False),
        ("if (a && b) co_await f();", False),
        ("// a && co_await f()\n  co_await f();", False),
        ("const int c = a ? b : d;\n  co_await f(c);", False),
    ],
)
def test_canary(body, refused):
    problems = awaits_are_plain(Tree({"src/net/a.cc": f"Task<> f() {{\n  {body}\n}}\n"}))
    assert bool(problems) == refused
