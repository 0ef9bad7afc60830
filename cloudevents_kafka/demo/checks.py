"""The demo's sums: what was sent, read back and landed is held against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cloudevents_kafka.demo.clients import ReadBack, Traffic
    from cloudevents_kafka.spark.pipeline import Summary


class Check(msgspec.Struct, frozen=True):
    """One thing that must hold, and whether it does; ``seen`` says what was found where it does not."""

    text: str
    good: bool
    seen: str = ""

    def __str__(self) -> str:
        return f"ok      {self.text}" if self.good else f"FAILED  {self.text}: {self.seen}"


def checks(sent: Traffic, back: ReadBack, summary: Summary, folder: Path) -> list[Check]:
    """Hold what was sent against what was read back, against the pipeline's counts, against the files."""
    counts = summary.counts
    landed = Counter({(kind, mode): n for kind, modes in counts.by_type.items() for mode, n in modes.items()})
    refused = Counter({verdict: sum(reasons.values()) for verdict, reasons in counts.by_reason.items()})
    rows = landed_rows(folder / "events")
    return [
        _equal(
            f"{sent.total:,} records sent = {counts.events:,} events + {counts.quarantined:,} quarantined",
            sent.total,
            counts.events + counts.quarantined,
        ),
        _equal("events read back: of each type in each mode and format as sent", sent.events, back.events),
        _equal("events in the table: of each type in each mode as sent", sent.by_mode(), landed),
        _equal("other records read back: for each verdict as foreseen", sent.verdicts, back.verdicts),
        _equal("other records in quarantine: for each verdict as foreseen", sent.verdicts, refused),
        _equal(
            f"{len(rows):,} rows in the files, each at its offset, with its id and its data byte for byte",
            back.payloads,
            rows,
        ),
    ]


def landed_rows(folder: Path) -> dict[tuple[int, int], tuple[str, bytes | None]]:
    """Read a table's files as any tool would; partition and offset to id and data.

    A row that is there twice leaves the other out: then the numbers differ.
    """
    import pyarrow.parquet as pq

    rows: dict[tuple[int, int], tuple[str, bytes | None]] = {}
    for file in sorted(folder.rglob("*.parquet")):
        table = pq.ParquetFile(file).read(columns=["partition", "offset", "id", "data"])
        for partition, offset, identity, data in zip(
            *(column.to_pylist() for column in table.columns), strict=True
        ):
            if (partition, offset) in rows:
                rows[-partition - 1, offset] = (identity, data)
            rows[partition, offset] = (identity, data)
    return rows


def _equal(text: str, wanted: object, found: object) -> Check:
    if wanted == found:
        return Check(text, good=True)
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return Check(text, good=False, seen=_difference(wanted, found))
    return Check(text, good=False, seen=f"{wanted} is not {found}")


def _difference(wanted: Mapping[object, object], found: Mapping[object, object]) -> str:
    """Name the first entries that differ."""
    names: Iterable[object] = sorted({*wanted, *found}, key=str)
    differing = [name for name in names if wanted.get(name) != found.get(name)]
    shown = "; ".join(
        f"{name}: {_short(wanted.get(name))} sent, {_short(found.get(name))} found" for name in differing[:3]
    )
    return f"{shown}{f' and {len(differing) - 3} more' if len(differing) > 3 else ''}"


def _short(value: object) -> str:
    return "none" if value is None else repr(value)[:60]
