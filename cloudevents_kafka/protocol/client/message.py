"""Message: what producers report and consumers give, in the shape of confluent-kafka's."""

from __future__ import annotations

from typing import Final

import msgspec

from cloudevents_kafka.protocol.errors import ProtocolError
from cloudevents_kafka.protocol.records import Headers, Record

_NO_TIMESTAMP: Final = (0, -1)


class Message(msgspec.Struct, frozen=True):
    """A record and where it stands; offset -1 where nobody told."""

    record: Record
    in_topic: str
    in_partition: int
    at_offset: int
    failure: ProtocolError | None = None

    def topic(self) -> str:
        """Return the topic's name."""
        return self.in_topic

    def partition(self) -> int:
        """Return the partition's number."""
        return self.in_partition

    def offset(self) -> int:
        """Return the offset in the partition."""
        return self.at_offset

    def key(self) -> bytes | None:
        """Return the key."""
        return self.record.key

    def value(self) -> bytes | None:
        """Return the value."""
        return self.record.value

    def headers(self) -> Headers | None:
        """Return the headers, None where there are none."""
        return self.record.headers or None

    def timestamp(self) -> tuple[int, int]:
        """Return the kind of timestamp (0 none, 1 the producer's, 2 the broker's) and its milliseconds."""
        if self.record.timestamp is None:
            return _NO_TIMESTAMP
        return self.record.timestamp_type + 1, self.record.timestamp

    def error(self) -> ProtocolError | None:
        """Return why it was not delivered, None where it was."""
        return self.failure

    def __len__(self) -> int:
        """Return the value's length: so a tombstone is falsy; compare with None instead."""
        return len(self.record.value or b"")
