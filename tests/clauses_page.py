"""Write `docs/clauses.md` from the clauses that errors cite when run as a script."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from cloudevents_kafka.clauses import SECTIONS

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "clauses.md"
_REPOSITORY: Final = "https://github.com/cloudevents-kafka/cloudevents-kafka/blob/main"

_HEAD: Final = f"""# Clauses

A clause is one requirement of a specification, with an id that stays. Each problem in an error has the
clause that is broken and its section, so that you can look it up, count it, and decide by it:

```python
from cloudevents_kafka import Event, InvalidEvent
from cloudevents_kafka.clauses import SECTIONS

try:
    Event(id="", source="/s", type="t", sampledrate=0)
except InvalidEvent as error:
    for problem in error.problems:
        print(problem)  # id: must not be empty, got '' (R-02, core: id)
    assert [problem.clause for problem in error.problems] == ["R-02", "X-05"]
assert SECTIONS["R-02"] == "core: id"
```

The letters are those of the document: N, R, T, E and S for the core specification, J, A, AC and P for the
formats, K for the Kafka binding, X for the documented extensions. `error.clauses` has them, the command
line prints them, and in tables of Spark they are in `error.clause`.

To see that this library meets a clause, run its cases:

```sh
cloudevents-kafka conformance --clause K-07
```

Without `--clause` it runs all of them, and prints how many requirements pass, by area and level, and which
do not, and why. Some cases need the extra `protobuf`, and some the package `cryptography`, which checks their
signatures. [`clauses.toml`]({_REPOSITORY}/spec-conformance/clauses.toml)
has each requirement with its cases and tests,
[`report.md`]({_REPOSITORY}/spec-conformance/report.md) the results,
and the [README there]({_REPOSITORY}/spec-conformance/README.md)
how any SDK can use the cases, which are plain JSON.

`python tests/clauses_page.py` writes this page from `cloudevents_kafka.clauses` and `clauses.toml`."""


def markdown() -> str:
    """Return the page in Markdown."""
    clauses = _clauses()
    cited = (
        f"Errors cite these {len(SECTIONS)} of {len(clauses)} clauses. The others are requirements that a "
        "record cannot break, such as those for the converters themselves."
    )
    return "\n".join([_HEAD, "", "## The clauses that errors cite", "", cited, *_tables(clauses), ""])


def _clauses() -> dict[str, Any]:
    table = tomllib.loads((ROOT / "spec-conformance" / "clauses.toml").read_text("utf-8"))
    return {clause["id"]: clause for clause in table["clause"]}


def _tables(clauses: dict[str, Any]) -> Iterator[str]:
    cited = [clause for name, clause in clauses.items() if name in SECTIONS]
    for area, members in groupby(cited, key=lambda clause: clause["area"]):
        yield f"\n### {area}\n"
        yield "| clause | level | section | requirement |"
        yield "|---|---|---|---|"
        for clause in members:
            name = clause["id"]
            anchor = f'<a id="{name.lower()}"></a>{name}'
            yield f"| {anchor} | {clause['level']} | {SECTIONS[name]} | {clause['about']} |"


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
