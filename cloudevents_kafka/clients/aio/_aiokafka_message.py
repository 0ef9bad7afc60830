"""`AiokafkaMessage`: wraps records and errors of aiokafka in objects with confluent-kafka's methods."""

from __future__ import annotations

from typing import Any, Self

from cloudevents_kafka.record import Headers, to_headers


class AiokafkaFailure:
    """An error of aiokafka, wrapped in an object that has the methods of a confluent-kafka message.

    If the error is about one record, the message has the topic, the partition and the offset of the record.
    If the error is not about one record, the error's text names the topic.
    """

    def __init__(self, error: Any, place: Any = None, offset: int | None = None) -> None:
        self._error = error
        self._place = place
        self._offset = offset

    def error(self) -> Self:
        return self

    def topic(self) -> str | None:
        return None if self._place is None else str(self._place.topic)

    def partition(self) -> int | None:
        return None if self._place is None else int(self._place.partition)

    def offset(self) -> int | None:
        return self._offset

    def key(self) -> None:
        """Return None: a message about an error contains no record."""

    value = headers = key

    def timestamp(self) -> tuple[int, int]:
        """Return the pair that confluent-kafka returns for a message without a timestamp."""
        return 0, -1

    def code(self) -> int | None:
        """Return the error code of the Kafka protocol, or None for an error of the client itself."""
        return getattr(self._error, "errno", None)

    def retriable(self) -> bool:
        return bool(getattr(self._error, "retriable", False))

    def fatal(self) -> bool:
        """Return False: after any error of aiokafka, the client can still be used."""
        return False

    def __str__(self) -> str:
        return repr(self._error)


class AiokafkaMessage:
    """An aiokafka record, or the metadata of a sent record, with the methods of a confluent-kafka message.

    The methods ``key`` and ``value`` return what the client's deserializers return.
    """

    __slots__ = ("_record",)

    def __init__(self, record: Any) -> None:
        self._record = record

    def error(self) -> None:
        """Return None, because aiokafka raises its errors instead of returning messages."""

    def topic(self) -> str:
        return str(self._record.topic)

    def partition(self) -> int:
        return int(self._record.partition)

    def offset(self) -> int:
        return int(self._record.offset)

    def key(self) -> Any:
        return self._record.key

    def value(self) -> Any:
        return self._record.value

    def headers(self) -> Headers:
        return to_headers(self._record.headers)

    def timestamp(self) -> tuple[int, int]:
        """Return the type of the timestamp (0 for no timestamp) and its milliseconds since the epoch."""
        milliseconds = int(self._record.timestamp)
        return (1 if milliseconds >= 0 else 0), milliseconds
