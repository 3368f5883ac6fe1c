"""Our style as functions: Tree -> list of "path:line: what is wrong". STYLE.md gives the reasons.

RULES lists them all; test_rules.py shows for each one a source that it must refuse.
"""

import re

from layers import ALLOWED_MODULES, ALLOWED_ONLY_IN, HOMES, module_of
from tree import blank_out

LINE_MAX = 120
FUNCTION_LINES_MAX = 70
DOCUMENTS = (
    "README.md",
    "ARCHITECTURE.md",
    "HACKING.md",
    "STYLE.md",
    "LICENSE",
    "docs/configuration.md",
    "docs/semantics.md",
    "docs/metrics.md",
    "docs/formats.md",
    "webhook/README.md",
    "cache/README.md",
)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def lines_are_short(tree):
    return [
        f"{path}:{number}: line of {len(line)} characters, at most {LINE_MAX} are allowed"
        for path, text in tree.code() + tree.scripts()
        for number, line in enumerate(text.split("\n"), 1)
        if len(line) > LINE_MAX
    ]


def functions(text):
    """(first line, last line) of every function body at namespace or class level; lambdas count in their function."""
    text = blank_out(text)
    found, stack, head = [], [], 0
    for position, char in enumerate(text):
        if char == "{":
            if position and not text[position - 1].isspace() and text[position - 1] not in ")(":
                stack.append(None)  # value{…}: an initializer, the declaration goes on
                continue
            stack.append(line_of(text, position) if is_function(text[head:position], stack) else 0)
            head = position + 1
        elif char == "}" and stack:
            begin = stack.pop()
            if begin:
                found.append((begin, line_of(text, position)))
            if begin is not None:
                head = position + 1
        elif char == ";" and None not in stack:
            head = position + 1
    return found


def is_function(head, stack):
    inside_function = any(stack)
    head = re.sub(r"#[^\n]*(\\\n[^\n]*)*", "", head)
    head = re.sub(r"^\s*(public|private|protected)\s*:", "", head).strip()
    if inside_function or "(" not in head or head.endswith("="):
        return False
    return not re.match(
        r"(inline\s+)?(namespace|class|struct|enum|union|extern)\b(?![^{]*\)\s*(const|noexcept|override)*$)", head
    )


def functions_are_short(tree):
    return [
        f"{path}:{begin}: function of {end - begin + 1} lines, at most {FUNCTION_LINES_MAX} are allowed"
        for path, text in tree.code()
        for begin, end in functions(text)
        if end - begin + 1 > FUNCTION_LINES_MAX
    ]


def includes_point_down(tree):
    problems = []
    for path, text in tree.code():
        module = module_of(path)
        for match in INCLUDE.finditer(text):
            quote, target = match.groups()
            wanted = module_of("include/" + target if target.startswith("nezha/") else target)
            if quote != '"' or wanted == module or wanted in ALLOWED_MODULES.get(module, ()):
                continue
            if path in ALLOWED_ONLY_IN.get(target, ()):
                continue
            problems.append(f"{path}:{line_of(text, match.start())}: {module} must not include {wanted} ({target})")
    return problems


def libraries_stay_home(tree):
    problems = []
    for path, text in tree.code():
        for match in INCLUDE.finditer(text):
            for library, homes in HOMES:
                if re.match(library, match.group(2)) and not any(re.match(home, path) for home in homes):
                    problems.append(
                        f"{path}:{line_of(text, match.start())}: {match.group(2)} belongs in {' '.join(homes)}"
                    )
    return problems


def sources_are_built(tree):
    """Each .cc is named in the CMakeLists.txt of its folder or of one above, relative to it."""
    problems = []
    for path, _ in tree.code():
        if not path.endswith(".cc"):
            continue
        parts = path.split("/")
        named = False
        for depth in range(len(parts)):
            listing = tree.texts.get("/".join([*parts[:depth], "CMakeLists.txt"]), "")
            relative = "/".join(parts[depth:])
            named = named or re.search(
                r"(?<![\w./-])" + re.escape(relative) + r"(?![\w.-])", without_comments(listing)
            )
        if not named and not is_named_from_afar(tree, path):
            problems.append(f"{path}:1: no CMakeLists.txt names this file: it is not built")
    return problems


def is_named_from_afar(tree, path):
    """Shared test sources are named by ${CMAKE_SOURCE_DIR}/path elsewhere."""
    wanted = "${CMAKE_SOURCE_DIR}/" + path
    return any(
        wanted in without_comments(text)
        for name, text in tree.texts.items()
        if name.endswith(("CMakeLists.txt", ".cmake"))
    )


def without_comments(listing):
    return re.sub(r"#[^\n]*", "", listing)


