"""Write what follows from `clauses.toml`: the sections that errors print, and `docs/clauses.md`.

The clauses that errors cite are those that the package names in a text of its code.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import cloudevents_kafka

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "clauses.md"
PACKAGE: Final = Path(cloudevents_kafka.__file__).parent  # which may be installed
SECTIONS: Final = PACKAGE / "primitives" / "clauses.toml"
_ID: Final = re.compile(r"(?:^|\()([A-Z]{1,2}-\d\d)(?:$|,)")
_MAX_TEXT: Final = 200  # docstrings are longer
_FILE_HEAD: Final = "# Sections of the clauses that errors cite, by `python -m tests.support.clauses_page`."

_HEAD: Final = """# Clauses

A clause is one requirement of a specification. The id of a clause never changes. Each problem in an error
names the broken clause and the section of the specification that contains the clause. Your code can count the
broken clauses, or use the clauses to decide what to do:

```python
from cloudevents_kafka import Event, InvalidEvent

try:
    Event(id="", source="/s", type="t", sampledrate=0)
except InvalidEvent as error:
    for problem in error.problems:
        print(problem)  # id: must not be empty, got '' (R-02, core: id)
    assert [problem.clause for problem in error.problems] == ["R-02", "X-05"]
    assert error.problems[0].section == "core: id"
```

The letters in the id of a clause name the document that contains the clause. The letters N, R, T, E and S
stand for the core specification, and the letters J, A, AC and P stand for the event formats. The letter K
stands for the Kafka binding, and X stands for the documented extensions. `error.clauses` lists the clauses of
an error, and the command line prints these clauses. In Spark, the column `error.clause` contains the clauses
of an error.

To check that this library meets a clause, run the test cases of the clause in a checkout of the project:

```console
$ python spec-conformance clauses --clause K-07
```

Without `--clause`, the command runs the test cases of all clauses. For each area (such as Attributes) and
each level (such as MUST), the command prints how many requirements pass. If a requirement does not pass, the
command prints the reason. Some test cases need the extra `protobuf`. Test cases that check signatures need
the package `cryptography`.

* [`clauses.toml`](../spec-conformance/clauses.toml) lists each requirement with its test cases and its
  tests in Python.
* [`report.md`](../spec-conformance/report.md) contains the results.
* The [README of the test cases](../spec-conformance/README.md) says how other SDKs can use the test cases,
  which are JSON files.

`python -m tests.support.clauses_page` writes this page from `clauses.toml`. The same command writes the file
`cloudevents_kafka/primitives/clauses.toml`, from which errors read the names of the sections."""


def markdown() -> str:
    """Return the page in Markdown."""
    clauses, cited = _clauses(), cited_clauses()
    count = (
        f"Of all {len(clauses)} clauses, errors can cite the {len(cited)} clauses in the tables below. "
        "Errors cite no other clauses, because the other clauses do not describe a record. Most of the "
        "clauses that errors do not cite are requirements for converters."
    )
    return "\n".join([_HEAD, "", "## The clauses that errors cite", "", count, *_tables(cited), ""])


def sections() -> str:
    """Return the text of the file with the sections."""
    lines = (f'{clause["id"]} = "{clause["source"]}"' for clause in cited_clauses())
    return "\n".join([_FILE_HEAD, *lines, ""])


def cited_clauses() -> list[dict[str, Any]]:
    """Return the clauses that texts in the code of the package name, in the order of the file.

    Raises `ValueError` for a clause that the file does not have.
    """
    clauses, used = _clauses(), _used_ids()
    if unknown := used - clauses.keys():
        raise ValueError(f"clauses.toml must have the clauses that errors cite, got {sorted(unknown)}")
    return [clause for name, clause in clauses.items() if name in used]


@cache
def _used_ids() -> frozenset[str]:
    return frozenset(
        clause
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < _MAX_TEXT
        for clause in _ID.findall(node.value)
    )


def _clauses() -> dict[str, dict[str, Any]]:
    table = tomllib.loads((ROOT / "spec-conformance" / "clauses.toml").read_text("utf-8"))
    return {clause["id"]: clause for clause in table["clause"]}


def _tables(cited: list[dict[str, Any]]) -> Iterator[str]:
    for area, members in groupby(cited, key=lambda clause: clause["area"]):
        yield f"\n### {area}\n"
        yield "| clause | level | section | requirement |"
        yield "|---|---|---|---|"
        for clause in members:
            name = clause["id"]
            anchor = f'<a id="{name.lower()}"></a>{name}'
            yield f"| {anchor} | {clause['level']} | {clause['source']} | {clause['about']} |"


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
    SECTIONS.write_text(sections(), encoding="utf-8")
