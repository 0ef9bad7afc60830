"""`FakeGroup`: the group metadata of a `FakeConsumer`, for the transactions of a `FakeProducer`."""

from __future__ import annotations

from collections.abc import Callable

from cloudevents_kafka.testing.fakes._log import FakeLog, PartitionId


class FakeGroup:
    """The committed offsets of a group, and the generation of the group when this object was created."""

    def __init__(
        self, offsets: dict[PartitionId, int], log: FakeLog, current_generation: Callable[[], int]
    ) -> None:
        self.offsets = offsets
        self.log = log
        self._generation = current_generation()
        self._current_generation = current_generation

    @property
    def is_stale(self) -> bool:
        """Whether the group was rebalanced after this object was created; if so, brokers refuse commits."""
        return self._generation != self._current_generation()
