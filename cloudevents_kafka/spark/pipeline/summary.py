"""What a pipeline has done, as a value, as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cloudevents_kafka.spark.pipeline.counts import Tally


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a run: what it landed (``tally``), and all that ever landed (``total``).

    ``batches`` counts those of this run; ``recovered`` is the batch of an earlier run
    that this one had to finish. ``complete`` says whether all that was to be read was
    read, which a run that was asked to stop does not claim. ``skipped`` is topic to partition
    to offsets that this run passed without finding a record: expired, compacted, or
    transaction markers.
    """

    topics: tuple[str, ...]
    events_table: str
    quarantine_table: str
    checkpoint: str
    batches: int
    recovered: int | None
    complete: bool
    seconds: float
    tally: Tally
    total: Tally
    skipped: Mapping[str, Mapping[str, int]] = {}

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.tally.read / self.seconds if self.seconds else 0.0

    def to_json(self) -> str:
        """Give the summary as one JSON object, indented."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def to_text(self) -> str:
        """Give the summary as aligned text."""
        tally = self.tally
        sums = f"{tally.events:,} events + {tally.quarantined:,} quarantined"
        pace = f"{self.batches:,} batches, {self.seconds:.1f} s, {self.rate:,.0f} records/s"
        parts = [f"{tally.read:,} records read = {sums}  ({pace})"]
        if self.recovered is not None:
            parts.append(f"batch {self.recovered} of an earlier run was finished first")
        if tally.events:
            parts.append(aligned(["event type", *tally.modes, "all"], _type_rows(tally)))
        if tally.quarantined:
            parts.append(aligned(["quarantined as", "reason", "records"], reason_rows(tally)))
        if tally.read:
            header = ["partition", "first", "last", "records", "offsets without a record"]
            parts.append(aligned(header, _offset_rows(tally, self.skipped)))
        if self.total.read != tally.read:
            total = self.total
            parts.append(
                f"in the tables by now: {total.events:,} events, {total.quarantined:,} quarantined, "
                f"of {total.read:,} records"
            )
        where = [
            ["events", self.events_table],
            ["quarantine", self.quarantine_table],
            ["checkpoint", self.checkpoint],
        ]
        parts.append(aligned(None, where))
        return "\n\n".join(parts)


def _type_rows(tally: Tally) -> list[list[str]]:
    modes = tally.modes
    rows = [
        [name, *(f"{counts.get(mode, 0):,}" for mode in modes), f"{sum(counts.values()):,}"]
        for name, counts in sorted(tally.by_type.items())
    ]
    return [*rows, ["", *(f"{number:,}" for number in modes.values()), f"{tally.events:,}"]]


def reason_rows(tally: Tally) -> list[list[str]]:
    """Give verdict, reason and number of what was quarantined, the sum last."""
    rows = [
        [verdict, reason, f"{number:,}"]
        for verdict, reasons in sorted(tally.by_reason.items())
        for reason, number in sorted(reasons.items())
    ]
    return [*rows, ["", "", f"{tally.quarantined:,}"]]


def _offset_rows(tally: Tally, skipped: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    return [
        [
            f"{topic}[{number}]",
            *(f"{value:,}" for value in (part.first, part.last, part.records)),
            f"{skipped.get(topic, {}).get(number, 0):,}",
        ]
        for topic, parts in sorted(tally.offsets.items())
        for number, part in sorted(parts.items(), key=lambda item: int(item[0]))
    ]


def aligned(header: list[str] | None, rows: list[list[str]]) -> str:
    """Set a table as text: columns of one width, those of numbers to the right."""
    rows = [[visible(cell) for cell in row] for row in rows]
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


def visible(text: str) -> str:
    """Spell out what a terminal would obey: names come from strangers."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def _is_number(cell: str) -> bool:
    return not cell or cell.replace(",", "").isdigit()
