"""What a pipeline tells of a batch while it works."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from cloudevents_kafka.spark.pipeline.counts import Tally


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that has landed: its counts, how long it took, and how far behind the topic's end it is.

    ``behind`` counts offsets, as Spark last saw the ends; it and ``seconds`` are None where
    the pipeline was stopped before Spark told.
    """

    number: int
    tally: Tally
    seconds: float | None = None
    behind: int | None = None

    def __str__(self) -> str:
        tally = self.tally
        sums = f"{tally.read:,} read = {tally.events:,} events + {tally.quarantined:,} quarantined"
        parts = [f"batch {self.number}: {sums}"]
        if self.seconds:
            parts.append(f"{tally.read / self.seconds:,.0f} records/s")
        if self.behind is not None:
            parts.append(f"{self.behind:,} behind")
        return ", ".join(parts)


def batch_of(progress: Mapping[str, Any], tally: Tally) -> Batch:
    """Make a batch of its counts and of what Spark tells about it."""
    return Batch(
        number=progress["batchId"],
        tally=tally,
        seconds=progress["durationMs"].get("triggerExecution", 0) / 1000,
        behind=sum(_behind(source) for source in progress["sources"]),
    )


def _behind(source: Mapping[str, Any]) -> int:
    latest, end = _offsets(source["latestOffset"]), _offsets(source["endOffset"])
    return sum(max(0, offset - end.get(part, 0)) for part, offset in latest.items())


def _offsets(text: str) -> dict[tuple[str, str], int]:
    """Read Spark's JSON of topic to partition to offset; nothing where it has none yet."""
    try:
        topics = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(topics, dict):
        return {}
    return {(topic, part): offset for topic, parts in topics.items() for part, offset in parts.items()}
