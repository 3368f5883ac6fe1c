"""The repository's files as text. Every rule reads a Tree and nothing else, so a rule's own test needs no disk."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE_SUFFIXES = (".h", ".cc")
SCRIPT_SUFFIXES = (".py", ".sh", ".cmake")


@dataclass
class Tree:
    texts: dict[str, str] = field(default_factory=dict)  # path from the root, with slashes -> text
    symlinks: set[str] = field(default_factory=set)

    def code(self):
        """C++ files as (path, text)."""
        return [(path, text) for path, text in self.texts.items() if path.endswith(CODE_SUFFIXES)]

    def headers(self):
        return [(path, text) for path, text in self.code() if path.endswith(".h")]

    def scripts(self):
        return [(path, text) for path, text in self.texts.items() if is_script(path, text)]

    def folders(self):
        return {str(parent) for path in self.texts for parent in Path(path).parents}


def is_script(path, text):
    name = path.rsplit("/", 1)[-1]
    return path.endswith(SCRIPT_SUFFIXES) or name in ("CMakeLists.txt", "Makefile") or text.startswith("#!")


def load():
    """Every text file that git tracks or would track."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    paths = listed.stdout.decode().split("\0") if listed.returncode == 0 else walk()
    tree = Tree()
    for path in paths:
        file = ROOT / path
        if path and file.is_file():
            try:
                tree.texts[path] = file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # images and fuzz inputs have no style
    return tree


def walk():
    """Without git (an unpacked archive): every file but what a build makes."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith((".", "build"))]
        yield from (str((Path(folder) / name).relative_to(ROOT)) for name in files)


def blank_out(text):
    """C++ text with comments and literals replaced by blanks; line numbers stay."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+'",
        re.S,
    )
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
