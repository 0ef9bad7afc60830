"""`Record`: a Kafka record, which all packages of this library use.

In keys, values and headers, None and ``b""`` differ: None is Kafka's null (a record with a null value is a
tombstone), and ``b""`` is an empty value. Headers are ordered; a header name may occur more than once, and
header values may be null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec.structs import force_setattr

from cloudevents_kafka.message_headers import UnreadHeaders, headers_of
from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.primitives.plural import pluralize, with_article
from cloudevents_kafka.primitives.preview import preview

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_HEADER_TYPES: Final = frozenset((bytes, NoneType))
_PAIRS: Final = "headers must be a list of pairs of a name and a value"
_BATCH_HEADER: Final = 61  # bytes before the records of a batch, in message format 2
_FIXED_FIELDS: Final = 3  # attributes, and the deltas of timestamp and offset, which are 0 here
_value_of: Final[Callable[[tuple[str, Any]], Any]] = itemgetter(1)

Headers = list[tuple[str, bytes | None]]
"""Header names and values in the order of the record, as in confluent-kafka."""

HeaderInput = Mapping[str, str | bytes | None] | Iterable[tuple[str, str | bytes | None]] | None
"""Headers as users and clients pass them; values that are texts are encoded as UTF-8."""


class ClientMessage(Protocol):
    """A client's message, or a `Record`; ``value`` and ``headers`` may be attributes or methods."""

    @property
    def value(self) -> Any:
        """The value, or a method that returns the value."""

    @property
    def headers(self) -> Any:
        """The headers, or a method that returns the headers."""


RecordInput = ClientMessage | Mapping[str, Any]
"""A record or message of any client that `Record.of` accepts."""


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Kafka record: the key, value and headers as bytes, and the topic, partition and offset if known.

    ``timestamp`` is in milliseconds since the epoch. ``bool(record)`` is always True: use ``record.value is
    None`` to find a tombstone. A bytes-like key or value, such as PySpark's bytearray, is copied as bytes,
    and text is encoded as UTF-8. Keys and values of other types raise `TypeError`; headers that are not
    pairs, such as a mapping, also raise `TypeError`. Header values are converted when an event is read from
    the record.

    Examples:
        >>> from cloudevents_kafka import Record
        >>> record = Record(key="customer-4", value=b"17", topic="orders", partition=0, offset=7)
        >>> record.key, record.where, record.next_offset
        (b'customer-4', 'orders[0]@7', 8)
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = []
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None

    def __post_init__(self) -> None:
        """Convert the key and the value to bytes, and check that headers are pairs."""
        if type(self.value) is not bytes and self.value is not None:
            force_setattr(self, "value", to_bytes(self.value))
        if type(self.key) is not bytes and self.key is not None:
            force_setattr(self, "key", to_bytes(self.key, "key"))
        headers = self.headers
        if type(headers) is not list and type(headers) is not UnreadHeaders:
            headers = _as_pairs(headers)
            force_setattr(self, "headers", headers)
        try:
            for _, value in headers:  # a client's pairs are not converted
                if type(value) is not bytes and value is not None:  # also for the header "ab"
                    _as_pairs(headers)
                    break
        except (TypeError, ValueError):
            _as_pairs(headers)
            raise

    def __repr__(self) -> str:
        """Return a text without the timestamp, and without the value's bytes, which may be confidential."""
        size = "None" if self.value is None else f"<{pluralize(len(self.value), 'byte')}>"
        where = f", where={self.where!r}" if self.where else ""
        return f"Record(key={self.key!r}, value={size}, headers={self.headers!r}{where})"

    @property
    def where(self) -> str:
        """The position as ``topic[partition]@offset``, or an empty text if the position is unknown."""
        if self.topic is None:
            return ""
        partition = "" if self.partition is None else f"[{self.partition}]"
        offset = "" if self.offset is None else f"@{self.offset}"
        return f"{self.topic}{partition}{offset}"

    @property
    def next_offset(self) -> int:
        """The offset after this record; a consumer group commits this offset after processing the record.

        Raises `ValueError` if the record has no offset because the record was not read from a topic.
        """
        if self.offset is None:
            raise ValueError("a record must have an offset to be committed, got a record that was not read")
        return self.offset + 1

    @property
    def position(self) -> TopicPartition:
        """The position after this record, as an argument for ``commit(offsets=[…])`` and ``store_offsets``.

        Raises `ValueError` if the record has no topic, partition or offset.
        """
        if self.topic is None or self.partition is None:
            raise ValueError(f"a record must have a topic and a partition to be committed, got {self!r}")
        from confluent_kafka import TopicPartition  # imported only here: other clients do not need it

        return TopicPartition(self.topic, self.partition, self.next_offset)

    @classmethod
    def of(cls, source: RecordInput) -> Record:
        """Return the record of a client's message; the message's attributes and methods identify the client.

        Accepts objects with methods (confluent-kafka's ``Message``) or attributes (records of aiokafka,
        kafka-python and `protocol`), a Spark ``Row``, a dictionary, or a `Record`. Raises `TypeError` for
        other objects, such as the None that an empty poll returns, and `ValueError` if the message contains
        an error instead of a record.

        Examples:
            >>> message = consumer.poll()
            >>> Record.of(message).where
            'orders[0]@0'
        """
        if isinstance(source, cls):
            return source
        if not isinstance(source, Mapping) and callable(getattr(source, "value", None)):
            return _of_message(source)
        get = _getter_of(source)
        return cls(
            key=get("key"),
            value=get("value"),
            headers=to_headers(get("headers")),
            topic=get("topic"),
            partition=get("partition"),
            offset=get("offset"),
            timestamp=_to_milliseconds(get("timestamp")),
        )

    def wire_size(self) -> int:
        """Return the size in bytes of an uncompressed Kafka 0.11 batch that contains only this record.

        The size includes the key, the value, the headers, and the fields that Kafka adds to each record. The
        complete produce request is only a few bytes larger.

        Examples:
            >>> from cloudevents_kafka import Event, to_record
            >>> to_record(Event(id="1", source="/shop", type="order.placed", data=b"9.50")).wire_size()
            137
        """
        size = _FIXED_FIELDS + _field(self.key) + _field(self.value) + zigzag.size(len(self.headers))
        for name, value in self.headers:
            size += _field(name.encode("utf-8", "surrogatepass")) + _field(value)
        return _BATCH_HEADER + zigzag.size(size) + size


