"""The report of the demo, as aligned text."""

from __future__ import annotations

from collections import Counter

from cloudevents_kafka.demo.run import Outcome
from cloudevents_kafka.demo.traffic import ENCODINGS
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark.pipeline.summary import format_table, reason_rows


def format_report(outcome: Outcome) -> str:
    """Return the report: tables of events and other records, the checks, the folders, the conclusion."""
    summary = outcome.summary
    folders = [
        ["events", summary.events_table],
        ["quarantine", summary.quarantine_table],
        ["checkpoint", summary.checkpoint],
    ]
    tables = [_event_table(outcome)]
    if outcome.sent.others:
        title, header = "Records that the pipeline quarantined, and why", ["verdict", "reason", "records"]
        tables += [_invalid_record_table(outcome), _titled(title, header, reason_rows(summary.counts))]
    parts = [
        *tables,
        "\n".join(["Checks", *(f"  {check}" for check in outcome.checks)]),
        f"Folders (the tables are Parquet files, readable by any tool)\n{format_table(None, folders)}",
        _conclusion(outcome),
    ]
    return "\n\n".join(parts)


def _titled(title: str, header: list[str], rows: list[list[str]]) -> str:
    """Return a table with a title; the last row has the sums."""
    return f"{title}\n{format_table(header, rows)}"


def _event_table(outcome: Outcome) -> str:
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
    return _titled("Events by type and encoding", header, [*rows, ["all", *sums, *totals]])


def _count_of_type(counts: Counter[tuple[str, str]], type_: str) -> int:
    return sum(number for (counted, _), number in counts.items() if counted == type_)


def _invalid_record_table(outcome: Outcome) -> str:
    others = outcome.sent.others
    rows = [[name, verdict, f"{number:,}"] for (verdict, name), number in sorted(others.items())]
    return _titled(
        "Invalid records, sent between the events",
        ["record", "expected verdict", "sent"],
        [*rows, ["all", "", f"{others.total():,}"]],
    )


def _conclusion(outcome: Outcome) -> str:
    failed = sum(not check.passed for check in outcome.checks)
    if failed:
        return f"{failed} of {pluralize(len(outcome.checks), 'check')} failed, see above."
    sent = outcome.sent
    records = pluralize(sent.total, "record was", "records were")
    batches = pluralize(outcome.summary.batches, "batch", "batches")
    without_data = pluralize(sent.without_data, "event")
    return (
        f"All checks passed in {outcome.seconds:.0f} s: {records} sent, read back, and written to tables "
        f"in {batches} ({sent.with_key:,} with a key, {without_data} without data)."
    )
