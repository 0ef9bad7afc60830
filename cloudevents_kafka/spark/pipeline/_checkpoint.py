"""Spark's checkpoint: the id of its query, and the offsets of each batch.

Spark writes the ends of a batch to ``offsets/<batch>`` before it runs the batch, and continues
from there after a kill. A batch begins where the one before it ends; the first one begins at the
offsets in ``sources/0/0``, a partition that was added later at its offset 0.
"""

from __future__ import annotations

from typing import Final

import msgspec

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.spark.pipeline._offsets import BatchPlan, OffsetRange
from cloudevents_kafka.spark.pipeline._store import Store

_METADATA: Final = "metadata"
_FIRST_OFFSETS: Final = "sources/0/0"
_EndOffsets = dict[str, dict[str, int]]


class WrongCheckpoint(CloudEventsKafkaError):
    """The checkpoint and the folder do not belong together."""


class Checkpoint:
    """The checkpoint of one streaming query that reads Kafka."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def url(self) -> str:
        """The URL of its folder, for Spark."""
        return self._store.url("")

    def query_id(self) -> str | None:
        """Return the id of its query, or None before the first run."""
        if not self._store.exists(_METADATA):
            return None
        content = self._store.read(_METADATA)
        try:
            return msgspec.json.decode(content, type=dict[str, str])["id"]
        except (msgspec.MsgspecError, KeyError) as error:
            raise self._damaged(_METADATA, str(error)) from error

    def last_committed(self) -> BatchPlan | None:
        """Return the last batch that Spark has committed, with empty ranges at its ends, or None."""
        numbers = self._numbers("commits")
        if not numbers or not self._store.exists(f"offsets/{max(numbers)}"):
            return None
        ends = self._end_offsets(f"offsets/{max(numbers)}")
        return _plan(max(numbers), ends, ends)

    def last_planned(self) -> BatchPlan | None:
        """Return the last batch that Spark has planned, or None."""
        numbers = self._numbers("offsets")
        return self.plan(max(numbers)) if numbers else None

    def _numbers(self, folder: str) -> list[int]:
        return [int(name) for name in self._store.list_names(folder) if name.isdecimal()]

    def plan(self, batch: int) -> BatchPlan:
        """Return the offsets that Spark planned for a batch."""
        starts = self._end_offsets(f"offsets/{batch - 1}" if batch else _FIRST_OFFSETS)
        return _plan(batch, starts, self._end_offsets(f"offsets/{batch}"))

    def _end_offsets(self, path: str) -> _EndOffsets:
        """Return the last line of a file, JSON of topic to partition to offset."""
        if not self._store.exists(path):
            raise self._damaged(path, "it is missing")
        lines = self._store.read(path).strip(b"\0\n").splitlines()
        if len(lines) < 2 or lines[0] != b"v1":
            raise self._damaged(path, f"it must begin with v1, got {lines[:1]}")
        try:
            return msgspec.json.decode(lines[-1], type=_EndOffsets)
        except msgspec.MsgspecError as error:
            raise self._damaged(path, str(error)) from error

    def _damaged(self, path: str, problem: str) -> WrongCheckpoint:
        return WrongCheckpoint(
            f"{self._store.url(path)} is not as Spark wrote it: {problem}. "
            "Restore the checkpoint, or land into a fresh folder with a fresh checkpoint"
        )


def _plan(batch: int, starts: _EndOffsets, ends: _EndOffsets) -> BatchPlan:
    ranges = {
        topic: {
            partition: OffsetRange(starts.get(topic, {}).get(partition, 0), end)
            for partition, end in partitions.items()
        }
        for topic, partitions in ends.items()
    }
    return BatchPlan(batch, ranges)
