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
    │   └── UnsupportedBatch             the record is a batch, which Kafka does not have
    ├── SigningError                     an event cannot be signed
    ├── VerificationError                an event has no valid signature of a trusted key
    ├── DeliveryError                    an event was not delivered to a broker
    │   └── DeadLetterError              a record that failed was not set aside
    ├── ConsumeError                     the Kafka client failed while polling
    ├── TransactionError                 the Kafka client cannot go on with transactions
    └── PipelineError                    a pipeline of Spark cannot start, or ended
        ├── PipelineFailed               Spark or Kafka failed
        ├── SparkFailed                  Spark did not start, or its Java process ended
        ├── NotOnConnect (ValueError)    a pipeline needs a Spark session in this process
        ├── InUse                        another pipeline writes to the same folder
        ├── FolderFailed                 a folder cannot be read or written
        │   └── WrongStore               the store of a folder does not suit the kind of its tables
        ├── WrongTable                   a table is missing, or cannot take the rows
        ├── WrongCheckpoint              the checkpoint and the folder do not belong together
        ├── CountMismatch                the written records are not the read ones
        ├── TopicChanged                 a topic is missing, or was deleted and created again
        └── ThresholdCrossed             a threshold has ended the run of a pipeline

`SigningError` and those after it are defined in `extensions`, `clients` and `spark.pipeline`, which raise
them. `cli`, `jvm`, `oauth`, `sdk`, `spark` and `testing` define further ones; `binding` and
`formats` raise private kinds of `InvalidEvent`, which users see as `BrokenEvent`.
The exceptions of `protocol` have another root, `ProtocolError`.

