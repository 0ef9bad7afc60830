"""`Message`: a produced or consumed record, in the shape of confluent-kafka's `Message`."""

from __future__ import annotations

from typing import Final

import msgspec

from cloudevents_kafka.protocol.errors import ProtocolError
from cloudevents_kafka.protocol.records import Headers, Record

_NO_TIMESTAMP: Final = (0, -1)


class Message(msgspec.Struct, frozen=True):
    """A record, its topic, partition and offset (-1 if unknown), and its delivery error."""

    record: Record
    topic_name: str
    partition_number: int
    record_offset: int
    delivery_error: ProtocolError | None = None

    def topic(self) -> str:
        """Return the topic's name."""
        return self.topic_name

    def partition(self) -> int:
        """Return the partition's number."""
        return self.partition_number

    def offset(self) -> int:
        """Return the offset in the partition, -1 if unknown."""
        return self.record_offset

    def key(self) -> bytes | None:
        """Return the key."""
        return self.record.key

    def value(self) -> bytes | None:
        """Return the value."""
        return self.record.value

    def headers(self) -> Headers | None:
        """Return the headers, None without headers."""
        return self.record.headers or None

    def timestamp(self) -> tuple[int, int]:
        """Return the type of the timestamp (0 none, 1 create time, 2 log append time) and its ms."""
        if self.record.timestamp is None:
            return _NO_TIMESTAMP
        return self.record.timestamp_type + 1, self.record.timestamp

    def error(self) -> ProtocolError | None:
        """Return why the record was not delivered, None if it was."""
        return self.delivery_error

    def __len__(self) -> int:
        """Return the length of the value; a tombstone is falsy, so compare messages with None."""
        return len(self.record.value or b"")
