"""The progress of a pipeline: one report for each batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark.pipeline._counts import BatchCounts


class BatchProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that has landed: its counts, its duration, and the distance to the topics' ends.

    ``behind`` is a number of offsets, counted from the ends that Spark saw last. It and
    ``seconds`` are None if the pipeline was stopped before Spark reported the batch.
    """

    number: int
    counts: BatchCounts
    seconds: float | None = None
    behind: int | None = None

    def __str__(self) -> str:
        counts = self.counts
        sums = (
            f"{counts.read:,} read = {pluralize(counts.events, 'event')} + {counts.quarantined:,} quarantined"
        )
        parts = [f"batch {self.number}: {sums}"]
        if self.seconds:
            parts.append(f"{counts.read / self.seconds:,.0f} records/s")
        if self.behind is not None:
            parts.append(f"{self.behind:,} behind")
        return ", ".join(parts)


def batch_progress(progress: Mapping[str, Any], counts: BatchCounts) -> BatchProgress:
    """Return the progress of a batch, from its counts and Spark's ``recentProgress``."""
    return BatchProgress(
        number=progress["batchId"],
        counts=counts,
        seconds=progress["durationMs"].get("triggerExecution", 0) / 1000,
        behind=sum(_behind(source) for source in progress["sources"]),
    )


def _behind(source: Mapping[str, Any]) -> int:
    latest, end = _offsets(source["latestOffset"]), _offsets(source["endOffset"])
    return sum(max(0, offset - end.get(partition, 0)) for partition, offset in latest.items())


def _offsets(text: str) -> dict[tuple[str, str], int]:
    """Return offsets by topic and partition from Spark's JSON, empty before Spark has any."""
    try:
        topics = msgspec.json.decode(text, type=dict[str, dict[str, int]])
    except msgspec.MsgspecError:
        return {}
    return {
        (topic, partition): offset for topic, parts in topics.items() for partition, offset in parts.items()
    }
