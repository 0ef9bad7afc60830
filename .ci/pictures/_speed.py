"""Bars of the tables in ``benchmarks/README.md``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from _drawing import WIDTH, Drawing

_SCALE = WIDTH - 70  # the length of the longest bar


def tables(text: str) -> Iterator[list[dict[str, str]]]:
    """Yield each table of a Markdown text: its rows, by the texts of the header."""
    for lines in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        header, _, *rows = [
            [cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines.splitlines()
        ]
        yield [dict(zip(header, row, strict=True)) for row in rows]


def find(text: str, *columns: str) -> list[dict[str, str]]:
    """Return the first table that has these columns."""
    for rows in tables(text):
        if rows and rows[0].keys() >= set(columns):
            return rows
    raise ValueError(
        f"benchmarks/README.md must have a table with the columns {', '.join(columns)}, found none"
    )


def draw_converters(root: Path) -> str:
    """Return the converters, compared with the SDK, as SVG."""
    rows = find(_text(root), "group", "shapes", "lowest", "median")
    return _bars(
        "Times as fast as the official SDK for Python",
        "bar: the median of the shapes; line: the slowest shape",
        [(row["group"], row["median"], row["lowest"]) for row in rows if _against_sdk(row["group"])],
        "as fast",
    )


def draw_sdks(root: Path) -> str:
    """Return the reading of what each SDK wrote, compared with the SDK for Python, as SVG."""
    rows = find(_text(root), "SDK and encoding", "records", "median", "slowest 5 %")
    return _bars(
        "Times as fast, by the SDK that wrote the records",
        "bar: the median of the records; line: the slowest 5 %",
        [
            (f"{row['SDK and encoding']}: {row['records']} records", row["median"], row["slowest 5 %"])
            for row in rows
            if not row["SDK and encoding"].startswith("-")
        ],
        "as fast",
    )


def draw_landing(root: Path) -> str:
    """Return the rates of the pipeline, compared with a plain Spark job, as SVG."""
    rows = find(_text(root), "topic", "to", "ours to plain")
    return _bars(
        "Rate of the pipeline to that of a plain Spark job",
        "the plain job writes the columns of Kafka, undecoded",
        [(f"{topic}: {row['to']}", row["ours to plain"], "") for topic, row in _with_topic(rows)],
        "the plain job",
    )


def _text(root: Path) -> str:
    return (root / "benchmarks" / "README.md").read_text("utf-8")


def _against_sdk(group: str) -> bool:
    """Return whether a group is compared with the SDK, and not with strict reading or other libraries."""
    return "breaks no rule" not in group and "Avro" not in group


def _with_topic(rows: Sequence[dict[str, str]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each row with its topic, which only the first row of a topic names."""
    topic = ""
    for row in rows:
        topic = row["topic"] or topic
        yield topic, row


def _bars(title: str, note: str, rows: Sequence[tuple[str, str, str]], one: str) -> str:
    """Return a chart as SVG: a bar for each row, with a line at its lowest value, and one for all at 1.

    A row is a label and the texts of two numbers; the second may be empty.
    """
    drawing = Drawing(title)
    drawing.text(4, 18, title, "strong")
    drawing.text(4, 36, note, "soft")
    unit = _SCALE / max(1, *(_number(value) for _, value, _ in rows))
    y = 46.0
    for label, value, lowest in rows:
        end = 4 + unit * _number(value)
        drawing.text(4, y + 14, label)
        drawing.box(4, y + 20, end - 4, 14, fill="bar")
        drawing.dashes((4 + unit, y + 17), (4 + unit, y + 37))
        if lowest:
            drawing.box(3 + unit * _number(lowest), y + 17, 3, 20, fill="ink")
        drawing.text(end + 8, y + 32, value, "strong")
        y += 44
    x = 4 + unit
    drawing.text(x, y + 14, f"1: {one}", "soft", anchor="end" if x > WIDTH / 2 else "start")
    return drawing.to_svg(y + 22)


def _number(text: str) -> float:
    """Return the number at the start of a cell."""
    return float(re.match(r"[\d.]*", text)[0] or "nan")
