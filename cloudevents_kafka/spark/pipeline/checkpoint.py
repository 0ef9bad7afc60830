"""Spark's checkpoint, as far as landing needs it: whose it is, and which offsets make up a batch.

Spark writes a batch's ends to ``offsets/<batch>`` before it runs the batch, and reads on
from there after a kill. A batch begins where the one before it ends, the first one where
``sources/0/0`` says; a partition that appears later begins at its offset 0.
"""

from __future__ import annotations

from typing import Final

import msgspec

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.spark.pipeline.offsets import Plan, Span
from cloudevents_kafka.spark.pipeline.store import Store

_METADATA: Final = "metadata"
_FIRST: Final = "sources/0/0"
_Ends = dict[str, dict[str, int]]


class WrongCheckpoint(CloudEventsKafkaError):
    """The checkpoint and the folder do not belong together."""


class Checkpoint:
    """The checkpoint of one streaming query that reads Kafka."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def url(self) -> str:
        """Where it stands, as Spark takes it."""
        return self._store.url("")

    def query(self) -> str | None:
        """Return the id of its query, None where no query has used it yet."""
        if not self._store.exists(_METADATA):
            return None
        content = self._store.read(_METADATA)
        try:
            return msgspec.json.decode(content, type=dict[str, str])["id"]
        except (msgspec.MsgspecError, KeyError) as error:
            raise self._damaged(_METADATA, str(error)) from error

    def committed(self) -> Plan | None:
        """Return the last batch that Spark knows to be done, None where it knows of none."""
        numbers = self._numbers("commits")
        if not numbers or not self._store.exists(f"offsets/{max(numbers)}"):
            return None
        ends = self._ends(f"offsets/{max(numbers)}")
        return _plan(max(numbers), ends, ends)

    def planned(self) -> Plan | None:
        """Return the last batch that Spark planned, None where there is none."""
        numbers = self._numbers("offsets")
        return self.plan(max(numbers)) if numbers else None

    def _numbers(self, folder: str) -> list[int]:
        return [int(name) for name in self._store.names(folder) if name.isdecimal()]

    def plan(self, batch: int) -> Plan:
        """Return what Spark planned for the batch that it runs."""
        starts = self._ends(f"offsets/{batch - 1}" if batch else _FIRST)
        return _plan(batch, starts, self._ends(f"offsets/{batch}"))

    def _ends(self, path: str) -> _Ends:
        """Read the last line of a file of Spark's, which has JSON of topic to partition to offset."""
        if not self._store.exists(path):
            raise self._damaged(path, "it is missing")
        lines = self._store.read(path).strip(b"\0\n").splitlines()
        if len(lines) < 2 or lines[0] != b"v1":
            raise self._damaged(path, f"it must begin with v1, got {lines[:1]}")
        try:
            return msgspec.json.decode(lines[-1], type=_Ends)
        except msgspec.MsgspecError as error:
            raise self._damaged(path, str(error)) from error

    def _damaged(self, path: str, problem: str) -> WrongCheckpoint:
        return WrongCheckpoint(
            f"{self._store.url(path)} does not say what Spark wrote there: {problem}. "
            "Put back the checkpoint, or land into a fresh folder with a fresh checkpoint"
        )


def _plan(batch: int, starts: _Ends, ends: _Ends) -> Plan:
    spans = {
        topic: {number: Span(starts.get(topic, {}).get(number, 0), end) for number, end in by_number.items()}
        for topic, by_number in ends.items()
    }
    return Plan(batch, spans)
