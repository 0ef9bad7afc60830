"""The checks of the demo: compare the sent records with those read back and with the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from cloudevents_kafka.demo.clients import ReadCounts, TrafficCounts
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark.pipeline import Summary

_MAX_DIFFERENCES: Final = 3


class Check(msgspec.Struct, frozen=True):
    """A check with its result; ``difference`` says why it failed."""

    description: str
    passed: bool
    difference: str = ""

    def __str__(self) -> str:
        if self.passed:
            return f"ok      {self.description}"
        return f"FAILED  {self.description}: {self.difference}"


def run_checks(sent: TrafficCounts, back: ReadCounts, summary: Summary, folder: Path) -> list[Check]:
    """Return the checks of the records read back, of the pipeline's counts and of the Parquet files."""
    counts = summary.counts
    in_table = Counter(
        {(type_, mode): n for type_, modes in counts.by_type.items() for mode, n in modes.items()}
    )
    quarantined = Counter({verdict: sum(reasons.values()) for verdict, reasons in counts.by_reason.items()})
    rows = read_rows(folder / "events")
    return [
        _compare(
            f"{pluralize(sent.total, 'record')} sent = {pluralize(counts.events, 'event')} "
            f"+ {counts.quarantined:,} quarantined",
            sent.total,
            counts.events + counts.quarantined,
        ),
        _compare("events read back: as many of each type and encoding as sent", sent.events, back.events),
        _compare("events in the table: as many of each type and mode as sent", sent.by_mode(), in_table),
        _compare("other records read back: as many of each verdict as sent", sent.verdicts, back.verdicts),
        _compare("other records in quarantine: as many of each verdict as sent", sent.verdicts, quarantined),
        _compare(
            f"{pluralize(len(rows), 'row')} in the files, with offset, id and data as read back",
            back.payloads,
            rows,
        ),
    ]


def read_rows(folder: Path) -> dict[tuple[int, int], tuple[str, bytes | None]]:
    """Return the id and the data of each row of a table, by partition and offset.

    A second row of the same offset is stored under a negative partition, so that the check fails.
    """
    import pyarrow.parquet as pq

    rows: dict[tuple[int, int], tuple[str, bytes | None]] = {}
    for file in sorted(folder.rglob("*.parquet")):
        table = pq.ParquetFile(file).read(columns=["partition", "offset", "id", "data"])
        for partition, offset, id_, data in zip(
            *(column.to_pylist() for column in table.columns), strict=True
        ):
            if (partition, offset) in rows:
                rows[-partition - 1, offset] = (id_, data)
            rows[partition, offset] = (id_, data)
    return rows


def _compare(description: str, expected: object, actual: object) -> Check:
    if expected == actual:
        return Check(description, passed=True)
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return Check(description, passed=False, difference=_difference(expected, actual))
    return Check(description, passed=False, difference=f"expected {expected}, got {actual}")


def _difference(expected: Mapping[object, object], actual: Mapping[object, object]) -> str:
    """Return the first entries that differ, and the number of the others."""
    keys = [key for key in sorted({*expected, *actual}, key=str) if expected.get(key) != actual.get(key)]
    text = "; ".join(
        f"{key}: expected {_preview(expected.get(key))}, got {_preview(actual.get(key))}"
        for key in keys[:_MAX_DIFFERENCES]
    )
    more = len(keys) - _MAX_DIFFERENCES
    return f"{text} and {more} more" if more > 0 else text


def _preview(value: object) -> str:
    return "none" if value is None else repr(value)[:60]
