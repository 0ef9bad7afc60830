"""Spark's checkpoint: the id of its query, and the offsets of each batch.

Before Spark runs a batch, Spark writes the end offsets of the batch to the file ``offsets/<batch>``. If Spark
is killed during a batch, Spark runs this batch again at its next start. A batch begins at the offsets at
which the previous batch ends. The first batch begins at the offsets in the file ``sources/0/0``. A partition
that was added to a topic after the start of the query begins at its offset 0.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Final, TypeVar

import msgspec

from cloudevents_kafka.spark.pipeline._errors import PipelineError
from cloudevents_kafka.spark.pipeline.notes._ledger import OffsetRange, OffsetRanges
from cloudevents_kafka.spark.pipeline.stores import Store

CHECKPOINT: Final = "_checkpoint"
"""The default name of the checkpoint's folder, which is next to the folders of the tables."""
_METADATA: Final = "metadata"
_FIRST_OFFSETS: Final = "sources/0/0"
_OFFSETS: Final = "offsets"
_COMMITS: Final = "commits"
_EndOffsets = dict[str, dict[str, int]]
_Content = TypeVar("_Content")


class _Metadata(msgspec.Struct):
    id: str


class BatchPlan(msgspec.Struct, frozen=True):
    """The offsets that Spark planned for a batch."""

    batch: int
    ranges: OffsetRanges

    def begins(self) -> OffsetRanges:
        """Return the offsets at which the batch begins, as empty ranges."""
        return {
            topic: {number: OffsetRange(range_.start, range_.start) for number, range_ in numbers.items()}
            for topic, numbers in self.ranges.items()
        }


class WrongCheckpoint(PipelineError):
    """A checkpoint does not belong to the pipeline's folder, or one of their files is damaged.

    Examples:
        >>> from msgspec.structs import replace
        >>> from cloudevents_kafka.spark.pipeline import EventPipeline, PipelineOptions, WrongCheckpoint
        >>> brokers = "localhost:9092"
        >>> options = PipelineOptions(bootstrap_servers=brokers, topics=("orders",), out="lake/", once=True)
        >>> summary = EventPipeline(options, spark=spark).run()
        >>> try:
        ...     EventPipeline(replace(options, checkpoint="lake/another"), spark=spark).run()
        ... except WrongCheckpoint as error:
        ...     print(error)
        file:///... was filled under another checkpoint (query ...
    """


