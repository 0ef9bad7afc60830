"""`DeadLetters`: sends failed records to another topic; headers state the reason of each failure.

A dead letter is a record with the key, the value and the headers of the failed record, and with these
additional headers:

| header | value |
|---|---|
| ``dlq_topic``, ``dlq_partition``, ``dlq_offset`` | where the record was read |
| ``dlq_timestamp`` | the timestamp of the record, in milliseconds since the epoch |
| ``dlq_time`` | when the record failed, in RFC 3339 |
| ``dlq_attempt`` | how often the record was tried, including the tries before an earlier dead letter |
| ``dlq_error`` | the class and the message of the error, and of a transient cause, such as a time-out |
| ``dlq_clause`` | the clauses that the record breaks, as in ``DecodeError.clauses`` |
| ``dlq_value_size`` | the size of the value in bytes, if a dead letter with this value was too large |

If a value is unknown, the dead letter does not have its header. If a dead letter itself fails, the headers of
its new dead letter replace all these headers. If the failed dead letter was read from the topic for dead
letters, the new headers still name the place of the original record. The method `DeadLetter.of` reads the
``dlq_`` headers.

aiokafka does not send a record that has neither a key nor a value. If aiokafka sends the dead letter of such
a record, the key of this dead letter is empty instead of absent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Final, Protocol

import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.clients._protocols import TOO_LARGE, code_of, size_limits
from cloudevents_kafka.clients.passing import describe_cause
from cloudevents_kafka.clients.producer import Delivery, DeliveryError, EventProducer, OnDelivery
from cloudevents_kafka.errors import DecodeError
from cloudevents_kafka.primitives.epoch import format_milliseconds
from cloudevents_kafka.primitives.preview import text_by
from cloudevents_kafka.record import Headers, Record, RecordInput

_PREFIX: Final = "dlq_"
_MAX_ERROR: Final = 1_000  # characters: the headers count towards the largest size of a record


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a dead letter's headers; an attribute is None if its header is missing or malformed.

    Examples:
        >>> from cloudevents_kafka import DeadLetter, Record
        >>> record = Record(headers=[("dlq_topic", b"orders"), ("dlq_error", b"KeyError: 'total'")])
        >>> letter = DeadLetter.of(record)
        >>> letter and (letter.topic, letter.error)
        ('orders', "KeyError: 'total'")
    """

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None
    time: str | None = None
    attempt: int | None = None
    error: str | None = None
    clause: str | None = None
    value_size: int | None = None

    @classmethod
    def of(cls, record: RecordInput) -> DeadLetter | None:
        """Return the contents of a record's ``dlq_`` headers, or None if it has no such header."""
        found = {name: value for name, value in Record.of(record).headers if name in _NAMES}
        parts = {_NAMES[name]: _read(_NAMES[name], value) for name, value in found.items()}
        return cls(**parts) if parts else None


_NAMES: Final = {f"{_PREFIX}{field}": field for field in DeadLetter.__struct_fields__}
_NUMBERS: Final = frozenset(("partition", "offset", "timestamp", "attempt", "value_size"))


def _read(field: str, value: bytes | None) -> Any:
    """Return the value of a header, or None if the value, which is untrusted, has the wrong type."""
    try:
        text = (value or b"").decode()
    except UnicodeDecodeError:
        return None
    if field in _NUMBERS:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
    return text or None


class RecordSender(Protocol):
    """A producer whose ``send_record`` is a coroutine function, such as an `AsyncEventProducer`."""

    async def send_record(self, record: RecordInput, topic: str | None = ..., /) -> Any:
        """Send a record and return its delivery."""