def headers_say_what_they_are(tree):
    problems = []
    for path, text in tree.headers():
        if not text.startswith("// "):
            problems.append(f"{path}:1: begins without a comment that says what this header is for")
        if not re.search(r"^#pragma once$", text, re.M):
            problems.append(f"{path}:1: has no #pragma once")
    return problems


def headers_open_no_namespace(tree):
    return [
        f"{path}:{line_of(text, match.start())}: using namespace in a header reaches every file that includes it"
        for path, text in tree.headers()
        for match in re.finditer(r"^\s*using namespace\b", blank_out(text), re.M)
    ]


def nothing_is_left_for_later(tree):
    marks = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b(?!ING)")
    return [
        f"{path}:{line_of(text, match.start())}: {match.group()} left in the source; do it or drop it"
        for path, text in tree.code() + tree.scripts()
        if not path.startswith("test/tidy/")
        for match in marks.finditer(text)
    ]


def documents_exist(tree):
    return [f"{path}:1: this document is missing" for path in DOCUMENTS if path not in tree.texts]


def documents_name_real_files(tree):
    """Each `path/in/backticks` of a document, and each link to a file, exists."""
    problems = []
    folders = tree.folders()
    tops = {path.split("/")[0] for path in tree.texts if "/" in path}
    for path, text in tree.texts.items():
        if not path.endswith(".md"):
            continue
        base = path.rsplit("/", 1)[0] + "/" if "/" in path else ""
        for match in re.finditer(r"`([\w.-]+/[\w./*{},-]*)`|\]\((?!\w+:|#)([^)#\s]+)", text):
            inline, link = match.groups()
            names = [inline] if inline else [resolve(base + link)]
            if inline and inline.split("/")[0] not in tops:
                continue
            for name in [full for part in names for full in expand(part)]:
                if not exists(name.rstrip("/"), tree, folders):
                    problems.append(f"{path}:{line_of(text, match.start())}: {name} does not exist")
    return problems


def resolve(path):
    parts = []
    for part in path.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts)


def expand(path):
    """a.{h,cc} -> a.h, a.cc"""
    match = re.search(r"\{([^}]*)\}", path)
    if not match:
        return [path]
    return [
        full
        for word in match.group(1).split(",")
        for full in expand(path[: match.start()] + word + path[match.end() :])
    ]


def exists(name, tree, folders):
    if "*" in name:
        pattern = re.compile(re.escape(name).replace(r"\*", "[^/]*"))
        return any(pattern.fullmatch(other) for other in [*tree.texts, *folders])
    return name in tree.texts or name in folders


def metrics_are_documented(tree):
    """Each metric name in the sources stands in docs/metrics.md, and the other way round."""
    documented = set(re.findall(r"`(nezha_[a-z0-9_]+)", tree.texts.get("docs/metrics.md", "")))
    made = {}
    for path, text in tree.code():
        if path.startswith(("src/", "webhook/", "cache/")):
            for match in re.finditer(r'"(nezha_[a-z0-9_]+)"', text):
                made.setdefault(match.group(1), f"{path}:{line_of(text, match.start())}")
    problems = [
        f"{place}: metric {name} is not in docs/metrics.md" for name, place in made.items() if name not in documented
    ]
    return problems + [f"docs/metrics.md:1: {name} is made nowhere" for name in sorted(documented - set(made))]


def keys_are_documented(tree):
    """Each map that the configuration's reader knows has its keys in the tables of docs/configuration.md, no more."""
    documented = {}
    for row in re.findall(r"^\| `([\w.\[\]]+)` \|", tree.texts.get("docs/configuration.md", ""), re.M):
        parts = row.split(".")
        for depth, part in enumerate(parts):
            if key := part.removesuffix("[]"):
                documented.setdefault(".".join(parts[:depth]), set()).add(key)
    problems, known = [], []
    for path, text in tree.code():
        if path.startswith("src/config/"):
            for match in re.finditer(r"expect_map\(\s*\{([^}]*)\}\)", text):
                known.append(set(re.findall(r'"(\w+)"', match.group(1))))
                if known[-1] not in documented.values():
                    keys = ", ".join(sorted(known[-1]))
                    problems.append(
                        f"{path}:{line_of(text, match.start())}: docs/configuration.md has no map of just {keys}"
                    )
    return problems + [
        f"docs/configuration.md:1: the keys of {parent or 'the file'} are not what src/config reads"
        for parent, keys in documented.items()
        if keys not in known
    ]


RULES = (
    lines_are_short,
    functions_are_short,
    includes_point_down,
    libraries_stay_home,
    sources_are_built,
    headers_say_what_they_are,
    headers_open_no_namespace,
    nothing_is_left_for_later,
    documents_exist,
    documents_name_real_files,
    metrics_are_documented,
    keys_are_documented,
)