class Checkpoint:
    """The checkpoint of one streaming query that reads Kafka."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def url(self) -> str:
        """The URL of the checkpoint's folder, in the form that Spark reads."""
        return self._store.url("")

    def clear(self) -> None:
        """Remove all files that Spark has written to the checkpoint."""
        for name in (_METADATA, f".{_METADATA}.crc", _OFFSETS, _COMMITS, "sources", "state"):
            self._store.remove(name)

    def has_offsets(self) -> bool:
        """Return whether Spark has written offsets of a batch, or the offsets at which the query begins."""
        return bool(self._numbers(_OFFSETS)) or self._store.exists(_FIRST_OFFSETS)

    def query_id(self) -> str | None:
        """Return the id of the checkpoint's query, or None if the query has not run yet.

        Raises `WrongCheckpoint` if a file of the checkpoint is damaged, so that Spark cannot continue.
        """
        query_id = None
        if self._store.exists(_METADATA):
            query_id = self._decoded(_METADATA, self._store.read(_METADATA), _Metadata).id
        offsets, commits = self._numbers(_OFFSETS), self._numbers(_COMMITS)
        if self._store.exists(_FIRST_OFFSETS):
            self._end_offsets(_FIRST_OFFSETS)
        for number in range(max(0, max(offsets) - 1), max(offsets) + 1) if offsets else ():
            self._end_offsets(f"{_OFFSETS}/{number}")
        if commits:
            path = f"{_COMMITS}/{max(commits)}"
            lines = self._lines(path, rb"v[1-9][0-9]*", "a version such as v1")
            self._decoded(path, lines[1], dict[str, msgspec.Raw])
        return query_id

    def last_committed(self) -> BatchPlan | None:
        """Return the last batch that Spark has committed, or None if Spark has not committed a batch.

        All ranges in the result are empty: each range begins and ends at the end offset of the batch in the
        partition.
        """
        numbers = self._numbers(_COMMITS)
        if not numbers or not self._store.exists(f"{_OFFSETS}/{max(numbers)}"):
            return None
        ends = self._end_offsets(f"{_OFFSETS}/{max(numbers)}")
        return _plan(max(numbers), ends, ends)

    def repeats(self) -> bool:
        """Return whether Spark has planned a batch that it has not committed.

        Spark first repeats a batch that it has planned but not committed when it starts again.
        """
        return max(self._numbers(_OFFSETS), default=-1) > max(self._numbers(_COMMITS), default=-1)

    def last_planned(self) -> BatchPlan | None:
        """Return the last batch that Spark has planned, or None if Spark has not planned a batch."""
        numbers = self._numbers(_OFFSETS)
        return self.plan(max(numbers)) if numbers else None

    def last_begins(self) -> OffsetRanges | None:
        """Return the offsets at which the last planned batch begins, or None if Spark has written no offsets.

        All ranges in the result are empty. The result also contains topics that the last planned batch no
        longer contains. If Spark has not planned a batch, the result contains the offsets at which the query
        begins.
        """
        planned = self.last_planned()
        if planned is None and not self._store.exists(_FIRST_OFFSETS):
            return None
        starts = self._starts(0 if planned is None else planned.batch)
        begins = _plan(0, starts, starts).ranges
        return begins if planned is None else {**begins, **planned.begins()}

    def topics(self) -> AbstractSet[str]:
        """Return the topics at whose offsets Spark continues.

        If Spark has planned a batch that it has not committed, Spark repeats this batch. The batch begins at
        the offsets of these topics, even if the plan of the batch no longer contains one of them.
        """
        planned = self.last_planned()
        if planned is None or self.repeats():
            return (self.last_begins() or {}).keys()
        return planned.ranges.keys()

    def _numbers(self, folder: str) -> list[int]:
        """Return the numbers of the batches that have a file in a folder of the checkpoint.

        The name of a batch's file is the number of the batch. Files with other names than numbers are
        ignored, as in Spark. Raises `WrongCheckpoint` if Spark would misread the name of a file.
        """
        numbers = []
        for name in self._store.list_names(folder):
            if re.fullmatch(r"[+-]?\d+", name):  # Spark ignores other names
                if str(int(name)) != name or int(name) < 0:
                    raise self._damaged(f"{folder}/{name}", "its name must be a number as Spark writes it")
                numbers.append(int(name))
        return numbers

    def plan(self, batch: int) -> BatchPlan:
        """Return the offsets that Spark planned for a batch."""
        return _plan(batch, self._starts(batch), self._end_offsets(f"{_OFFSETS}/{batch}"))

    def _starts(self, batch: int) -> _EndOffsets:
        return self._end_offsets(f"{_OFFSETS}/{batch - 1}" if batch else _FIRST_OFFSETS)

    def _end_offsets(self, path: str) -> _EndOffsets:
        """Return offsets by topic and partition, from the JSON in the last line of a file."""
        if not self._store.exists(path):
            raise self._damaged(path, "it is missing")
        return self._decoded(path, self._lines(path, b"v1", "v1")[-1], _EndOffsets)

    def _lines(self, path: str, version: bytes, text: str) -> list[bytes]:
        lines = self._store.read(path).strip(b"\0\n").splitlines()
        if len(lines) < 2 or not re.fullmatch(version, lines[0]):
            raise self._damaged(path, f"it must begin with {text}, got {lines[:1]}")
        return lines

    def _decoded(self, path: str, content: bytes, type_: type[_Content]) -> _Content:
        try:
            return msgspec.json.decode(content, type=type_)
        except msgspec.MsgspecError as error:
            raise self._damaged(path, str(error)) from error

    def _damaged(self, path: str, problem: str) -> WrongCheckpoint:
        folder, _, name = path.rpartition("/")
        if folder in {_OFFSETS, _COMMITS} and name.isdecimal():
            advice = (
                f"Restore the file, or remove the files {name} and higher in {_OFFSETS} and {_COMMITS}, with "
                "their .crc files: Spark plans these batches again, and records that have landed do not land "
                "twice"
            )
        else:
            advice = "Restore the file, or land into a fresh folder with a fresh checkpoint"
        return WrongCheckpoint(f"{self._store.url(path)} is not as Spark wrote it: {problem}. {advice}")


def _plan(batch: int, starts: _EndOffsets, ends: _EndOffsets) -> BatchPlan:
    ranges = {
        topic: {
            partition: OffsetRange(starts.get(topic, {}).get(partition, 0), end)
            for partition, end in partitions.items()
        }
        for topic, partitions in ends.items()
    }
    return BatchPlan(batch, ranges)
