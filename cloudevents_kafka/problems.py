"""`Problem`, which describes a broken rule, and the errors for invalid events, wrong data and encoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from cloudevents_kafka.primitives.clauses import sections
from cloudevents_kafka.primitives.preview import preview, preview_name

_MAX_PROBLEMS: Final = 20  # the limit in a message; ``problems`` has all of them


class Problem(msgspec.Struct, frozen=True):
    """One broken rule.

    ``attribute`` is the name of the attribute or header that breaks the rule, ``"data"``, or None for the
    whole record. ``rule`` says what the specification demands, and ``clause`` is the id of this requirement,
    such as ``R-02``. ``value`` is a preview of the wrong value, or None. ``hint`` says what to pass to an
    `Event` in place of the wrong value, or is None. The subclass `LeftOut` is for a value that lenient
    reading leaves out of an event, and contains the complete value.

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
        """The wrong value as error messages show it: escaped, and shortened if it is long."""
        return self.value if self.value is None or isinstance(self.value, str) else preview(self.value)

    @property
    def section(self) -> str:
        """The document and the section of the specification that contain the clause.

        Examples:
            >>> from cloudevents_kafka import Problem
            >>> Problem("id", "must not be empty", "R-02").section
            'core: id'
        """
        return sections()[self.clause]


class LeftOut(Problem, frozen=True):
    """The value of an attribute, header or JSON member which lenient reading does not include in the event.

    ``attribute`` is the name as it was received, and ``value`` is the complete value. If the value is a
    number, an object or a list, ``value`` is its JSON text. If the value is not UTF-8, ``value`` is bytes. If
    the record contains only the name, ``value`` is None.

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
        """The wrong value as error messages show it: escaped, and shortened if it is long."""
        return None if self.value is None else preview(self.value)


def join_problems(problems: Sequence[Problem]) -> str:
    """Return the first problems as one text; untrusted input may cause any number of problems."""
    end = f"; and {len(problems) - _MAX_PROBLEMS} more" if len(problems) > _MAX_PROBLEMS else ""
    return "; ".join(map(str, problems[:_MAX_PROBLEMS])) + end


class CloudEventsKafkaError(Exception):
    """The base class of all exceptions of this library, except those of the package `protocol`.

    Examples:
        >>> from cloudevents_kafka import CloudEventsKafkaError, Event
        >>> try:
        ...     Event(id="", source="/shop", type="order.placed")
        ... except CloudEventsKafkaError as error:
        ...     print(error)
        not a valid CloudEvent: id: must not be empty, got ''; pass id=str(uuid4()) (R-02, core: id)
    """


class InvalidEvent(CloudEventsKafkaError, ValueError):
    """The values do not form a valid event; ``problems`` lists every rule that they break.

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
        return "not a valid CloudEvent: " + join_problems(self.problems)


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
