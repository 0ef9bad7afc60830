"""Whether the topics are still those that landed: a topic created again has the same name and other records.

Offsets count anew in a topic that was deleted and created again, so they say nothing of
what has landed. Its id (KIP-516, from Kafka 2.8 on) does: `Topics` compares the ids that
the broker says with those in the notes, and where each partition ends with what has
landed of it. Where the broker says no ids, the ends alone must do: a topic that was created
again is then noticed only while it has fewer records than have landed.

The pipeline compares at its start, before a batch is read, and after it is read, before it
lands. An id never comes back, so what was read between two comparisons that agree was read
from the topic of that id. One window is left, on several brokers: the one that is asked
may hear some milliseconds later of a new topic than the one that records are read from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.spark.pipeline.notes import Ids
from cloudevents_kafka.spark.pipeline.offsets import Spans, parts

_GONE_SECONDS = 5.0
_AFRESH = "Land it into a fresh folder, with a fresh checkpoint"
_UNKNOWN = (
    "the brokers say no id of topic {} ({}): that it was deleted and created again "
    "will be noticed only while it has fewer records than have landed"
)


class TopicChanged(CloudEventsKafkaError):
    """A topic is not there, or is not the one whose records have landed."""


class NotSaid(Exception):
    """The brokers do not say it, for the reason in the text."""


class Topic(NamedTuple):
    """What the brokers say of a topic: its id, and where its partitions end.

    ``id`` is None where they do not say, for the reason in ``unknown``; ``ends`` is partition,
    as text, to the offset behind its last record, None where they do not say.
    """

    id: str | None
    ends: Mapping[str, int] | None
    unknown: str = "older than Kafka 2.8"


class Brokers(Protocol):
    """Who can be asked about topics."""

    def ask(self, topics: Iterable[str], landed: Spans, seconds: float) -> Mapping[str, Topic | None]:
        """Return what is known of topics, of their partitions those of `landed`; None for no such topic."""


class Topics:
    """The topics of a pipeline, compared with those whose records stand in `folder`."""

    def __init__(
        self, names: Iterable[str], brokers: Brokers, folder: str, warn: Callable[[str], None]
    ) -> None:
        self._names = tuple(names)
        self._brokers = brokers
        self._folder = folder
        self._warn = warn
        self._warned: set[str] = set()

    def check(
        self, ids: Ids, landed: Spans, planned: Spans | None = None, *, seconds: float = 60.0
    ) -> dict[str, str]:
        """Return the topics' ids; raises `TopicChanged` where one is not what it was.

        `ids` are those from before, `landed` the offsets that have landed, `planned` those of
        Spark's last plan, whose ends count where the brokers say none.
        """
        found = self._ask(ids, landed, seconds)
        for name in self._names:
            self._check_id(name, found.get(name), ids.get(name))
        for name, topic in found.items():
            if topic is not None:
                ends = _ends(name, landed, planned or {}) if topic.ends is None else topic.ends
                check_ends(name, ends, landed, self._folder)
        return {name: topic.id for name, topic in found.items() if topic is not None and topic.id is not None}

    def _ask(self, ids: Ids, landed: Spans, seconds: float) -> Mapping[str, Topic | None]:
        """Ask again for a while where a topic went: it may be created again just now, which says more."""
        deadline = time.monotonic() + _GONE_SECONDS
        while True:
            found = self._brokers.ask(self._names, landed, seconds)
            gone = any(found.get(name) is None for name in self._names if name in ids)
            if not gone or time.monotonic() > deadline:
                return found
            time.sleep(_GONE_SECONDS / 20)

    def _check_id(self, name: str, topic: Topic | None, before: str | None) -> None:
        if topic is None:
            raise TopicChanged(self._absent(name, before))
        if topic.id is None:
            self._say(name, topic.unknown)
        elif before is not None and topic.id != before:
            raise TopicChanged(
                f"topic {name} was deleted and created again: its id is {topic.id}, and what stands in "
                f"{self._folder} is of the topic with id {before}. Offsets count anew in it. {_AFRESH}"
            )

    def _absent(self, name: str, before: str | None) -> str:
        if before is None:
            return f"topic {name} does not exist: check its name, or create it first"
        return (
            f"topic {name} does not exist any more: the one with id {before}, "
            f"whose records stand in {self._folder}, was deleted. Where it is created again, "
            f"it is another topic. {_AFRESH}"
        )

    def _say(self, name: str, reason: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            self._warn(_UNKNOWN.format(name, reason))


def _ends(topic: str, landed: Spans, planned: Spans) -> dict[str, int]:
    """Return the ends of what landed, those of a plan going first."""
    known = {**landed.get(topic, {}), **planned.get(topic, {})}
    return {number: span.end for number, span in known.items()}


def check_ends(topic: str, ends: Mapping[str, int], landed: Spans, folder: str) -> None:
    """Raise `TopicChanged` where a partition ends before what has landed of it."""
    for name, number, span in parts(landed):
        if name == topic and ends.get(number, 0) < span.end:
            raise TopicChanged(
                f"{topic}[{number}] ends at offset {ends.get(number, 0)}, but all before offset {span.end} "
                f"stand in {folder}: the topic was deleted and created again, or has lost its last records. "
                f"{_AFRESH}"
            )
