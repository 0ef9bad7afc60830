"""Counts of the records in a topic, as a JSON object, and as text with bars."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Final

import click

from cloudevents_kafka.cli.records.json_lines import encode_json
from cloudevents_kafka.cli.records.output import timestamp_text
from cloudevents_kafka.cli.records.reading import read
from cloudevents_kafka.cli.records.selection import Filter
from cloudevents_kafka.cli.terminal.streams import Progress
from cloudevents_kafka.cli.terminal.text import columns, styled, width_of
from cloudevents_kafka.counting import CUT, Labels, RecordCounts, TimeWindow
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, OTHERS
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.visible import escape
from cloudevents_kafka.record import Record

_ROWS: Final = 10  # rows of each part, in text
_LISTED: Final = 100  # names of each part, in JSON
_TIMES: Final = 24  # bars
_WIDTH: Final = 80
_BLOCKS: Final = " ▏▎▍▌▋▊▉█"
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_ALL: Final = Filter()
_PARTS: Final = ("types", "sources", "modes", "formats", "errors", "tolerated", "keys")
"""The counts with labels, by their names in `RecordCounts`; ``errors`` counts verdicts with clauses."""


def count_records(
    batches: Iterable[list[Record]],
    counts: Mapping[str, RecordCounts],
    most: int | None,
    progress: Progress,
    *,
    lenient: bool,
    filter: Filter = _ALL,
) -> None:
    """Count the matching records by topic; stop after ``most`` records of all topics."""
    items = (read(record, lenient=lenient) for record in chain.from_iterable(batches))
    matching = (item for item in items if filter.matches(item))
    for done, item in enumerate(islice(matching, most), 1):
        counts[item.record.topic or ""].add(item)
        progress.update(done)


def _labels(counts: RecordCounts) -> Iterator[tuple[str, Labels[str]]]:
    yield from ((name, getattr(counts, name)) for name in _PARTS)


def statistics(topic: str, counts: RecordCounts) -> str:
    """Return counts as JSON.

    Each part lists the most frequent names, and counts the records with all other names together.
    """
    parts = {name: labels.most_common(_LISTED) for name, labels in _labels(counts)}
    window = counts.times.window(_LISTED)
    times = {"width_ms": window.width, "from": dict(_times(window)), "before": window.before}
    found = {
        "topic": topic,
        "records": counts.events + counts.others,
        "events": counts.events,
        "not_events": counts.others,
        "bytes": counts.size,
        "without_key": counts.without_key,
        **{name: {"counts": dict(most), "others": others} for name, (most, others) in parts.items()},
        "sizes": {"below": {str(1 << bits): number for bits, number in sorted(counts.sizes.items())}},
        "times": {**times, "after": window.after},
    }
    return encode_json(found).decode()


def to_lines(topic: str, counts: RecordCounts) -> Iterator[str]:
    """Yield lines of text for counts, with a bar for each count."""
    width = width_of(sys.stdout) or _WIDTH
    others = pluralize(counts.others, "other record")
    yield (
        styled(escape(topic), "heading")
        + f"  {pluralize(counts.events, 'event')}, {others}, "
        + pluralize(counts.size, "byte")
    )
    for name, labels in _labels(counts):
        most, rest = labels.most_common(_ROWS)
        rows = [(_shown(label), number) for label, number in most] + ([(OTHERS, rest)] if rest else [])
        if name == "keys" and counts.without_key:
            rows.append(("(none)", counts.without_key))
        yield from _bars(name, rows, width)
    span = range(min(counts.sizes), max(counts.sizes) + 1) if counts.sizes else ()
    sizes = [(f"< {1 << bits % 10} {_UNITS[bits // 10]}", counts.sizes[bits]) for bits in span]
    yield from _bars("sizes", sizes, width)
    window = counts.times.window(_TIMES)
    away = [("(before)", window.before), ("(after)", window.after)]
    yield from _bars("times", [*_times(window), *(row for row in away if row[1])], width)


def _times(window: TimeWindow) -> Iterator[tuple[str, int]]:
    """Yield the start of each time interval, and the number of records in the interval."""
    for number, labels in enumerate(window.bins):
        yield timestamp_text(window.start + number * window.width), labels.total


def _shown(label: str) -> str:
    return escape(label) + (CUT if len(label) == MAX_KEY_LENGTH else "")


def _bars(title: str, rows: Sequence[tuple[str, int]], width: int) -> Iterator[str]:
    """Yield a heading and a bar for each row; a name that is too long is on a separate line."""
    if not rows:
        return
    yield ""
    yield styled(title, "heading")
    most = max(number for _, number in rows)
    number_width = len(f"{most:,}")
    fits = [length for name, _ in rows if (length := columns(name)) <= width // 2]
    name_width = max(fits, default=0)
    bar_width = max(1, width - name_width - number_width - 6)
    for name, number in rows:
        text = styled(f"  {name}", "name")
        if columns(name) > name_width:
            yield text
            text = "  "
        fill = " " * (name_width + 2 - columns(click.unstyle(text)) + 2)
        yield f"{text}{fill}{number:>{number_width},}  {styled(_bar(number, most, bar_width), 'value')}"


def _bar(number: int, most: int, width: int) -> str:
    """Return a bar for ``number``, in eighths of a column if possible.

    A bar for ``most`` fills the whole width.
    """
    eighths = max(1, round(8 * width * number / most)) if number else 0
    if "utf" not in str(sys.stdout.encoding).lower() or os.environ.get("TERM") == "dumb":
        return "#" * max(1, eighths // 8) if number else ""
    return (_BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8]).rstrip()