class DeadLetters:
    """Sends dead letters to ``topic`` through ``producer``: an `EventProducer` or `AsyncEventProducer`.

    If a dead letter is too large for the client or the broker, the dead letter is sent without its value. The
    headers of a dead letter without value say which record has failed, and how large its value was.
    ``too_large`` is a function that is called with a dead letter that is too large, and returns the record to
    send instead. For example, the function may store the value elsewhere, and return a record that says
    where. If ``too_large`` returns None, the dead letter is sent without its value.

    Examples:
        >>> from cloudevents_kafka import DeadLetters, EventConsumer, EventProducer
        >>> letters = DeadLetters(EventProducer(producer), topic="orders.dead")
        >>> item = EventConsumer(consumer).poll()
        >>> if item:
        ...     print(letters.send(item, KeyError("total"), attempt=3).result())
        Delivery(record orders[0]@0: orders.dead[0]@0)
    """

    def __init__(
        self,
        producer: EventProducer[Any] | RecordSender,
        *,
        topic: str,
        too_large: Callable[[Record], Record | None] | None = None,
    ) -> None:
        send_record = getattr(producer, "send_record", None)
        if not callable(send_record):
            kind = type(producer).__name__
            raise TypeError(
                f"producer must be an EventProducer, got {kind}; wrap the client: EventProducer(client)"
            )
        self.is_async = iscoroutinefunction(send_record)
        if not topic:
            raise ValueError(f"topic must be the name of a topic for dead letters, got {topic!r}")
        self.producer: Any = producer
        self.topic = topic
        self.too_large = too_large

    def check_plain(self) -> None:
        """Raise `TypeError` if the producer is an `AsyncEventProducer`, which a thread cannot await."""
        if self.is_async:
            raise TypeError(
                "on_failure must have an EventProducer here, got an AsyncEventProducer; "
                "make DeadLetters with an EventProducer"
            )

    def by(self, producer: EventProducer[Any]) -> DeadLetters:
        """Return a `DeadLetters` with the same options, but another producer."""
        return DeadLetters(producer, topic=self.topic, too_large=self.too_large)

    def send(
        self,
        item: Decoded | Undecodable | RecordInput,
        error: BaseException | str | None = None,
        *,
        attempt: int = 1,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery[Record]:
        """Queue the dead letter of a record, and return its delivery without waiting for the report.

        ``error`` is the reason of the failure; by default, it is the error of the `Undecodable`. A header of
        the dead letter contains up to 1,000 characters of the error's message. ``attempt`` is how often the
        record was tried; if the failed record is itself a dead letter, its earlier tries are added. Commit
        the offset of the failed record only after its dead letter is delivered. If the client accepts the
        dead letter, but the dead letter is too large for the broker, the delivery fails.
        """
        if self.is_async:
            raise TypeError(
                "producer must be an EventProducer to send a dead letter without waiting, got an "
                "AsyncEventProducer; await its send_record(dead_letter(…))"
            )
        letter = dead_letter(item, error, topic=self.topic, attempt=attempt)
        send = partial(self.producer.send_record, topic=self.topic, on_delivery=on_delivery)
        return self.send_any(letter, send)

    def send_any(self, letter: Record, send: Callable[[Record], Delivery[Record]]) -> Delivery[Record]:
        """Send a dead letter, or a shorter record if the dead letter is too large; return its delivery."""
        try:
            return send(letter)
        except DeliveryError as failure:
            shorter = self._shorten(letter, failure)
        return send(shorter)

    async def send_awaited(self, letter: Record) -> None:
        """Send a dead letter with an `AsyncEventProducer`, and wait for the delivery; see `send_any`."""
        try:
            await self._send_awaited(letter)
        except DeliveryError as failure:
            shorter = self._shorten(letter, failure)
        else:
            return
        await self._send_awaited(shorter)

    async def _send_awaited(self, letter: Record) -> None:
        if letter.key is None and letter.value is None and getattr(self.producer, "is_aiokafka", False):
            # aiokafka refuses such a record. An empty key does not change the event, as a value would.
            letter = msgspec.structs.replace(letter, key=b"")
        await self.producer.send_record(letter, self.topic)

    def _shorten(self, letter: Record, failure: DeliveryError) -> Record:
        """Return the record to send if the dead letter is too large; raise any other failure."""
        shorter = self.too_large(letter) if self.too_large and _is_too_large(failure) else None
        if not _is_too_large(failure) or (shorter is None and not letter.value):
            raise failure
        return without_value(letter) if shorter is None else shorter


def dead_letter(
    item: Decoded | Undecodable | RecordInput,
    error: BaseException | str | None = None,
    *,
    topic: str,
    attempt: int = 1,
) -> Record:
    """Return the record that `DeadLetters.send` would send, so that another producer can send it.

    For example, an `AsyncEventProducer` may send the returned record. ``topic`` is the topic of the dead
    letters. If a dead letter was read from this topic and fails again, the headers of its new dead letter
    still name the topic of the original record.

    Examples:
        >>> from cloudevents_kafka import DeadLetter, Record, dead_letter
        >>> record = Record(value=b"17", topic="orders", partition=2, offset=1741)
        >>> letter = DeadLetter.of(dead_letter(record, "no such customer", topic="orders.dead"))
        >>> letter and (letter.topic, letter.offset, letter.error)
        ('orders', 1741, 'no such customer')
    """
    if error is None:
        if not isinstance(item, Undecodable):
            raise TypeError("error must be the reason of the failure, got None; pass an error or a text")
        error = item.error
    record = item.record if isinstance(item, Decoded | Undecodable) else Record.of(item)
    before = DeadLetter.of(record)
    origin = record if before is None or record.topic != topic else before
    letter = DeadLetter(
        topic=origin.topic,
        partition=origin.partition,
        offset=origin.offset,
        timestamp=origin.timestamp,
        time=format_milliseconds(time.time_ns() // 1_000_000),
        attempt=attempt + (0 if before is None else before.attempt or 0),
        error=_describe(error)[:_MAX_ERROR],
        clause=",".join(error.clauses) if isinstance(error, DecodeError) else None,
        value_size=before.value_size if before is not None and record.value is None else None,
    )
    kept: Headers = [header for header in record.headers if header[0] not in _NAMES]
    return msgspec.structs.replace(record, headers=kept + _to_headers(letter))


def without_value(letter: Record) -> Record:
    """Return a dead letter without its value, and with a header that states the size of the value."""
    size = (f"{_PREFIX}value_size", str(len(letter.value or b"")).encode())
    headers = [header for header in letter.headers if header[0] != size[0]]
    return msgspec.structs.replace(letter, value=None, headers=[*headers, size])


def deliver(letters: DeadLetters, item: Decoded | Undecodable, error: Exception, *, attempt: int) -> None:
    """Send the dead letter of a record that was read, and wait for its delivery.

    Raises `DeadLetterError` if the dead letter cannot be sent, or if the failed record was read from the
    topic for dead letters. A consumer of this topic would read its own dead letter, fail, and send the dead
    letter again, in an endless loop.
    """
    with _failures_named(letters, item, error, attempt) as letter:
        letters.check_plain()
        letters.send_any(letter, partial(_send, letters))


async def deliver_awaited(
    letters: DeadLetters, item: Decoded | Undecodable, error: Exception, *, attempt: int
) -> None:
    """Send a dead letter with an `AsyncEventProducer`, and wait for the delivery, as in `deliver`."""
    with _failures_named(letters, item, error, attempt) as letter:
        await letters.send_awaited(letter)


@contextmanager
def _failures_named(
    letters: DeadLetters, item: Decoded | Undecodable, error: Exception, attempt: int
) -> Iterator[Record]:
    """Yield the dead letter of a record; if sending it in the block fails, raise `DeadLetterError`."""
    if item.record.topic == letters.topic:
        reason = f"the consumer reads {letters.topic}, too; exclude this topic from the subscription"
        raise DeadLetterError(reason, item.record, error)
    letter = dead_letter(item, error, topic=letters.topic, attempt=attempt)
    try:
        yield letter
    except Exception as failure:  # noqa: BLE001  # it is raised below
        failed = failure.failed if isinstance(failure, DeliveryError) else ()
        reason = f"it was not delivered to {letters.topic}: {_client_error(failure)}"
        if _is_too_large(failure):
            sent = failed[0].record if failed else letter
            reason += f"; {size_limits(sent.wire_size())}, and start again"
        raise DeadLetterError(reason, item.record, error, failed) from failure.__cause__ or failure


def _send(letters: DeadLetters, letter: Record) -> Delivery[Record]:
    """Send a dead letter, wait until it has arrived, and return its delivery."""
    delivery: Delivery[Record] = letters.producer.send_record(letter, letters.topic).result()
    return delivery


def _is_too_large(failure: Exception) -> bool:
    return code_of(_client_error(failure)) == TOO_LARGE


def _client_error(failure: Exception) -> object:
    """Return the client's error that has caused a failed send, or the failure if the client has no error."""
    if isinstance(failure, DeliveryError) and failure.failed:
        return failure.failed[0]._client_error or failure  # noqa: SLF001  # None while it is pending
    return failure.args[0] if failure.args and hasattr(failure.args[0], "code") else failure


class DeadLetterError(DeliveryError):
    """A dead letter was not sent, so `EventConsumer.run` ends; the failed record is not committed.

    ``record`` is the failed record, ``error`` is the error of its handler, and ``__cause__`` is the error of
    the producer.

    Examples:
        >>> from cloudevents_kafka import DeadLetterError, DeadLetters, EventConsumer, EventProducer
        >>> letters = DeadLetters(EventProducer(producer), topic="orders.dead")
        >>> producer.fail_next("_MSG_TIMED_OUT")
        >>> try:
        ...     EventConsumer(consumer).run(lambda item: item.event.data["customer"], on_failure=letters)
        ... except DeadLetterError as error:
        ...     print(error.record.where, repr(error.error))
        orders[0]@0 KeyError('customer')
    """

    def __init__(
        self, reason: str, record: Record, error: Exception, failed: Sequence[Delivery[Any]] = ()
    ) -> None:
        super().__init__(reason, failed)
        self.args = reason, record, error
        self.record = record
        self.error = error

    def __str__(self) -> str:
        failure = _describe(self.error)
        return f"{self.record.where}: no dead letter: {self.args[0]}; the record failed with {failure}"


def _describe(error: BaseException | str) -> str:
    if isinstance(error, str):
        return error
    # The offset of a record is in another header.
    reason = error.reason if isinstance(error, DecodeError) else text_by(str, error)
    name, cause = type(error).__name__, describe_cause(error)
    return (f"{name}: {reason}" if reason else name) + (f"; from {cause}" if cause else "")


def _to_headers(letter: DeadLetter) -> Headers:
    texts = {field: getattr(letter, field) for field in letter.__struct_fields__}
    return [
        (f"{_PREFIX}{field}", str(value).encode("utf-8", "backslashreplace"))
        for field, value in texts.items()
        if value not in (None, "")
    ]
