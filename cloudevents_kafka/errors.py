"""The exceptions of events, records and clients.

::

    CloudEventsKafkaError
    ├── InvalidEvent (ValueError)        the values do not form a valid event
    ├── EncodeError                      an event cannot be written in this mode or format
    ├── DataError (ValueError)           the data does not match its content type
    ├── DecodeError                      a record cannot be read as an event
    │   ├── NotAnEvent                   the record is not a CloudEvent: skip it
    │   ├── BrokenEvent (InvalidEvent)   the record is a CloudEvent that breaks rules
    │   ├── BrokenData (DataError)       the record is a CloudEvent whose data cannot be decoded
    │   ├── UnsupportedFormat            the event format is not registered
    │   └── UnsupportedBatch             the record is a batch, which the Kafka binding does not allow
    ├── SigningError                     an event cannot be signed
    ├── VerificationError                an event has no valid signature of a trusted key
    ├── DeliveryError                    an event was not delivered to a broker
    │   └── DeadLetterError              a failed record was not sent to a dead letter topic
    ├── ConsumeError                     the Kafka client failed while polling
    ├── TransactionError                 the Kafka client cannot go on with transactions
    └── PipelineError                    a Spark pipeline cannot start, or has ended
        ├── PipelineFailed               Spark or Kafka failed
        ├── SparkFailed                  Spark did not start, or its Java process ended
        ├── NotOnConnect (ValueError)    a pipeline needs a Spark session in this process
        ├── InUse                        another pipeline writes to the same folder
        ├── FolderFailed                 a folder cannot be read or written
        │   └── WrongStore               a folder is in a store that cannot be used for its tables
        ├── WrongTable                   a table is missing, or cannot store the rows
        ├── WrongCheckpoint              the checkpoint and the folder do not belong together
        ├── CountMismatch                the written records differ from the records that were read
        ├── TopicChanged                 a topic is missing, or was deleted and created again
        └── ThresholdCrossed             a threshold has ended the run of a pipeline

This module defines `DecodeError` and its subclasses. The module `problems` defines `Problem`, and the
exceptions that this list names before `DecodeError`. The packages `extensions`, `clients` and
`spark.pipeline` define `SigningError` and the exceptions that this list names after it. The packages `cli`,
`clients.oauth`, `jvm`, `sdk`, `spark` and `testing` define exceptions that are not in this list. Inside the
library, `binding` and `formats` raise private subclasses of `InvalidEvent`; users receive a `BrokenEvent`
instead. The exceptions of the package `protocol` have another base class, `ProtocolError`.

An error about an invalid event lists all rules that the event breaks, each as a `Problem`. The message of an
error may contain the attributes of an event, but never the event's data, because data must not be logged
(D-07).
"""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.problems import (
    CloudEventsKafkaError,
    DataError,
    EncodeError,
    InvalidEvent,
    LeftOut,
    Problem,
    join_problems,
)
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from cloudevents_kafka.event import Event

__all__ = [
    "BrokenData",
    "BrokenEvent",
    "CloudEventsKafkaError",
    "DataError",
    "DecodeError",
    "EncodeError",
    "InvalidEvent",
    "LeftOut",
    "NotAnEvent",
    "Problem",
    "UnsupportedBatch",
    "UnsupportedFormat",
]


class DecodeError(CloudEventsKafkaError):
    """A Kafka record cannot be read as an event.

    ``record`` is the unchanged record, ``reason`` describes the broken rule and the wrong value, and ``hint``
    is advice for the user, or None. ``verdict`` is the kind of the error: ``not-an-event``, ``broken-event``,
    ``broken-data``, ``unsupported-format`` or ``batch``. ``clauses`` are the ids of the specification's
    clauses that the record breaks, without duplicates. ``problems`` lists the broken rules of a
    `BrokenEvent`, and of a `NotAnEvent` whose value lenient reading has tried to read as JSON. For any other
    error, ``problems`` is empty.

    Examples:
        >>> from cloudevents_kafka import DecodeError, Record, from_record
        >>> try:
        ...     from_record(Record(value=b"17", topic="orders", partition=2, offset=1741))
        ... except DecodeError as error:
        ...     print(error.verdict, error.record.where, error.clauses)
        not-an-event orders[2]@1741 ('K-11',)
    """

    verdict: ClassVar[str]
    clauses: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def __init__(self, reason: str, record: Record, hint: str | None = None) -> None:
        Exception.__init__(self, reason, record, hint)  # not super(): BrokenEvent has another base
        self.reason = reason
        self.record = record
        self.hint = hint

    def __str__(self) -> str:
        where = self.record.where
        return f"{where + ': ' if where else ''}{self.reason}{f'; {self.hint}' if self.hint else ''}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class NotAnEvent(DecodeError):
    """The Kafka record is not a CloudEvent (Kafka binding 3).

    Examples:
        >>> from cloudevents_kafka import NotAnEvent, Record, from_record
        >>> try:
        ...     from_record(Record(headers=[("ce-id", b"1")]))
        ... except NotAnEvent as error:
        ...     print(error.clauses, error.hint)
        ('K-11',) None
    """

    verdict = "not-an-event"
    clauses = ("K-11",)