An error lists all rules that an event breaks, each as a `Problem`. No message
contains event data: attributes may be logged, data may not (D-07).
"""

from __future__ import annotations

import copyreg
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from cloudevents_kafka.primitives.clauses import sections
from cloudevents_kafka.primitives.preview import preview, preview_name
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from cloudevents_kafka.event import Event

_MAX_PROBLEMS: Final = 20  # in a message; ``problems`` has all of them


class Problem(msgspec.Struct, frozen=True):
    """One broken rule.

    ``attribute`` is the name of an attribute or header, ``"data"``, or None for the
    whole record; ``rule`` is what the specification demands; ``clause`` is the id of the
    requirement; ``value`` is a preview of the wrong value, or None; ``hint`` is what to pass to an
    `Event` instead, or None. What lenient reading leaves out is a `LeftOut`, whose ``value`` is whole.

    Examples:
        >>> from cloudevents_kafka import Problem
        >>> problem = Problem("id", "must not be empty", "R-02", "''")
        >>> print(problem)
        id: must not be empty, got '' (R-02, core: id)
    """

    attribute: str | None
    rule: str
    clause: str
    value: str | bytes | None = None
    hint: str | None = None

    def __str__(self) -> str:
        name = "" if self.attribute is None else f"{preview_name(self.attribute)}: "
        got = "" if self.seen is None else f", got {self.seen}"
        hint = "" if self.hint is None else f"; {self.hint}"
        return f"{name}{self.rule}{got}{hint} ({self.clause}, {self.section})"

    @property
    def seen(self) -> str | None:
        """The value as messages show it: escaped and cut."""
        return self.value if self.value is None or isinstance(self.value, str) else preview(self.value)

    @property
    def section(self) -> str:
        """The document and section of the clause.

        Examples:
            >>> from cloudevents_kafka import Problem
            >>> Problem("id", "must not be empty", "R-02").section
            'core: id'
        """
        return sections()[self.clause]


class LeftOut(Problem, frozen=True):
    """What lenient reading leaves out of an event: an attribute, a header or a member.

    ``attribute`` is its name as it was received, and ``value`` its whole value: a text, which is the JSON of
    a number, an object or a list; bytes if they are not UTF-8; None if the record has no value for it.

    Examples:
        >>> from cloudevents_kafka import Record, decode
        >>> from cloudevents_kafka.errors import LeftOut
        >>> value = b'{"specversion":"1.0","id":"1","source":"/shop","type":"t","time":"2023-01-25T19:07GMT"}'
        >>> item = decode(Record(value=value), lenient=True)
        >>> [(one.attribute, one.value) for one in item.tolerated if isinstance(one, LeftOut)]
        [('time', '2023-01-25T19:07GMT')]
    """

    @property
    def seen(self) -> str | None:
        """The value as messages show it: escaped and cut."""
        return None if self.value is None else preview(self.value)


def _join(problems: Sequence[Problem]) -> str:
    """Return the first problems as one text; their number is untrusted input."""
    end = f"; and {len(problems) - _MAX_PROBLEMS} more" if len(problems) > _MAX_PROBLEMS else ""
    return "; ".join(map(str, problems[:_MAX_PROBLEMS])) + end


class CloudEventsKafkaError(Exception):
    """The base class of the exceptions of this library, except those of `protocol`.

    Examples:
        >>> from cloudevents_kafka import CloudEventsKafkaError, Event
        >>> try:
        ...     Event(id="", source="/shop", type="order.placed")
        ... except CloudEventsKafkaError as error:
        ...     print(error)
        not a valid CloudEvent: id: must not be empty, got ''; pass id=str(uuid4()) (R-02, core: id)
    """


class InvalidEvent(CloudEventsKafkaError, ValueError):
    """The values do not form a valid event; ``problems`` lists every broken rule.

    Examples:
        >>> from cloudevents_kafka import Event, InvalidEvent
        >>> try:
        ...     Event(id="", source="/shop", type="order.placed", time="yesterday")
        ... except InvalidEvent as error:
        ...     print([(problem.attribute, problem.clause) for problem in error.problems])
        [('id', 'R-02'), ('time', 'T-12')]
    """

    problems: tuple[Problem, ...]

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(tuple(problems))
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "not a valid CloudEvent: " + _join(self.problems)


class EncodeError(CloudEventsKafkaError):
    """The event cannot be written in the requested mode or format, or as a record.

    Examples:
        >>> from cloudevents_kafka import EncodeError, Event, to_record
        >>> try:
        ...     to_record(Event(id="1", source="/shop", type="order.placed"), mode="structured", format="xml")
        ... except EncodeError as error:
        ...     print(error)
        format must be one of json, avro, protobuf, avro-compact, got 'xml'
    """


class DataError(CloudEventsKafkaError, ValueError):
    """The event's data does not match its ``datacontenttype``.

    Examples:
        >>> from cloudevents_kafka import DataError, Event
        >>> event = Event(id="1", source="/shop", type="t", datacontenttype="application/json", data=b"{")
        >>> try:
        ...     event.data
        ... except DataError as error:
        ...     print(error)
        data is not JSON: Input data was truncated; event.payload has its text
    """


class DecodeError(CloudEventsKafkaError):
    """A record cannot be read as an event.

    ``record`` is the unchanged record, ``reason`` the broken rule and the wrong value,
    ``hint`` what to do about it, or None. ``verdict`` is ``not-an-event``, ``broken-event``,
    ``broken-data``, ``unsupported-format`` or ``batch``; ``clauses`` are the ids of the
    broken clauses, each once; ``problems`` are the broken rules of a `BrokenEvent`,
    empty for other errors.

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
    """The record is not a CloudEvent (Kafka binding 3).

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
    """The record is a CloudEvent that breaks rules; ``problems`` lists every one.

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
        DecodeError.__init__(self, "broken CloudEvent: " + _join(problems), record, hint)
        self.problems = tuple(problems)
        self.clauses = tuple(dict.fromkeys(problem.clause for problem in problems))

    def __str__(self) -> str:
        return DecodeError.__str__(self)


class BrokenData(DecodeError, DataError):
    """The record is a CloudEvent, ``event``, whose data does not match its content type or the type to read.

    An `EventConsumer` with ``eager_data`` or ``data_type`` finds it; its cause is the `DataError`.

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
    """The record is a structured CloudEvent in an event format that is not registered.

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
    """The record is a batch of CloudEvents; the Kafka binding has no batch mode.

    Examples:
        >>> from cloudevents_kafka import Record, UnsupportedBatch, from_record
        >>> headers = [("content-type", b"application/cloudevents-batch+json")]
        >>> try:
        ...     from_record(Record(value=b"[]", headers=headers))
        ... except UnsupportedBatch as error:
        ...     print(error.hint)
        split it before it is produced
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
