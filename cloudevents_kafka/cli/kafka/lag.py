"""Lag: by how many offsets a consumer group or a pipeline is behind the end of its topics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cloudevents_kafka.cli.kafka.session import BrokerSession

if TYPE_CHECKING:
    from confluent_kafka import Consumer


class Lag(NamedTuple):
    """A partition such as ``orders[0]``, the offset to read next, and the offset after its last record."""

    partition: str
    next_offset: int
    end: int

    @property
    def behind(self) -> int:
        """The number of offsets of the partition that were not read yet."""
        return max(0, self.end - self.next_offset)


def committed(consumer: Consumer, session: BrokerSession, topic: str) -> dict[tuple[str, int], int]:
    """Return the committed offsets of the consumer's group in a topic; -1001 means no offset."""
    from confluent_kafka import TopicPartition

    partitions = [TopicPartition(topic, number) for number in session.partitions(consumer, topic)]
    found = session.ask(consumer, partial(consumer.committed, partitions))
    if error := next((one.error for one in found if one.error), None):
        raise session.failure("failed", error)
    return {(topic, one.partition): one.offset for one in found}


def lags(consumer: Consumer, session: BrokerSession, positions: Mapping[tuple[str, int], int]) -> list[Lag]:
    """Return the lag of each partition.

    Without a next offset, the lag counts from the start of the partition.
    """
    from confluent_kafka import TopicPartition

    found = []
    for (topic, number), position in sorted(positions.items()):
        look_up = partial(consumer.get_watermark_offsets, TopicPartition(topic, number), cached=False)
        low, high = session.ask(consumer, look_up)
        found.append(Lag(f"{topic}[{number}]", max(low, position), high))
    return found
