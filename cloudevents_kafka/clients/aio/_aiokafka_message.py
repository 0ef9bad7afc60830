"""aiokafka's records and errors, wrapped in objects with the methods of confluent-kafka's messages."""

from __future__ import annotations

from typing import Any, Self

from cloudevents_kafka.record import Headers, to_headers


class AiokafkaFailure:
    """An error of aiokafka that has the methods of a message of confluent-kafka.

    If the error is about one record, the topic, the partition and the offset are known. If the error is not
    about one record, the error's text names the topic.
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
        """Return None, because an error contains no record."""

    value = headers = key

    def timestamp(self) -> tuple[int, int]:
        """Return the value that confluent-kafka returns for a message without a timestamp."""
        return 0, -1

    def code(self) -> int | None:
        """Return the error code of the Kafka protocol, or None for an error of the client itself."""
        return getattr(self._error, "errno", None)

    def retriable(self) -> bool:
        return bool(getattr(self._error, "retriable", False))

    def fatal(self) -> bool:
        """Return False, because no error of aiokafka ends the client."""
        return False

    def __str__(self) -> str:
        return repr(self._error)


class AiokafkaMessage:
    """An aiokafka record, or the metadata of a sent record, with the methods of a confluent-kafka message.

    The key and the value are the results of the client's deserializers.
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
        """Return a type and the milliseconds since the epoch; the type is 0 without a timestamp, else 1."""
        milliseconds = int(self._record.timestamp)
        return (1 if milliseconds >= 0 else 0), milliseconds
