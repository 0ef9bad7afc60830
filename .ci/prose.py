"""The lint step for prose: words that this project does not use, and docstrings without "Return".

    python .ci/prose.py [PATH...]

Print one line for each finding and exit with status 1 if there is one. Without a path, check all
files that git tracks. The words and the exceptions are in `prose.toml`.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).resolve().with_suffix(".toml")
PACKAGE = "cloudevents_kafka"
SUFFIXES = {".py", ".java", ".md", ".toml"}
VALUELESS = {"None", "NoReturn", "Never"}
SAYS: Final = {
    "Return": re.compile(r"\breturns?\b", re.IGNORECASE),
    "Return whether": re.compile(r"\breturns? (whether|true|false|``)", re.IGNORECASE),
    "Yield": re.compile(r"\b(yield|return)s?\b", re.IGNORECASE),
}
# What a decorator turns into an attribute is described by a noun phrase, as `property` itself is.
ATTRIBUTES = {"property", "cached_property", "overload", "setter", "fixture"}


@dataclass
class Rules:
    """The banned words, and the lines that may use them."""

    words: list[tuple[re.Pattern[str], str]]
    any: re.Pattern[str]
    exceptions: list[tuple[str, str]]
    used: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def load(cls, path: Path) -> Rules:
        """Return the rules of a TOML file."""
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        words = [(re.compile(word["pattern"], re.IGNORECASE), word["write"]) for word in table["word"]]
        any_word = re.compile("|".join(f"(?:{word['pattern']})" for word in table["word"]), re.IGNORECASE)
        return cls(words, any_word, [(entry["path"], entry["line"]) for entry in table.get("exception", [])])

    def allow(self, path: str, line: str) -> bool:
        """Return whether an exception names this line of this file."""
        found = (path, line.strip())
        if found not in self.exceptions:
            return False
        self.used.add(found)
        return True

    def unused(self) -> list[tuple[str, str]]:
        """Return the exceptions that no line has needed."""
        return [exception for exception in self.exceptions if exception not in self.used]


def main(arguments: list[str]) -> int:
    """Check the files that the arguments name and return the exit status."""
    rules = Rules.load(LIST)
    paths = [Path(argument).resolve() for argument in arguments] or tracked()
    findings = [finding for path in files(paths) for finding in check(path, rules)]
    if not arguments:
        findings += [f"{path}: no line needs the exception {line!r}" for path, line in rules.unused()]
    print(*findings, sep="\n", end="\n" if findings else "")
    return 1 if findings else 0


def tracked() -> list[Path]:
    """Return the files that git tracks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files with prose among the paths and in their folders."""
    for path in paths:
        for inside in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if (
                (inside.suffix in SUFFIXES or inside.name == "Makefile")
                and inside.is_file()
                and inside != LIST
            ):
                yield inside


def check(path: Path, rules: Rules) -> Iterator[str]:
    """Yield the findings in one file."""
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    for number, text in prose(path, source, rules.any):
        for pattern, write in rules.words:
            for match in pattern.finditer(text):
                at = line_of(match, text, number, lines)
                if not rules.allow(name, lines[at - 1]):
                    yield f"{name}:{at}: {match[0].strip()!r}; write {write}"
    if path.suffix == ".py" and name.startswith(PACKAGE):
        yield from (f"{name}:{finding}" for finding in without_return(ast.parse(source)))


def prose(path: Path, source: str, words: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield the texts that people read and that contain one of the words, with the numbers of their lines."""
    if path.suffix != ".py":
        texts: Iterable[tuple[int, str]] = enumerate(source.splitlines(), 1)
    else:
        texts = chain(comments(source, words), strings(source))
    yield from ((number, text) for number, text in texts if words.search(text))


def comments(source: str, words: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield the comments of a module, if a line with a "#" contains one of the words."""
    if any("#" in line and words.search(line) for line in source.splitlines()):  # tokens take long
        for token in tokenize.generate_tokens(StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module that have a blank."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def line_of(match: re.Match[str], text: str, first: int, lines: list[str]) -> int:
    """Return the number of the line of a match."""
    number = first + text.count("\n", 0, match.start())
    for at in range(number, min(number + 12, len(lines) + 1)):
        if match[0].strip() in lines[at - 1]:
            return at
    return min(number, len(lines))


def without_return(tree: ast.Module) -> Iterator[str]:
    """Yield a finding for each public function that returns a value and whose docstring does not say so."""
    for node in public_functions(tree):
        text, returns = ast.get_docstring(node), ast.unparse(node.returns) if node.returns else "None"
        if text is None or returns in VALUELESS or decorators(node) & ATTRIBUTES:
            continue
        wanted = "Return whether" if returns == "bool" else "Yield" if is_generator(node) else "Return"
        if not SAYS[wanted].search(text):
            yield f'{node.lineno}: {node.name}() returns {returns}; its docstring must say "{wanted} ..."'


def public_functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the public functions of a module and the public methods of its public classes."""
    todo: list[Any] = list(tree.body)
    for node in todo:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            todo.extend(node.body)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
            yield node


def decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the last names of a function's decorators."""
    return {ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in node.decorator_list}


def is_generator(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function yields."""
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(node))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
