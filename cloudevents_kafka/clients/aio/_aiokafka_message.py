"""Records and errors of aiokafka, with the methods of confluent-kafka's messages."""

from __future__ import annotations

from typing import Any, Self

from cloudevents_kafka.record import Headers, to_headers


class AiokafkaFailure:
    """An error of aiokafka with the methods of a message of confluent-kafka that is an error.

    It may be about the record at an offset of a partition; otherwise its text names the topic.
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
        """Return None: an error has no record."""

    value = headers = key

    def timestamp(self) -> tuple[int, int]:
        """Return the timestamp of confluent-kafka's messages without one."""
        return 0, -1

    def code(self) -> int | None:
        """Return the code of the protocol, None for an error of the client."""
        return getattr(self._error, "errno", None)

    def retriable(self) -> bool:
        return bool(getattr(self._error, "retriable", False))

    def fatal(self) -> bool:
        """Return False: no error of aiokafka ends the client."""
        return False

    def __str__(self) -> str:
        return repr(self._error)


class AiokafkaMessage:
    """A record of aiokafka with the methods of a ``Message``, or the place of a record that was sent.

    Its key and value are the results of the client's deserializers.
    """

    __slots__ = ("_record",)

    def __init__(self, record: Any) -> None:
        self._record = record

    def error(self) -> None:
        """Return None: aiokafka raises its errors."""

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
        """Return 1, for any type of timestamp, and the ms since the epoch; 0 if it has none."""
        milliseconds = int(self._record.timestamp)
        return (1 if milliseconds >= 0 else 0), milliseconds
