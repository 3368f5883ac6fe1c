"""The repository follows each of our rules."""

import pytest
import rules
from tree import load


@pytest.fixture(scope="module")
def tree():
    loaded = load()
    assert len(loaded.code()) > 20, "the sources were not found"
    return loaded


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_rule(rule, tree):
    problems = rule(tree)
    assert not problems, "\n" + "\n".join(problems)
