"""`TopicMonitor` detects, with an admin client, topics that were deleted and created again.

If a topic is created again, its offsets restart at 0, so the landed offsets belong to records of the deleted
topic. A topic that is created again has a new id (KIP-516, Kafka 2.8 and later). So the monitor compares the
current ids of the topics with the ids in the manifests of the batches. The monitor also compares the end
offset of each partition with the landed offsets of the partition. If the brokers do not report ids of topics,
the monitor compares only the end offsets. Without ids, the monitor can detect that a topic was created again
only while the new topic has fewer records than have landed from the deleted topic.

The pipeline checks its topics at the start of a run. For each batch, the pipeline checks the topics twice:
before the pipeline reads the batch, and before the batch lands. Kafka never uses the id of a topic for a
second topic. So if both checks of a batch find the same id of a topic, the records of the batch belong to the
topic with this id. If there are several brokers, one risk remains: the broker that describes a new topic may
learn of the topic some milliseconds later than the broker that serves the topic's records.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from cloudevents_kafka.spark.pipeline._errors import PipelineError, failure_of
from cloudevents_kafka.spark.pipeline.notes import OffsetRange, OffsetRanges, TopicIds

_NO_TOPIC: Final = "UnknownTopicOrPartitionException"
_NO_RIGHT: Final = "AuthorizationException"
_TOO_OLD: Final = "UnsupportedVersionException"
_RECREATION_SECONDS: Final = 5.0
_TIMEOUT: Final = 60.0
_START_AFRESH = "Land the topic into a fresh folder, with a fresh checkpoint"
_NO_ID = (
    "the brokers report no id of topic {} ({}): if the topic is deleted and created again, "
    "this is noticed only while the new topic has fewer records than have landed"
)


class TopicChanged(PipelineError):
    """A topic does not exist, or was created again after its records have landed.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import EventPipeline, PipelineOptions, TopicChanged
        >>> brokers = "localhost:9092"
        >>> options = PipelineOptions(bootstrap_servers=brokers, topics=("oders",), out="lake/", once=True)
        >>> try:
        ...     EventPipeline(options, spark=spark).run()
        ... except TopicChanged as error:
        ...     print(error)
        topic oders does not exist: check its name, or create it first
    """


class TopicNotDescribed(Exception):
    """The brokers do not describe a topic; the text of this error contains the reason."""


class TopicState(NamedTuple):
    """The id of a topic and the end offsets of its partitions.

    If the brokers do not report the id of the topic, ``id`` is None, and ``no_id_reason`` is the reason.
    ``ends`` maps each partition (as text) to the offset after the partition's last record, and is None if the
    end offsets are unknown. ``partitions`` is the number of partitions of the topic, or 0 if the number is
    unknown.
    """

    id: str | None
    ends: Mapping[str, int] | None
    no_id_reason: str = "older than Kafka 2.8"
    partitions: int = 0


class TopicAdmin(Protocol):
    """A client that describes topics."""

    def list_names(self, timeout: float) -> Iterable[str]:
        """Return the names of all topics; raise `PipelineFailed` if no broker answers."""

    def describe(
        self, topics: Iterable[str], landed: OffsetRanges, timeout: float
    ) -> Mapping[str, TopicState | None]:
        """Return the state of each topic, or None for a topic that does not exist.

        See also `KafkaAdmin.describe`.
        """

    def close(self) -> None:
        """Close the connections."""


class TopicMonitor:
    """Compares a pipeline's topics with the topics whose records have landed in ``folder``."""

    def __init__(
        self,
        names: Iterable[str],
        admin: TopicAdmin,
        folder: str,
        warn: Callable[[str], None],
        *,
        pattern: str | None = None,
    ) -> None:
        self.names = tuple(names)
        self._pattern = pattern
        self._admin = admin
        self._folder = folder
        self.warn = warn
        self._warned: set[str] = set()
        self.partitions: dict[str, int] = {}  # the number of partitions of each topic, if it is known

    def check(
        self,
        ids: TopicIds,
        landed: OffsetRanges,
        planned: OffsetRanges | None = None,
        *,
        timeout: float = _TIMEOUT,
    ) -> dict[str, str]:
        """Return the topics' ids; raise `TopicChanged` if a topic with landed records was created again.

        ``ids`` maps the names of topics to the ids that are known so far. ``planned`` contains the offsets of
        Spark's last plan. If the brokers do not report end offsets, the end offsets in Spark's plan are
        compared with the landed offsets.
        """
        if self._pattern is not None:
            self._find_names(self._pattern, ids, timeout)
        states = self._describe(ids, landed, timeout)
        for name in self.names:
            self._check_id(name, states.get(name), ids.get(name))
        for name, state in states.items():
            if state is not None:
                ends = _planned_ends(name, landed, planned or {}) if state.ends is None else state.ends
                _check_ends(name, ends, landed, self._folder)
        found = {name: state for name, state in states.items() if state is not None}
        self.partitions = {name: state.partitions for name, state in found.items() if state.partitions}
        return {name: state.id for name, state in found.items() if state.id is not None}

    def check_ids(self, ids: TopicIds, topics: Iterable[str]) -> None:
        """Raise `TopicChanged` if one of the topics does not exist, or has another id than in ``ids``.

        ``topics`` may include topics that the pipeline no longer reads.
        """
        for name, state in self._admin.describe(topics, {}, _TIMEOUT).items():
            self._check_id(name, state, ids.get(name))

    def exists(self, topic: str) -> bool:
        """Return whether a topic exists on the brokers."""
        return self._admin.describe([topic], {}, _TIMEOUT)[topic] is not None

    def _find_names(self, pattern: str, known: Iterable[str], timeout: float) -> None:
        """Find the topics whose names match ``pattern``; topics in ``known`` need not exist any more."""
        found = {*self._admin.list_names(timeout), *known}
        self.names = tuple(sorted(name for name in found if re.fullmatch(pattern, name)))
        if not self.names:
            raise TopicChanged(f"no topic has a name that matches {pattern}: check it, or create a topic")

    def ends(self, topic: str, partitions: Iterable[str]) -> Mapping[str, int]:
        """Return the end offsets of the partitions for which the brokers report an end offset."""
        asked = {topic: dict.fromkeys(partitions, OffsetRange(0, 0))}
        state = self._admin.describe([topic], asked, _TIMEOUT)[topic]
        return {} if state is None else state.ends or {}

    def _describe(
        self, ids: TopicIds, landed: OffsetRanges, timeout: float
    ) -> Mapping[str, TopicState | None]:
        """Return the states of the topics.

        If a known topic is missing, ask the brokers again for a while, because someone may be creating the
        topic again.
        """
        deadline = time.monotonic() + _RECREATION_SECONDS
        while True:
            states = self._admin.describe(self.names, landed, timeout)
            missing = any(states.get(name) is None for name in self.names if name in ids)
            if not missing or time.monotonic() > deadline:
                return states
            time.sleep(_RECREATION_SECONDS / 20)

    def _check_id(self, name: str, state: TopicState | None, known_id: str | None) -> None:
        if state is None and known_id is None:
            raise TopicChanged(f"topic {name} does not exist: check its name, or create it first")
        if state is None:
            raise TopicChanged(
                f"topic {name} does not exist any more: the topic with id {known_id}, whose records are in "
                f"{self._folder}, was deleted. If the topic is created again, it is another topic. To "
                "continue without the topic, leave it out of the topics, and forget it "
                f"(--forget-topic {name})"
            )
        if state.id is None:
            if name not in self._warned:
                self._warned.add(name)
                self.warn(_NO_ID.format(name, state.no_id_reason))
        elif known_id is not None and state.id != known_id:
            raise TopicChanged(
                f"topic {name} was deleted and created again: its id is {state.id}, but {self._folder} "
                f"has records of the topic with id {known_id}. Offsets restart at 0 in a new topic. "
                f"{_START_AFRESH}"
            )


