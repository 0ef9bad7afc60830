"""Record: what Kafka carries, and the one currency between the rooms.

None and ``b""`` are different things in a key, a value and a header: null is
"no value" (a tombstone, where the value is null), ``b""`` is a value of no bytes.
Headers are ordered, names may repeat, values may be null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import force_setattr

Headers = list[tuple[str, bytes | None]]
"""Header names and values in wire order; the same type that confluent-kafka takes."""

HeaderInput = Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]] | None
"""What users and clients hand in as headers; text values become UTF-8."""


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Kafka record: key, value and headers as bytes, and where it stood if known.

    ``timestamp`` is in milliseconds since the epoch. A record is truthy always;
    ask ``record.value is None`` for a tombstone. A key and a value that are bytes-like, as
    PySpark's bytearrays are, become bytes, so that nobody can change them afterwards; text
    becomes UTF-8, and anything else is a `TypeError`. Values of headers become that where
    they are read: to look at each of them here would take longer than all the rest.
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = []
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None

    def __post_init__(self) -> None:
        """Make bytes of a key and a value that are none yet."""
        if type(self.value) is not bytes and self.value is not None:
            force_setattr(self, "value", to_bytes(self.value))
        if type(self.key) is not bytes and self.key is not None:
            force_setattr(self, "key", to_bytes(self.key))

    def __repr__(self) -> str:
        """Show all but the value's bytes, which may not be for logs."""
        size = "None" if self.value is None else f"<{len(self.value)} bytes>"
        where = f", where={self.where!r}" if self.where else ""
        return f"Record(key={self.key!r}, value={size}, headers={self.headers!r}{where})"

    @property
    def where(self) -> str:
        """Where the record stood, as ``topic[partition]@offset``; empty if unknown."""
        if self.topic is None:
            return ""
        partition = "" if self.partition is None else f"[{self.partition}]"
        offset = "" if self.offset is None else f"@{self.offset}"
        return f"{self.topic}{partition}{offset}"

    @classmethod
    def of(cls, source: Any) -> Record:
        """Make a record from a client's by its shape, never by its type.

        Takes a confluent-kafka ``Message`` (methods), an aiokafka, kafka-python or
        `protocol` record (attributes), a Spark ``Row``, a mapping, or a `Record`.
        Raises `TypeError` for anything else, also for the None of a poll that brought nothing,
        and `ValueError` for a client's message that is an error instead of a record.
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, Mapping):
            return _of_fields(source.get)
        if hasattr(source, "asDict"):  # a Spark Row: its `offset` could be a tuple's, so fields only
            return _of_fields(source.asDict().get)
        if callable(getattr(source, "value", None)):
            return _of_message(source)
        if hasattr(source, "value") and hasattr(source, "headers"):
            return _of_fields(lambda name: getattr(source, name, None))
        raise TypeError(
            f"a Kafka record must have value() or value and headers, got {type(source).__name__}"
            + ("; skip a poll that brought nothing" if source is None else "")
        )


def to_headers(headers: HeaderInput) -> Headers:
    """Make one fresh list of (name, bytes or None) from any shape clients use."""
    if not headers:
        return []
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name, to_bytes(value)) for name, value in pairs]


def with_bytes_headers(record: Record) -> Record:
    """Return a record whose headers' values are bytes or None: itself, where they are."""
    if all(type(value) is bytes or value is None for _, value in record.headers):
        return record
    return msgspec.structs.replace(record, headers=to_headers(record.headers))


def _of_message(message: Any) -> Record:
    error = message.error() if callable(getattr(message, "error", None)) else None
    if error is not None:
        raise ValueError(f"a message must be a record, got an error: {error}; check message.error() first")
    kind, timestamp = message.timestamp()
    return Record(
        key=to_bytes(message.key()),
        value=to_bytes(message.value()),
        headers=to_headers(message.headers()),
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp=timestamp if kind else None,  # kind 0: the broker told none
    )


def _of_fields(get: Any) -> Record:
    return Record(
        key=to_bytes(get("key")),
        value=to_bytes(get("value")),
        headers=to_headers(get("headers")),
        topic=get("topic"),
        partition=get("partition"),
        offset=get("offset"),
        timestamp=_as_milliseconds(get("timestamp")),
    )


def to_bytes(value: Any) -> bytes | None:
    """Make bytes of what may stand for a key, a value or a header's value; text becomes UTF-8.

    `TypeError` for anything else but None, `ValueError` for text that UTF-8 does not have.
    """
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        return _utf8(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"Kafka keys, values and header values are bytes or None, not {type(value).__name__}")


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:  # whose text has a character of what was given
        raise ValueError(
            f"a key, a value or a header's value must be bytes, or text that UTF-8 has, "
            f"got one where character {error.start} does not fit ({error.reason})"
        ) from None


def _as_milliseconds(timestamp: Any) -> int | None:
    if isinstance(timestamp, datetime):
        return round(timestamp.timestamp() * 1000)
    return None if timestamp is None else int(timestamp)