_new_record: Final[Callable[[], Record]] = Record().__copy__  # type: ignore[attr-defined]  # not in its stub


def checked_record(
    key: bytes | None, value: bytes | None, headers: Headers, topic: str | None = None
) -> Record:
    """Return a record whose parts are known to have the right types, in half of the time of `Record`."""
    record = _new_record()
    force_setattr(record, "value", value)
    force_setattr(record, "headers", headers)
    if key is not None:
        force_setattr(record, "key", key)
    if topic is not None:
        force_setattr(record, "topic", topic)
    return record


def _of_message(message: Any) -> Record:
    error = message.error() if callable(getattr(message, "error", None)) else None
    if error is not None:
        raise ValueError(f"a message must be a record, got an error: {error}; check message.error() first")
    kind, timestamp = message.timestamp()
    return Record(
        key=message.key(),
        value=message.value(),
        headers=to_headers(headers_of(message)),
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp=timestamp if kind else None,  # kind 0: not available
    )


def _getter_of(source: Any) -> Callable[[str], Any]:
    """Return a function that returns a field of the record ``source`` by its name, such as ``topic``."""
    if isinstance(source, Mapping):
        return source.get
    if hasattr(source, "asDict"):  # a Spark Row is a tuple, and has attributes other than its fields
        return _getter_of(source.asDict())
    if hasattr(source, "value") and hasattr(source, "headers"):
        return lambda name: getattr(source, name, None)
    raise TypeError(
        "a Kafka record must have a method value() or the attributes value and headers, "
        f"got {type(source).__name__}" + ("; skip an empty poll" if source is None else "")
    )


def to_headers(headers: HeaderInput) -> Headers:
    """Return a new list of (name, bytes or None) pairs from the headers of any client."""
    if not headers:
        return headers if type(headers) is UnreadHeaders else []
    pairs: Any = headers
    try:
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
        return [(name, value if type(value) is bytes else to_bytes(value)) for name, value in pairs]
    except (TypeError, ValueError):
        for name, value in _as_pairs(pairs):  # raises an error that names the wrong header
            to_bytes(value, f"header {preview(name)}")
        raise


def _as_pairs(headers: Any) -> list[Any]:
    """Return headers as a list. Raise `TypeError` unless each header is a tuple or a list of two values."""
    if isinstance(headers, Mapping | str | bytes) or not isinstance(headers, Iterable):
        got = "None" if headers is None else with_article(type(headers).__name__)
        advice = "list(headers.items())" if isinstance(headers, Mapping) else "[] if there are none"
        raise TypeError(f"{_PAIRS}, got {got}; pass {advice}")
    pairs = list(headers)
    for number, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list):
            raise _not_a_pair(number, with_article(type(pair).__name__))
        if len(pair) != 2:
            raise _not_a_pair(number, f"{with_article(type(pair).__name__)} of {len(pair)}")
    return pairs


def _not_a_pair(number: int, got: str) -> TypeError:
    return TypeError(f"{_PAIRS}, got {got} at index {number}; pass it as (name, value)")


def with_bytes_headers(record: Record) -> Record:
    """Return a record whose header values are bytes or None; return the same record if nothing changes."""
    if _HEADER_TYPES.issuperset(map(type, map(_value_of, record.headers))):
        return record
    return msgspec.structs.replace(record, headers=to_headers(record.headers))


def to_bytes(value: Any, what: str = "value") -> bytes | None:
    """Return a key, a value or a header value as bytes or None; text is encoded as UTF-8.

    ``what`` names the value in error messages. Raises `TypeError` for other types, and `ValueError` if a text
    contains a lone surrogate.
    """
    if value is None or type(value) is bytes:
        return value
    if not isinstance(value, str):
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        advice = "json.dumps(…)" if isinstance(value, dict | list) else "str(…)"
        got = with_article(type(value).__name__)
        raise TypeError(f"{what} must be a str, bytes or None, got {got}; pass {advice}")
    try:
        return value.encode()
    except UnicodeEncodeError as error:  # the message of this error quotes a character of the data
        raise ValueError(
            f"{what} must be bytes or text in UTF-8, "
            f"but character {error.start} cannot be encoded ({error.reason})"
        ) from None


def _to_milliseconds(timestamp: Any) -> int | None:
    if isinstance(timestamp, datetime):
        return round(timestamp.timestamp() * 1000)
    return None if timestamp is None else int(timestamp)


def _field(content: bytes | None) -> int:
    """Return the size of an encoded field: its length prefix (-1 for null) and the bytes of its value."""
    return 1 if content is None else zigzag.size(len(content)) + len(content)