def _planned_ends(topic: str, landed: OffsetRanges, planned: OffsetRanges) -> dict[str, int]:
    """Return the end offset of each partition of a topic, from Spark's plan.

    If Spark's plan does not contain a partition, return the offset after the last landed record of the
    partition.
    """
    ranges = {**landed.get(topic, {}), **planned.get(topic, {})}
    return {partition: offsets.end for partition, offsets in ranges.items()}


def _check_ends(topic: str, ends: Mapping[str, int], landed: OffsetRanges, folder: str) -> None:
    """Raise `TopicChanged` if the end offset of a partition is lower than the end of its landed offsets."""
    for partition, offsets in landed.get(topic, {}).items():
        if ends.get(partition, 0) < offsets.end:
            raise TopicChanged(
                f"{topic}[{partition}] ends at offset {ends.get(partition, 0)}, but all offsets before "
                f"{offsets.end} have landed in {folder}: the topic was deleted and created again, "
                f"or has lost its last records. {_START_AFRESH}"
            )


def call_java(call: Callable[[], Any]) -> Any:
    """Return the result of a Java call, or None if the topic or partition does not exist.

    Raises `TopicNotDescribed` if this process is not allowed to describe a topic, or if the brokers are too
    old to describe it. Other errors of the Java call become a `PipelineFailed` with advice.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

    try:
        return call()
    except Py4JJavaError as error:
        exception = error.java_exception
        exception = exception.getCause() or exception
        name = str(exception.getClass().getName())
        if name.endswith(_NO_TOPIC):
            return None
        if name.endswith(_NO_RIGHT):
            raise TopicNotDescribed("the right to describe it is missing") from error
        if name.endswith(_TOO_OLD):
            raise TopicNotDescribed("the brokers are too old") from error
        while exception.getCause() is not None:
            exception = exception.getCause()
        raise failure_of(f"Caused by: {exception.toString()}") from error