class BrokenEvent(DecodeError, InvalidEvent):
    """The record is a CloudEvent that breaks rules; ``problems`` lists all broken rules.

    Examples:
        >>> from cloudevents_kafka import BrokenEvent, Record, from_record
        >>> headers = [("ce_specversion", b"1.0"), ("ce_id", b""), ("ce_source", b"/shop"), ("ce_type", b"")]
        >>> try:
        ...     from_record(Record(headers=headers))
        ... except BrokenEvent as error:
        ...     print([(problem.attribute, problem.clause) for problem in error.problems])
        [('id', 'R-02'), ('type', 'R-06')]
    """

    verdict = "broken-event"

    def __init__(self, problems: Sequence[Problem], record: Record, hint: str | None = None) -> None:
        DecodeError.__init__(self, "broken CloudEvent: " + join_problems(problems), record, hint)
        self.problems = tuple(problems)
        self.clauses = tuple(dict.fromkeys(problem.clause for problem in problems))

    def __str__(self) -> str:
        return DecodeError.__str__(self)


class BrokenData(DecodeError, DataError):
    """The record is a CloudEvent whose data does not match its content type or the requested type.

    ``event`` is the event with the wrong data. An `EventConsumer` with ``eager_data`` or ``data_type``
    reports a `BrokenData` error; its cause is a `DataError`.

    Examples:
        >>> from cloudevents_kafka import BrokenData, EventConsumer
        >>> events = EventConsumer(consumer, strict=True, data_type=dict[str, int])
        >>> try:
        ...     item = events.poll()
        ... except BrokenData as error:
        ...     print(error.event.id, error)
        1 orders[0]@0: broken data: the data must be a dict: Expected `int`, got `str` - at `$[...]`
    """

    verdict = "broken-data"

    event: Event

    def __init__(self, reason: str, record: Record, event: Event, hint: str | None = None) -> None:
        DecodeError.__init__(self, reason, record, hint)
        self.event = event


class UnsupportedFormat(DecodeError):
    """The record contains a structured CloudEvent, but the event format is not registered.

    Examples:
        >>> from cloudevents_kafka import Record, UnsupportedFormat, from_record
        >>> headers = [("content-type", b"application/cloudevents+xml")]
        >>> try:
        ...     from_record(Record(value=b"<event/>", headers=headers))
        ... except UnsupportedFormat as error:
        ...     print(error.media_type)
        application/cloudevents+xml
    """

    verdict = "unsupported-format"
    clauses = ("K-10",)

    def __init__(self, media_type: str, record: Record, hint: str | None = None) -> None:
        super().__init__(
            f"event format {preview(media_type)} is not supported (K-10, Kafka binding 3)", record, hint
        )
        self.media_type = media_type


class UnsupportedBatch(DecodeError):
    """The record is a batch of CloudEvents, although the Kafka binding has no batch mode.

    Examples:
        >>> from cloudevents_kafka import Record, UnsupportedBatch, from_record
        >>> headers = [("content-type", b"application/cloudevents-batch+json")]
        >>> try:
        ...     from_record(Record(value=b"[]", headers=headers))
        ... except UnsupportedBatch as error:
        ...     print(error.hint)
        split the batch before it is produced
    """

    verdict = "batch"
    clauses = ("K-01",)

    def __init__(self, media_type: str, record: Record, hint: str | None = None) -> None:
        super().__init__(
            f"{preview(media_type)} is a batch; Kafka has no batch mode (K-01, Kafka binding 1.3)",
            record,
            hint,
        )
        self.media_type = media_type
