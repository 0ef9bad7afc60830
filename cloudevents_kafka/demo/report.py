"""What the demo shows in the end: by rich on a terminal, where it is there, else as aligned text."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import msgspec

from cloudevents_kafka.demo.run import Outcome
from cloudevents_kafka.demo.traffic import WAYS
from cloudevents_kafka.spark.pipeline.summary import escape_unprintable, format_table, reason_rows


class Sheet(msgspec.Struct, frozen=True):
    """A table with a title; ``numbers`` is how many columns, the last ones, hold numbers."""

    title: str
    header: list[str]
    rows: list[list[str]]
    numbers: int = 1


def report(outcome: Outcome) -> None:
    """Print the report to stdout."""
    for sheet in sheets(outcome):
        _show(sheet)
    _say("\nSums")
    for check in outcome.checks:
        _say(f"  {check}")
    summary = outcome.summary
    places = [
        ["events", summary.events_table],
        ["quarantine", summary.quarantine_table],
        ["checkpoint", summary.checkpoint],
    ]
    _say("\nTables (Parquet, for any tool that reads it)")
    _say(format_table(None, places))
    _say(f"\n{_verdict(outcome)}")


def sheets(outcome: Outcome) -> Iterator[Sheet]:
    """Give the tables of the report."""
    yield _events(outcome)
    if outcome.sent.others:
        yield _others(outcome)
        counts = outcome.summary.counts
        header = ["verdict", "reason", "records"]
        yield Sheet("Set aside by the pipeline, and why", header, reason_rows(counts))


def _events(outcome: Outcome) -> Sheet:
    sent, back, landed = outcome.sent.events, outcome.back.events, outcome.summary.counts.by_type
    ways = [str(way) for way in WAYS]
    rows = [
        [
            kind,
            *(f"{sent[kind, way]:,}" for way in ways),
            *(f"{_of(counts, kind):,}" for counts in (sent, back)),
            f"{sum(landed.get(kind, {}).values()):,}",
        ]
        for kind in sorted({kind for kind, _ in [*sent, *back]} | landed.keys())
    ]
    sums = [f"{sum(number for (_, one), number in sent.items() if one == way):,}" for way in ways]
    totals = [f"{sent.total():,}", f"{back.total():,}", f"{outcome.summary.counts.events:,}"]
    header = ["event type", *ways, "sent", "read back", "in the table"]
    return Sheet("Events, by type and by how they went", header, [*rows, ["all", *sums, *totals]], 6)


def _of(counts: Counter[tuple[str, str]], kind: str) -> int:
    return sum(number for (one, _), number in counts.items() if one == kind)


def _others(outcome: Outcome) -> Sheet:
    others = outcome.sent.others
    rows = [[name, verdict, f"{number:,}"] for (verdict, name), number in sorted(others.items())]
    header = ["record", "to be told as", "sent"]
    return Sheet(
        "Other records, sent between the events", header, [*rows, ["all", "", f"{others.total():,}"]]
    )


def _verdict(outcome: Outcome) -> str:
    sent, summary = outcome.sent, outcome.summary
    if not outcome.good:
        failed = sum(not check.good for check in outcome.checks)
        return f"The sums do not add up: {failed} of {len(outcome.checks)} checks failed, see above."
    return (
        f"{sent.total:,} records in and out in {outcome.seconds:.0f} s, {sent.keyed:,} of them keyed, "
        f"{sent.without_data:,} events without data; {summary.batches} batches. All sums add up."
    )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _show(sheet: Sheet) -> None:
    if sys.stdout.isatty() and _print_rich(sheet):
        return
    _say(f"\n{sheet.title}")
    _say(format_table(sheet.header, sheet.rows))


def _print_rich(sheet: Sheet) -> bool:
    """Print by rich; say whether it is there."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ModuleNotFoundError:
        return False
    table = Table(title=sheet.title, title_justify="left", title_style="bold")
    words = len(sheet.header) - sheet.numbers
    for number, name in enumerate(sheet.header):
        table.add_column(name, justify="left" if number < words else "right")
    for row in sheet.rows:
        last = row is sheet.rows[-1]
        table.add_row(*(Text(escape_unprintable(cell)) for cell in row), style="bold" if last else None)
    Console(highlight=False).print(table)
    return True
