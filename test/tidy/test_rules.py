"""Each rule refuses a source made to break it and accepts the same source put right; a rule that sees nothing fails."""

import pytest
import rules
from tree import Tree

GOOD_HEADER = "// A thing.\n#pragma once\n"


def lines(count):
    return "".join(f"  int v{i} = {i};\n" for i in range(count))


# rule -> (files that break it, what to change to put them right)
CANARIES = {
    rules.lines_are_short: [
        ({"src/base/a.cc": "// " + "x" * 118}, {"src/base/a.cc": "// " + "x" * 117}),
        ({"scripts/a": "#!/bin/bash\n" + "x" * 121}, {"scripts/a": "#!/bin/bash\n" + "x" * 120}),
    ],
    rules.functions_are_short: [
        ({"src/base/a.cc": "int f() {\n" + lines(69) + "}\n"}, {"src/base/a.cc": "int f() {\n" + lines(68) + "}\n"}),
        (
            {
                "src/base/a.cc": "namespace n {\nclass A {\n public:\n  A() : x_{1}, y_(2) {\n"
                + lines(69)
                + "  }\n};\n}\n"
            },
            {
                "src/base/a.cc": "namespace n {\nclass A {\n public:\n  A() : x_{1}, y_(2) {\n"
                + lines(9)
                + "  }\n"
                + lines(90)
                + "};\n}\n"
            },
        ),
        (
            {"src/base/a.cc": "void f() {\n  auto g = [] {\n" + lines(70) + "  };\n}\n"},
            {"src/base/a.cc": "constexpr T kTable[] = {\n" + '  {f("}{"), 1},\n' * 90 + "};\n"},
        ),
        (
            {"src/base/a.cc": "struct A f(int) const {\n" + lines(70) + "}\n"},
            {"src/base/a.cc": "struct A : B<void()> {\n" + lines(90) + "};\n"},
        ),
    ],
    rules.includes_point_down: [
        ({"src/base/a.cc": '#include "nezha/config/parse.h"\n'}, {"src/base/a.cc": '#include "nezha/base/text.h"\n'}),
        ({"webhook/a.cc": '#include "cache/tier/tier.h"\n'}, {"webhook/a.cc": '#include "webhook/b.h"\n'}),
        ({"cache/fill/a.cc": '#include "webhook/policy.h"\n'}, {"cache/fill/a.cc": '#include "nezha/net/loop.h"\n'}),
        (
            {"src/net/a.cc": '#include "nezha/http/message.h"\n'},
            {"src/net/a.cc": "", "src/http/a.cc": '#include "nezha/net/stream.h"\n'},
        ),
        (
            {"src/k8s/a.cc": '#include "test/support/x.h"\n'},
            {"src/k8s/a.cc": "", "test/a.cc": '#include "test/support/x.h"\n'},
        ),
        (
            {"cache/fill/a.cc": '#include "nezha/k8s/configmap_watch.h"\n', "src/k8s/a.cc": ""},
            {"cache/fill/a.cc": "", "cache/main.cc": '#include "nezha/k8s/configmap_watch.h"\n'},
        ),
    ],
    rules.libraries_stay_home: [
        ({"webhook/a.cc": "#include <boost/asio/post.hpp>\n"}, {"webhook/a.cc": "#include <nlohmann/json.hpp>\n"}),
        ({"cache/a.cc": "#include <nlohmann/json.hpp>\n"}, {"cache/a.cc": "#include <boost/asio/post.hpp>\n"}),
        (
            {"src/net/a.cc": "#include <boost/beast/http.hpp>\n"},
            {"src/http/a.cc": "#include <boost/beast/http.hpp>\n", "src/net/a.cc": ""},
        ),
        (
            {"cache/fill/a.cc": "#include <httplib.h>\n"},
            {"cache/fill/a.cc": "", "cache/admin/a.cc": "#include <httplib.h>\n"},
        ),
        ({"src/k8s/a.cc": "#include <spdlog/logger.h>\n"}, {"src/k8s/a.cc": "#include <string>\n"}),
        (
            {"src/base/a.cc": "#include <gtest/gtest.h>\n"},
            {"src/base/a.cc": "", "test/a.cc": "#include <gtest/gtest.h>\n"},
        ),
        (
            {"src/k8s/a.cc": "#include <yaml-cpp/yaml.h>\n"},
            {"src/k8s/a.cc": "", "cli/a.cc": "#include <yaml-cpp/yaml.h>\n"},
        ),
    ],
    rules.sources_are_built: [
        (
            {"src/base/a.cc": "", "src/base/CMakeLists.txt": "nezha_module(base SOURCES b.cc)  # a.cc"},
            {"src/base/CMakeLists.txt": "nezha_module(base SOURCES a.cc b.cc)"},
        ),
        (
            {"src/base/a.cc": "", "src/base/CMakeLists.txt": "SOURCES data.cc"},
            {"src/base/CMakeLists.txt": "SOURCES data.cc\n  a.cc\n"},
        ),
        (
            {"cache/tier/a.cc": "", "cache/CMakeLists.txt": "SOURCES index/a.cc"},
            {"cache/CMakeLists.txt": "SOURCES tier/a.cc"},
        ),
    ],
    rules.headers_say_what_they_are: [
        ({"src/base/a.h": "#pragma once\n"}, {"src/base/a.h": GOOD_HEADER}),
        ({"src/base/a.h": "// A thing.\n"}, {"src/base/a.h": GOOD_HEADER}),
    ],
    rules.headers_open_no_namespace: [
        (
            {"src/base/a.h": GOOD_HEADER + "using namespace std;\n"},
            {"src/base/a.h": GOOD_HEADER + "// using namespace std\n"},
        ),
    ],
    rules.nothing_is_left_for_later: [
        ({"src/base/a.cc": "// TODO: later\n"}, {"src/base/a.cc": "// to do is what a list is for\n"}),
        ({"scripts/a": "#!/bin/bash\n# FIXME\n"}, {"scripts/a": "#!/bin/bash\n"}),
    ],
    rules.documents_exist: [
        ({}, dict.fromkeys(rules.DOCUMENTS, "text")),
        (dict.fromkeys(rules.DOCUMENTS[1:], "text"), {rules.DOCUMENTS[0]: "text"}),
    ],
    rules.documents_name_real_files: [
        (
            {"README.md": "see `src/base/b.cc`", "src/base/a.cc": ""},
            {"README.md": "see `src/base/a.cc` or `other/thing`"},
        ),
        ({"docs/a.md": "[b](../b.md)"}, {"b.md": ""}),
        ({"docs/a.md": "[b](b.md#part)"}, {"docs/b.md": "", "docs/c.md": "[x](https://x.example/y) [p](#part)"}),
        ({"README.md": "`src/a.{h,cc}`", "src/a.h": GOOD_HEADER}, {"src/a.cc": ""}),
        ({"README.md": "`src/*_test.cc`", "src/a.cc": ""}, {"src/a_test.cc": ""}),
    ],
    rules.metrics_are_documented: [
        (
            {"cache/a.cc": 'metrics.counter("nezha_x_total", "");', "docs/metrics.md": ""},
            {"docs/metrics.md": "| `nezha_x_total` |"},
        ),
        ({"docs/metrics.md": "| `nezha_x_total{a=}` |"}, {"cache/a.cc": '"nezha_x_total"'}),
    ],
    rules.keys_are_documented: [
        (
            {"src/config/a.cc": 'view.expect_map({"name", "size"})', "docs/configuration.md": "| `name` | text |"},
            {"docs/configuration.md": "| `name` | text |\n| `size` | size |"},
        ),
        (
            {
                "src/config/a.cc": 'v.expect_map({"tiers"}) v.expect_map({"size"})',
                "docs/configuration.md": "| `tiers[].size` | |\n| `tiers[].gone` | |",
            },
            {"docs/configuration.md": "| `tiers[].size` | |"},
        ),
    ],
}


def test_every_rule_has_a_canary():
    assert set(CANARIES) == set(rules.RULES)


@pytest.mark.parametrize(
    ("rule", "broken", "repair"),
    [(rule, *pair) for rule, pairs in CANARIES.items() for pair in pairs],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_canary(rule, broken, repair):
    problems = rule(Tree(broken))
    assert len(problems) >= 1, "the rule did not see the mistake"
    assert all(":" in problem for problem in problems)
    assert rule(Tree(broken | repair)) == []
