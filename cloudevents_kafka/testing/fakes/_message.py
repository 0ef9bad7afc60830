"""`FakeMessage`: a message with the methods of confluent-kafka's messages; confluent-kafka is not needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

# confluent_kafka.TIMESTAMP_NOT_AVAILABLE, _CREATE_TIME
TIMESTAMP_NOT_AVAILABLE, TIMESTAMP_CREATE_TIME = 0, 1


class FakeMessage:
    """A fake of `confluent_kafka.Message`, which a `FakeConsumer` can read.

    A text becomes UTF-8 bytes, and empty headers become None, as in a real message. ``timestamp`` is in
    milliseconds since the epoch, or None for a message without a timestamp. The name of a header may contain
    surrogate escapes, which stand for bytes that are not UTF-8; for such a name, the method ``headers``
    raises an error.

    Examples:
        >>> from cloudevents_kafka import Record
        >>> from cloudevents_kafka.testing import FakeMessage
        >>> Record.of(FakeMessage("orders", value="17", headers={"trace": b"1"}, offset=7))
        Record(key=None, value=<2 bytes>, headers=[('trace', b'1')], where='orders[0]@7')
    """

    def __init__(
        self,
        topic: str | None = None,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        headers: object = None,
        *,
        partition: int | None = 0,
        offset: int | None = None,
        timestamp: int | None = None,
        error: KafkaError | None = None,
    ) -> None:
        self._topic = topic
        self._value = to_bytes(value)
        self._key = to_bytes(key)
        self._headers = to_headers(headers)
        self._partition = partition
        self._offset = offset
        self._timestamp = timestamp
        self._error = error

    def topic(self) -> str | None:
        """Return the topic."""
        return self._topic

    def partition(self) -> int | None:
        """Return the partition."""
        return self._partition

    def offset(self) -> int | None:
        """Return the offset of the message, or None before its delivery."""
        return self._offset

    def key(self) -> bytes | None:
        """Return the key."""
        return self._key

    def value(self) -> bytes | None:
        """Return the value of the message or, if the message is an error, the text of the error."""
        return self._value

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        """Return the headers of the message in a new list, or None if the message has no headers.

        Raises `SystemError`, as the real client does, if a header's name contains surrogate escapes, which
        stand for bytes that are not UTF-8.
        """
        try:
            for name, _ in self._headers or ():
                name.encode("utf-8", "surrogateescape").decode()
        except UnicodeDecodeError as error:
            raise SystemError("the method headers returned a result with an exception set") from error
        return None if self._headers is None else list(self._headers)

    def timestamp(self) -> tuple[int, int]:
        """Return the timestamp's type and its milliseconds since the epoch; (0, -1) without a timestamp."""
        if self._timestamp is None:
            return TIMESTAMP_NOT_AVAILABLE, -1
        return TIMESTAMP_CREATE_TIME, self._timestamp

    def error(self) -> KafkaError | None:
        """Return the error of the message, or None if the message is a record."""
        return self._error

    def latency(self) -> float | None:
        """Return None, because the latency of the message is unknown."""
        return None

    def leader_epoch(self) -> int | None:
        """Return the leader epoch, which is always 0."""
        return 0

    def set_key(self, key: bytes | str | None) -> None:
        """Replace the key."""
        self._key = to_bytes(key)

    def set_value(self, value: bytes | str | None) -> None:
        """Replace the value."""
        self._value = to_bytes(value)

    def set_headers(self, headers: object) -> None:
        """Replace the headers."""
        self._headers = to_headers(headers)

    def __len__(self) -> int:
        """Return the length of the value, or 0 without a value: a message without a value is falsy."""
        return len(self._value or b"")

    def __repr__(self) -> str:
        where = f"{self._topic}[{self._partition}]@{self._offset}"
        return f"FakeMessage({where} key={self._key!r} value={self._value!r})"


def to_bytes(value: Any) -> bytes | None:
    """Return a key or value as bytes; raise `TypeError` if the real client refuses the type of the object."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        raise TypeError(f"argument 2 must be read-only bytes-like object, not {type(value).__name__}")
    raise TypeError(f"a bytes-like object is required, not '{type(value).__name__}'")


def to_headers(headers: Any) -> list[tuple[str, bytes | None]] | None:
    """Return headers as a consumer reads them; raise `TypeError` if the real client refuses their type.

    As in the real client, a header name in bytes becomes its ``repr``, and a header name ends before its
    first NUL character.
    """
    if headers is None:
        return None
    if isinstance(headers, Mapping):
        pairs: Sequence[Any] = list(headers.items())
    elif isinstance(headers, list):
        pairs = headers
    else:
        raise TypeError(
            f"expected headers to be dict or list of (key, value) tuples, not {type(headers).__name__}"
        )
    return [_to_header(pair) for pair in pairs] or None


def _to_header(pair: Any) -> tuple[str, bytes | None]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError("Headers are expected to be a list of (key, value) tuples")
    name, value = pair
    if not isinstance(value, bytes | str | None):
        kind = type(value).__name__
        raise TypeError(f"expected header value to be None, binary, or unicode string, not {kind}")
    return str(name).partition("\0")[0], to_bytes(value)
