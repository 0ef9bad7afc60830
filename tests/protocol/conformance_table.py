"""Writes `spec-conformance/protocol.md` from `protocol.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "spec-conformance"
SOURCE, TABLE = FOLDER / "protocol.json", FOLDER / "protocol.md"


def load() -> dict[str, Any]:
    """Return the data of `protocol.json`."""
    return json.loads(SOURCE.read_text(encoding="utf-8"))


def entries(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all lines and corrections."""
    return [entry for line in lines for entry in (line, *line.get("corrections", []))]


def render(table: dict[str, Any]) -> str:
    """Return the table as Markdown."""
    return "\n".join([*head(table), *(row for name in table["documents"] for row in chapter(table, name))])


def head(table: dict[str, Any]) -> Iterator[str]:
    lines, all_entries = table["lines"], entries(table["lines"])
    tests = {test for entry in all_entries for test in entry.get("shown_by", [])}
    yield "# The protocol, line by line\n"
    yield f"{table['about']}\n"
    yield "Written from `protocol.json` by `python -m tests.protocol.conformance_table`; a test checks it.\n"
    yield "| document | lines | shown | not shown | corrections | shown | not shown |"
    yield "|---|---|---|---|---|---|---|"
    for name, document in table["documents"].items():
        yield f"| {document['title']} | {counts([line for line in lines if line['document'] == name])} |"
    yield f"| all, by {len(tests)} tests | {counts(lines)} |\n"
    for entry in all_entries:
        if "not_shown" in entry:
            yield f"Not shown: {statement(entry)} {entry['not_shown']}\n"


def counts(lines: list[dict[str, Any]]) -> str:
    corrections = [entry for line in lines for entry in line.get("corrections", [])]
    return " | ".join(
        str(number)
        for some in (lines, corrections)
        for number in (len(some), *(sum(key in entry for entry in some) for key in ("shown_by", "not_shown")))
    )


def chapter(table: dict[str, Any], name: str) -> Iterator[str]:
    document = table["documents"][name]
    yield f"## {document['title']}\n"
    yield f"{document['shown_how']} → is a correction.\n"
    yield "| | what it says | shown by |"
    yield "|---|---|---|"
    for entry in entries([line for line in table["lines"] if line["document"] == name]):
        yield f"| {entry.get('id', '→')} | {statement(entry)} | {evidence(entry)} |"
    yield ""


def statement(entry: dict[str, Any]) -> str:
    text: str = entry.get("line") or entry["found"]
    return text.replace("|", "\\|")


def evidence(entry: dict[str, Any]) -> str:
    if "not_shown" in entry:
        return f"not shown: {entry['not_shown']}"
    files = groupby(entry["shown_by"], key=lambda test: test.partition("::")[0])
    return "<br>".join(
        f"[{path.removeprefix('tests/')}](../{path}) "
        + ", ".join(f"`{test.partition('::')[2]}`" for test in tests)
        for path, tests in files
    )


if __name__ == "__main__":
    TABLE.write_text(render(load()), encoding="utf-8")
