"""The report of the demo: tables by rich on a terminal if it is installed, else aligned text."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import msgspec

from cloudevents_kafka.demo.run import Outcome
from cloudevents_kafka.demo.traffic import ENCODINGS
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark.pipeline.summary import escape_unprintable, format_table, reason_rows


class ReportTable(msgspec.Struct, frozen=True):
    """A table with a title; the last ``number_columns`` columns have numbers, the last row the sums."""

    title: str
    header: list[str]
    rows: list[list[str]]
    number_columns: int = 1


def print_report(outcome: Outcome) -> None:
    """Print the report to stdout."""
    for table in _tables(outcome):
        _print_table(table)
    _print("\nChecks")
    for check in outcome.checks:
        _print(f"  {check}")
    summary = outcome.summary
    folders = [
        ["events", summary.events_table],
        ["quarantine", summary.quarantine_table],
        ["checkpoint", summary.checkpoint],
    ]
    _print("\nFolders (the tables are Parquet files, readable by any tool)")
    _print(format_table(None, folders))
    _print(f"\n{_conclusion(outcome)}")


def _tables(outcome: Outcome) -> Iterator[ReportTable]:
    yield _event_table(outcome)
    if outcome.sent.others:
        yield _invalid_record_table(outcome)
        yield ReportTable(
            "Records that the pipeline quarantined, and why",
            ["verdict", "reason", "records"],
            reason_rows(outcome.summary.counts),
        )


def _event_table(outcome: Outcome) -> ReportTable:
    sent, back, in_table = outcome.sent.events, outcome.back.events, outcome.summary.counts.by_type
    encodings = [str(encoding) for encoding in ENCODINGS]
    rows = [
        [
            type_,
            *(f"{sent[type_, encoding]:,}" for encoding in encodings),
            *(f"{_count_of_type(counts, type_):,}" for counts in (sent, back)),
            f"{sum(in_table.get(type_, {}).values()):,}",
        ]
        for type_ in sorted({type_ for type_, _ in [*sent, *back]} | in_table.keys())
    ]
    sums = [f"{sum(n for (_, used), n in sent.items() if used == encoding):,}" for encoding in encodings]
    totals = [f"{sent.total():,}", f"{back.total():,}", f"{outcome.summary.counts.events:,}"]
    header = ["event type", *encodings, "sent", "read back", "in the table"]
    return ReportTable("Events by type and encoding", header, [*rows, ["all", *sums, *totals]], 6)


def _count_of_type(counts: Counter[tuple[str, str]], type_: str) -> int:
    return sum(number for (counted, _), number in counts.items() if counted == type_)


def _invalid_record_table(outcome: Outcome) -> ReportTable:
    others = outcome.sent.others
    rows = [[name, verdict, f"{number:,}"] for (verdict, name), number in sorted(others.items())]
    return ReportTable(
        "Invalid records, sent between the events",
        ["record", "expected verdict", "sent"],
        [*rows, ["all", "", f"{others.total():,}"]],
    )


def _conclusion(outcome: Outcome) -> str:
    failed = sum(not check.passed for check in outcome.checks)
    if failed:
        return f"{failed} of {len(outcome.checks)} checks failed, see above."
    sent = outcome.sent
    records = pluralize(sent.total, "record was", "records were")
    batches = pluralize(outcome.summary.batches, "batch", "batches")
    without_data = pluralize(sent.without_data, "event")
    return (
        f"All checks passed in {outcome.seconds:.0f} s: {records} sent, read back, and written to tables "
        f"in {batches} ({sent.with_key:,} with a key, {without_data} without data)."
    )


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _print_table(table: ReportTable) -> None:
    if sys.stdout.isatty() and _print_rich(table):
        return
    _print(f"\n{table.title}")
    _print(format_table(table.header, table.rows))


def _print_rich(table: ReportTable) -> bool:
    """Print a table by rich; return False if it is not installed."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ModuleNotFoundError:
        return False
    rich_table = Table(title=table.title, title_justify="left", title_style="bold")
    text_columns = len(table.header) - table.number_columns
    for number, name in enumerate(table.header):
        rich_table.add_column(name, justify="left" if number < text_columns else "right")
    for row in table.rows:
        last = row is table.rows[-1]
        rich_table.add_row(*(Text(escape_unprintable(cell)) for cell in row), style="bold" if last else None)
    Console(highlight=False).print(rich_table)
    return True
