"""Lag: how far a reader of topics, such as a group or a pipeline, is from the ends of the partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from cloudevents_kafka.cli.kafka.session import BrokerSession

if TYPE_CHECKING:
    from confluent_kafka import Consumer


class Lag(NamedTuple):
    """A partition, such as ``orders[0]``, the offset that is read next, and the offset after its last."""

    partition: str
    next_offset: int
    end: int

    @property
    def behind(self) -> int:
        """The number of offsets that were not read."""
        return max(0, self.end - self.next_offset)


def committed(consumer: Consumer, session: BrokerSession, topic: str) -> dict[tuple[str, int], int]:
    """Return the offsets of the consumer's group in a topic, by topic and partition; -1001 if it has none."""
    from confluent_kafka import TopicPartition

    partitions = [TopicPartition(topic, number) for number in session.partitions(consumer, topic)]
    with session.client_errors():
        found = consumer.committed(partitions, timeout=session.timeout)
    if error := next((one.error for one in found if one.error), None):
        raise session.failure("failed", error)
    return {(topic, one.partition): one.offset for one in found}


def lags(consumer: Consumer, session: BrokerSession, positions: Mapping[tuple[str, int], int]) -> list[Lag]:
    """Return the lag of each partition, by its next offset; without one, the reader is at the start."""
    from confluent_kafka import TopicPartition

    found = []
    for (topic, number), position in sorted(positions.items()):
        session.check()
        with session.client_errors():
            partition = TopicPartition(topic, number)
            low, high = consumer.get_watermark_offsets(partition, timeout=session.timeout, cached=False)
        found.append(Lag(f"{topic}[{number}]", max(low, position), high))
    return found
