"""What a producer has to send: records waiting, and batches of them on their way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.errors import ProtocolError, Unsupported
from cloudevents_kafka.protocol.records import Codec, Record, encode_batch, encode_message_set

Report: TypeAlias = Callable[[ProtocolError | None, Any], object]
"""Called with an error or None, and the `Message`."""

TopicAndPartition: TypeAlias = tuple[str, int]
"""A topic and a partition."""

BATCHES: Final = 3
"""The version of Produce from which on record batches travel, and headers with them (KIP-98, 0.11)."""

_FIRST_PAUSE: Final = 0.05  # seconds, between tries
_LONGEST_PAUSE: Final = 1.0
_OVERHEAD: Final = 40  # bytes that a record takes beside its parts, about


class Pending(NamedTuple):
    """A record that was given to the producer and is not reported on yet."""

    topic: str
    partition: int
    record: Record
    report: Report | None
    deadline: Deadline

    @property
    def size(self) -> int:
        """How many bytes it will take, about."""
        record = self.record
        headers = sum(len(name) + len(value or b"") + 4 for name, value in record.headers)
        return _OVERHEAD + len(record.key or b"") + len(record.value or b"") + headers


class Identity(NamedTuple):
    """Who writes, for brokers that tell repeated batches from new ones (KIP-98)."""

    producer_id: int = -1
    epoch: int = -1


NOBODY: Final = Identity()


class Batch:
    """Records of one partition that travel together, always with the same sequence number.

    ``resting`` is for how long it is not tried again, ``last`` why its last try failed.
    """

    def __init__(
        self, place: TopicAndPartition, pending: list[Pending], identity: Identity, sequence: int
    ) -> None:
        """Take records, one at least."""
        self.place: Final = place
        self.pending = pending
        self.identity: Final = identity
        self.sequence: Final = sequence
        self.resting = Deadline(0)
        self.last: ProtocolError | None = None
        self._pause = _FIRST_PAUSE

    def encoded(self, version: int, codec: Codec) -> bytes:
        """Encode for a version of Produce: message sets up to 2, record batches from 3 on."""
        records = [pending.record for pending in self.pending]
        if version >= BATCHES:
            return encode_batch(
                records,
                codec,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.epoch,
                base_sequence=self.sequence,
            )
        bare = [msgspec.structs.replace(record, headers=[]) for record in records]  # see `check_headers`
        return encode_message_set(bare, 1 if version == 2 else 0, codec)  # magic 1: KIP-32

    def rest(self) -> None:
        """Wait before the next try, longer each time."""
        self.resting = Deadline(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def expired(self) -> bool:
        """Tell whether the time of its oldest record is over."""
        return self.pending[0].deadline.over()


def check_headers(pending: Pending, version: int) -> None:
    """Refuse headers for a broker before 0.11, which has no room for them: `Unsupported`.

    A content type alone goes without saying: the value says the same.
    """
    foreign = [name for name, _ in pending.record.headers if name.lower() != "content-type"]
    if version < BATCHES and foreign:
        raise Unsupported(
            f"{pending.topic}: brokers before 0.11 carry no headers, and the record has "
            f"{', '.join(foreign[:3])}{', ...' * (len(foreign) > 3)}; send structured mode"
        )


def cut(waiting: deque[Pending], most_records: int, most_bytes: int) -> list[Pending]:
    """Take the first records, so many and about so many bytes at most, but one at least."""
    some = [waiting.popleft()]
    size = some[0].size
    while waiting and len(some) < most_records and size + waiting[0].size <= most_bytes:
        some.append(waiting.popleft())
        size += some[-1].size
    return some
