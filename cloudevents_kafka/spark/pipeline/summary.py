"""The summary of a run: as a value, as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark.pipeline._counts import BatchCounts


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run: ``counts`` of this run, and ``total`` of all batches in the folder.

    ``batches`` is the number of batches of this run; ``recovered`` the number of an earlier run's
    batch that this run finished, or None. ``complete`` is whether the run has read all records; it
    is false for a run that was stopped. ``skipped`` maps topic to partition to the offsets of this
    run without a record: expired, compacted, or transaction markers. The JSON name of ``counts``
    is ``tally``.
    """

    topics: tuple[str, ...]
    events_table: str
    quarantine_table: str
    checkpoint: str
    batches: int
    recovered: int | None
    complete: bool
    seconds: float
    counts: BatchCounts = msgspec.field(name="tally")
    total: BatchCounts
    skipped: Mapping[str, Mapping[str, int]] = {}

    @property
    def rate(self) -> float:
        """The records per second."""
        return self.counts.read / self.seconds if self.seconds else 0.0

    def to_json(self) -> str:
        """Return the summary as one JSON object, indented."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def to_text(self) -> str:
        """Return the summary as text with aligned tables."""
        counts = self.counts
        sums = f"{pluralize(counts.events, 'event')} + {counts.quarantined:,} quarantined"
        batches = pluralize(self.batches, "batch", "batches")
        pace = f"{batches}, {self.seconds:.1f} s, {self.rate:,.0f} records/s"
        parts = [f"{pluralize(counts.read, 'record')} read = {sums}  ({pace})"]
        if self.recovered is not None:
            parts.append(f"batch {self.recovered} of an earlier run was finished first")
        if counts.events:
            parts.append(format_table(["event type", *counts.modes, "all"], _type_rows(counts)))
        if counts.quarantined:
            parts.append(format_table(["quarantined as", "reason", "records"], reason_rows(counts)))
        if counts.read:
            header = ["partition", "first", "last", "records", "offsets without a record"]
            parts.append(format_table(header, _offset_rows(counts, self.skipped)))
        if self.total.read != counts.read:
            total = self.total
            sums = f"{pluralize(total.events, 'event')}, {total.quarantined:,} quarantined"
            parts.append(f"total in the tables: {sums}, of {pluralize(total.read, 'record')}")
        locations = [
            ["events", self.events_table],
            ["quarantine", self.quarantine_table],
            ["checkpoint", self.checkpoint],
        ]
        parts.append(format_table(None, locations))
        return "\n\n".join(parts)


def _type_rows(counts: BatchCounts) -> list[list[str]]:
    modes = counts.modes
    rows = [
        [name, *(f"{by_mode.get(mode, 0):,}" for mode in modes), f"{sum(by_mode.values()):,}"]
        for name, by_mode in sorted(counts.by_type.items())
    ]
    return [*rows, ["", *(f"{number:,}" for number in modes.values()), f"{counts.events:,}"]]


def reason_rows(counts: BatchCounts) -> list[list[str]]:
    """Return rows of verdict, reason and number of the quarantined records, and a last row with the sum."""
    rows = [
        [verdict, reason, f"{number:,}"]
        for verdict, reasons in sorted(counts.by_reason.items())
        for reason, number in sorted(reasons.items())
    ]
    return [*rows, ["", "", f"{counts.quarantined:,}"]]


def _offset_rows(counts: BatchCounts, skipped: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    return [
        [
            f"{topic}[{partition}]",
            *(f"{value:,}" for value in (part.first, part.last, part.records)),
            f"{skipped.get(topic, {}).get(partition, 0):,}",
        ]
        for topic, parts in sorted(counts.offsets.items())
        for partition, part in sorted(parts.items(), key=lambda item: int(item[0]))
    ]


def format_table(header: list[str] | None, rows: list[list[str]]) -> str:
    """Return a table as text; columns of numbers are aligned to the right, others to the left."""
    rows = [[escape_unprintable(cell) for cell in row] for row in rows]
    lines = [*([header] if header else []), *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    right = [all(_is_number(row[column]) for row in rows) for column in range(len(widths))]
    text = [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    if header:
        text.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(f"  {line}" for line in text)


def escape_unprintable(text: str) -> str:
    """Return the text with escapes for control characters: names of types are untrusted input."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def _is_number(cell: str) -> bool:
    return not cell or cell.replace(",", "").isdigit()
