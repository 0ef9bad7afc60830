"""Write `spec-conformance/lenient.md` from the vectors when run as a script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "spec-conformance"
TABLE: Final = FOLDER / "lenient.md"

_HEAD: Final = """# What lenient reading accepts

Strict reading accepts only what the specification allows. `lenient=True` (on the command line,
`--lenient`) also accepts deviations of known producers and reports each of them. Absent attributes stay
absent, and records with more than one possible meaning are refused. (Of two headers with the same name
the last is used, and content-type takes precedence over ce_datacontenttype, as in other readers.) If
strict reading accepts a record, lenient reading returns the same event, possibly with more attributes, from
headers whose names are almost those of the binding, if these agree and are valid.

`python -m tests.support.lenient_table` writes this page from the vectors.
"""


def markdown() -> str:
    """Return the page in Markdown."""
    return "\n".join([_HEAD, *_producers(), "", *_other_deviations(), ""])


def _cases(name: str) -> list[Any]:
    found: list[Any] = json.loads((FOLDER / "vectors" / name).read_text("utf-8"))["cases"]
    return found


def _producers() -> Iterator[str]:
    yield "## Known producers\n"
    yield "| producer | record | strict | lenient | reported |"
    yield "|---|---|---|---|---|"
    for case in sorted(_cases("real-producers.json"), key=lambda case: case["source"].lower()):
        yield f"| {case['source']} | {case['about']} | {_row(case)} |"


def _other_deviations() -> Iterator[str]:
    yield "## Other deviations\n"
    yield "| record | strict | lenient | reported |"
    yield "|---|---|---|---|"
    for case in _cases("decode-matrix.json"):
        if case["strict"]["verdict"] != case["lenient"]["verdict"] or case["lenient"].get("tolerated"):
            yield f"| {case['about']} | {_row(case)} |"


def _row(case: Any) -> str:
    return f"{_outcome(case['strict'])} | {_outcome(case['lenient'])} | {_reported(case['lenient'])}"


def _outcome(expected: Any) -> str:
    faults = [fault or "the value" for fault in expected.get("attributes_at_fault", [])]
    verdict: str = expected["verdict"].replace("-", " ")
    return f"{verdict}: {', '.join(faults)}" if faults else verdict


def _reported(expected: Any) -> str:
    return ", ".join(name or "the value" for name in expected.get("tolerated", []))


if __name__ == "__main__":
    TABLE.write_text(markdown(), encoding="utf-8")
