"""Makes `spec-conformance/lenient.md` of the vectors, when it is run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[1] / "spec-conformance"
TABLE: Final = FOLDER / "lenient.md"

_HEAD: Final = """# What lenient reading lets pass

Strict reading takes what the specification allows and nothing else. `lenient=True` (on the command line,
`--lenient`) takes what producers are known to send beside it, too, and reports each deviation; what is not
there stays absent, and what cannot be meant in one way only is refused here too. (Of two headers of one name
the last counts, and content-type counts before ce_datacontenttype: that is how readers take them.) Of a
record that strict reading takes, lenient reading makes the same event: at most with attributes more, of
headers whose names are nearly the binding's, where these agree and break no rule.

Made of the vectors by `python tests/lenient_table.py`; a test compares.
"""


def made() -> str:
    """Write the table as Markdown."""
    return "\n".join([_HEAD, *_producers(), "", *_others(), ""])


def _cases(name: str) -> list[Any]:
    found: list[Any] = json.loads((FOLDER / "vectors" / name).read_text("utf-8"))["cases"]
    return found


def _producers() -> Iterator[str]:
    yield "## What known producers send\n"
    yield "| producer | what it sends | strictly | leniently | reported |"
    yield "|---|---|---|---|---|"
    for case in sorted(_cases("real-producers.json"), key=lambda case: case["source"].lower()):
        yield f"| {case['source']} | {case['about']} | {_row(case)} |"


def _others() -> Iterator[str]:
    yield "## What else is let pass\n"
    yield "| | strictly | leniently | reported |"
    yield "|---|---|---|---|"
    for case in _cases("decode-matrix.json"):
        if case["strict"]["verdict"] != case["lenient"]["verdict"] or case["lenient"].get("tolerated"):
            yield f"| {case['about']} | {_row(case)} |"


def _row(case: Any) -> str:
    return f"{_said(case['strict'])} | {_said(case['lenient'])} | {_reported(case['lenient'])}"


def _said(expected: Any) -> str:
    faults = [fault or "the value" for fault in expected.get("attributes_at_fault", [])]
    verdict: str = expected["verdict"].replace("-", " ")
    return f"{verdict}: {', '.join(faults)}" if faults else verdict


def _reported(expected: Any) -> str:
    return ", ".join(name or "the value" for name in expected.get("tolerated", []))


if __name__ == "__main__":
    TABLE.write_text(made(), encoding="utf-8")
