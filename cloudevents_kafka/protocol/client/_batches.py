"""Queued records, and the batches in which a producer sends them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from cloudevents_kafka.protocol.client._message import PartitionId
from cloudevents_kafka.protocol.client._retry import FIRST_PAUSE, MAX_PAUSE, Deadline
from cloudevents_kafka.protocol.errors import DeadlineExceeded, ProtocolError, Unsupported
from cloudevents_kafka.protocol.records import Codec, Record, encode_batch, encode_message_set

DeliveryCallback: TypeAlias = Callable[[ProtocolError | None, Any], object]
"""A function with two arguments: the error (None for a delivered message), and the `Message`."""

RECORD_BATCH_VERSION: Final = 3
"""The first version of Produce that sends record batches, which can contain headers (KIP-98, Kafka 0.11)."""

_RECORD_OVERHEAD: Final = 40  # about the number of bytes of a record without key, value and headers


class QueuedRecord(NamedTuple):
    """A record that was passed to the producer, and whose delivery or failure is not reported yet."""

    topic: str
    partition: int
    record: Record
    on_delivery: DeliveryCallback | None
    deadline: Deadline
    known_size: int = 0

    @property
    def size(self) -> int:
        """The approximate number of bytes of the encoded record."""
        return self.known_size or size_of(self.record)


def size_of(record: Record) -> int:
    """Return the approximate number of bytes of an encoded record."""
    size = _RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) + len(value or b"") + 4
    return size


class ProducerId(NamedTuple):
    """An idempotent producer's id and epoch, by which brokers recognize repeated batches (KIP-98)."""

    producer_id: int = -1
    epoch: int = -1


NO_PRODUCER_ID: Final = ProducerId()


class ProducerBatch:
    """Records of one partition that are sent together, with the same sequence number in each attempt.

    The batch is not sent again before ``backoff`` expires. ``last_error`` is the error of the last attempt.
    If the brokers have lost earlier batches of the producer, this batch receives another producer id or
    epoch, and another sequence number.
    """

    def __init__(
        self, topic_partition: PartitionId, queued: list[QueuedRecord], producer_id: ProducerId, sequence: int
    ) -> None:
        self.topic_partition: Final = topic_partition
        self.queued = queued
        self.producer_id = producer_id
        self.sequence = sequence
        self.encoded_size = 0
        self.is_in_flight = False
        self.backoff = Deadline(0)
        self.last_error: ProtocolError | None = None
        self._pause = FIRST_PAUSE

    def __str__(self) -> str:
        return "{}[{}]".format(*self.topic_partition)

    def back_off(self, error: ProtocolError) -> None:
        """Set the time at which the batch is sent again; the pauses between the attempts grow."""
        if self.last_error is None or not isinstance(error, DeadlineExceeded):  # a timeout says less
            self.last_error = error
        self.backoff = Deadline(self._pause)
        self._pause = min(2 * self._pause, MAX_PAUSE)

    def queued_size(self) -> int:
        """Return the approximate number of bytes of the encoded records."""
        return sum(queued.size for queued in self.queued)

    def expired(self) -> bool:
        return self.queued[0].deadline.expired()


def encode_records(
    records: Sequence[Record],
    version: int,
    codec: Codec,
    producer: ProducerId = NO_PRODUCER_ID,
    sequence: int = -1,
) -> bytes:
    """Return the records in bytes for a version of Produce.

    For the versions 0 to 2 of Produce, the bytes are a message set. For later versions, the bytes are a
    record batch.
    """
    if version >= RECORD_BATCH_VERSION:
        return encode_batch(
            records,
            codec,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
        )
    bare = [msgspec.structs.replace(record, headers=[]) for record in records]  # see `check_headers`
    return encode_message_set(bare, 1 if version == 2 else 0, codec)  # magic 1: KIP-32


def check_headers(topic: str, record: Record, version: int) -> None:
    """Raise `Unsupported` for headers that a broker before 0.11 cannot store.

    The header content-type may be dropped, because the record's value states the content type, too.
    """
    foreign = [name for name, _ in record.headers if name.lower() != "content-type"]
    if version < RECORD_BATCH_VERSION and foreign:
        raise Unsupported(
            f"{topic}: brokers before 0.11 have no headers, and the record has "
            f"{', '.join(foreign[:3])}{', ...' * (len(foreign) > 3)}; send structured mode"
        )


def drain(queue: deque[QueuedRecord], max_records: int, max_bytes: int) -> list[QueuedRecord]:
    """Remove and return the first records of a queue, as many as one batch may contain, but at least one."""
    batch = [queue.popleft()]
    left = max_bytes - batch[0].size
    while queue and len(batch) < max_records and (left := left - queue[0].size) >= 0:
        batch.append(queue.popleft())
    return batch
