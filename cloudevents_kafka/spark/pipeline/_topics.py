"""`TopicMonitor`: notice topics that were deleted and created again.

Offsets restart at 0 in such a topic, so landed offsets say nothing about its records. Its id
changes (KIP-516, Kafka 2.8 and later): the monitor compares the topics' ids with those in the
manifests, and the end of each partition with its landed offsets. If the brokers report no id, only
the ends are compared: a new topic is noticed as long as it has fewer records than have landed.

The pipeline checks at its start, before it reads a batch, and between reading and landing it. Ids
are never reused, so records read between two equal checks belong to the topic with this id. One
gap remains with several brokers: the one that describes the topic may learn of a new topic some
milliseconds later than the one that serves its records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.spark.pipeline._manifests import TopicIds
from cloudevents_kafka.spark.pipeline._offsets import OffsetRanges, iter_partitions

_RECREATION_SECONDS = 5.0
_START_AFRESH = "Land it into a fresh folder, with a fresh checkpoint"
_NO_ID = (
    "the brokers report no id of topic {} ({}): if it is deleted and created again, "
    "that is noticed only while it has fewer records than have landed"
)


class TopicChanged(CloudEventsKafkaError):
    """A topic does not exist, or is not the one whose records have landed."""


class TopicNotDescribed(Exception):
    """The brokers do not describe a topic; the text is the reason."""


class TopicState(NamedTuple):
    """The id of a topic and the end offsets of its partitions.

    ``id`` is None if the brokers do not report it, for the reason in ``no_id_reason``; ``ends``
    maps partition (as text) to the offset after the last record, and is None if it is unknown.
    """

    id: str | None
    ends: Mapping[str, int] | None
    no_id_reason: str = "older than Kafka 2.8"


class TopicAdmin(Protocol):
    """A client that describes topics."""

    def describe(
        self, topics: Iterable[str], landed: OffsetRanges, timeout: float
    ) -> Mapping[str, TopicState | None]:
        """Return the state of topics, with the ends of landed partitions; None for a missing topic."""


class TopicMonitor:
    """The topics of a pipeline, compared with those whose records are in ``folder``."""

    def __init__(
        self, names: Iterable[str], admin: TopicAdmin, folder: str, warn: Callable[[str], None]
    ) -> None:
        self._names = tuple(names)
        self._admin = admin
        self._folder = folder
        self._warn = warn
        self._warned: set[str] = set()

    def check(
        self,
        ids: TopicIds,
        landed: OffsetRanges,
        planned: OffsetRanges | None = None,
        *,
        timeout: float = 60.0,
    ) -> dict[str, str]:
        """Return the topics' ids; raise `TopicChanged` if a topic is not the one that has landed.

        ``ids`` are the ids known so far. ``planned`` is Spark's last plan; its ends are compared if
        the brokers do not report the end offsets.
        """
        states = self._describe(ids, landed, timeout)
        for name in self._names:
            self._check_id(name, states.get(name), ids.get(name))
        for name, state in states.items():
            if state is not None:
                ends = _planned_ends(name, landed, planned or {}) if state.ends is None else state.ends
                _check_ends(name, ends, landed, self._folder)
        return {
            name: state.id for name, state in states.items() if state is not None and state.id is not None
        }

    def _describe(
        self, ids: TopicIds, landed: OffsetRanges, timeout: float
    ) -> Mapping[str, TopicState | None]:
        """Return the states; retry for a while if a known topic is missing, as it may be created again."""
        deadline = time.monotonic() + _RECREATION_SECONDS
        while True:
            states = self._admin.describe(self._names, landed, timeout)
            missing = any(states.get(name) is None for name in self._names if name in ids)
            if not missing or time.monotonic() > deadline:
                return states
            time.sleep(_RECREATION_SECONDS / 20)

    def _check_id(self, name: str, state: TopicState | None, known_id: str | None) -> None:
        if state is None:
            raise TopicChanged(self._missing(name, known_id))
        if state.id is None:
            self._warn_once(name, state.no_id_reason)
        elif known_id is not None and state.id != known_id:
            raise TopicChanged(
                f"topic {name} was deleted and created again: its id is {state.id}, but {self._folder} "
                f"has records of the topic with id {known_id}. Offsets restart at 0 in a new topic. "
                f"{_START_AFRESH}"
            )

    def _missing(self, name: str, known_id: str | None) -> str:
        if known_id is None:
            return f"topic {name} does not exist: check its name, or create it first"
        return (
            f"topic {name} does not exist any more: the one with id {known_id}, "
            f"whose records are in {self._folder}, was deleted. If it is created again, "
            f"it is another topic. {_START_AFRESH}"
        )

    def _warn_once(self, name: str, reason: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            self._warn(_NO_ID.format(name, reason))


def _planned_ends(topic: str, landed: OffsetRanges, planned: OffsetRanges) -> dict[str, int]:
    """Return the ends of a plan, and those of landed offsets for partitions that the plan omits."""
    ranges = {**landed.get(topic, {}), **planned.get(topic, {})}
    return {partition: offsets.end for partition, offsets in ranges.items()}


def _check_ends(topic: str, ends: Mapping[str, int], landed: OffsetRanges, folder: str) -> None:
    """Raise `TopicChanged` if a partition ends before the end of its landed offsets."""
    for name, partition, offsets in iter_partitions(landed):
        if name == topic and ends.get(partition, 0) < offsets.end:
            raise TopicChanged(
                f"{topic}[{partition}] ends at offset {ends.get(partition, 0)}, but all before offset "
                f"{offsets.end} has landed in {folder}: the topic was deleted and created again, "
                f"or has lost its last records. {_START_AFRESH}"
            )
