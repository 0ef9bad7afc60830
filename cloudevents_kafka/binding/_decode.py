"""Read a record as an event.

`from_record` raises an error for a record that is not a valid event. `decode` does not raise this error: it
returns `Decoded` or `Undecodable`, so that one bad record does not stop a loop. Most records are read by the
module `_valid`. If `_valid` cannot read a record, the record is read in four steps. First, the content mode
is found from the headers. Second, the bytes of the record are split into attributes and data. Third, if
lenient reading was requested, `lenient` accepts the record's deviations from the specification. Fourth, the
rules for attributes decide whether the record is a valid event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, NoReturn

import msgspec

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.binding._binary import decode_binary
from cloudevents_kafka.binding._sniffer import ContentMode, Mode, Verdict, decode_error, framed_hint, sniff
from cloudevents_kafka.binding._structured import check_content_type, decode_structured
from cloudevents_kafka.binding._valid import Unread, read_valid
from cloudevents_kafka.binding.lenient import Found, lenient_format, lenient_mode, read_leniently
from cloudevents_kafka.errors import BrokenEvent, DecodeError, InvalidEvent, Problem
from cloudevents_kafka.event import DataT_co, Event
from cloudevents_kafka.message_headers import UnreadHeaders
from cloudevents_kafka.record import Record, RecordInput, with_bytes_headers

_NAMES: Final = {
    "event": frozenset(name for name in dir(Event) if not name.startswith("_")),
    "record": frozenset(Record.__struct_fields__),
}
"""Names of Python attributes that events and records have, but `Decoded` does not have."""


class Decoded(msgspec.Struct, Generic[DataT_co], frozen=True):
    """A record that is an event; ``tolerated`` lists the problems that lenient reading accepted.

    If a value of the record cannot be part of the event, its problem is an `errors.LeftOut`, which contains
    the complete value.

    Examples:
        >>> from cloudevents_kafka import Decoded, Event, decode, to_record
        >>> item = decode(to_record(Event(id="1", source="/shop", type="order.placed"), key="customer-4"))
        >>> if isinstance(item, Decoded):
        ...     print(item.event.type, item.record.key)
        order.placed b'customer-4'
    """

    event: Event[DataT_co]
    record: Record
    tolerated: tuple[Problem, ...] = ()

    @property
    def mode(self) -> ContentMode:
        """The content mode of the record: binary or structured."""
        if self.tolerated:
            return lenient_mode(with_bytes_headers(self.record).headers)
        return "structured" if sniff(self.record.headers).mode == "structured" else "binary"

    @property
    def format(self) -> str | None:
        """The name of the event format from which the event was read, or None in binary mode."""
        if self.tolerated:
            return lenient_format(with_bytes_headers(self.record).headers)
        return sniff(self.record.headers).format

    if not TYPE_CHECKING:  # checkers know that there are no other attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise `AttributeError`; its message says whether the event or the record has the attribute."""
            owner = next((part for part in ("event", "record") if name in _NAMES[part]), None)
            advice = "" if owner is None else f"; it is item.{owner}.{name}"
            message = f"{type(self).__name__!r} object has no attribute {name!r}{advice}"
            raise AttributeError(message, name=name, obj=self)


class Undecodable(msgspec.Struct, frozen=True):
    """A record that is not a valid event, and the error that says why it is not valid.

    Examples:
        >>> from cloudevents_kafka import Record, Undecodable, decode
        >>> item = decode(Record(value=b"17", topic="orders", partition=2, offset=1741))
        >>> if isinstance(item, Undecodable):
        ...     print(item.error.verdict, item.record.where)
        not-an-event orders[2]@1741
    """

    error: DecodeError
    record: Record


def from_record(record: RecordInput, *, lenient: bool = False) -> Event:
    """Return the event in a record; the record may have either content mode and any known event format.

    The record may be a message of a Kafka client: see `Record.of`. With ``lenient``, deviations of known
    producers from the specification are accepted. `decode` also returns the accepted deviations.

    Raises `NotAnEvent`, `BrokenEvent`, `UnsupportedFormat` or `UnsupportedBatch` if the record is not a valid
    event; the error contains the record. The bytes of a record never cause an error of another class.

    Examples:
        >>> from cloudevents_kafka import Record, from_record
        >>> headers = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/"), ("ce_type", b"t")]
        >>> from_record(Record(value=b"17", headers=headers))
        Event(id='1', source='/', type='t', data=<2 bytes>)
    """
    if type(record) is not Record:
        record = Record.of(record)
    found = read_valid(record, lenient)
    return found if isinstance(found, Event) else _read(record, found, lenient=lenient)[0]


def decode(record: RecordInput, *, lenient: bool = False) -> Decoded | Undecodable:
    """Return the event in a record, or the error that the function `from_record` would raise for this record.

    The record may be a message of a client, such as confluent-kafka's ``Message``. The field ``record`` of
    the result is always a `Record`. Like `Record.of`, this function raises `TypeError` or `ValueError` if the
    object is not a record.

    Examples:
        >>> from cloudevents_kafka import Decoded, decode
        >>> item = decode({"value": b"17", "topic": "orders", "partition": 2, "offset": 1741})
        >>> item.event if isinstance(item, Decoded) else item.error.verdict
        'not-an-event'
    """
    if type(record) is not Record:
        record = Record.of(record)
    found = read_valid(record, lenient)
    if isinstance(found, Event):
        return Decoded(found, record)
    try:
        event, tolerated = _read(record, found, lenient=lenient)
    except DecodeError as error:
        return Undecodable(error, record)
    return Decoded(event, record, tolerated)


def _read(record: Record, unread: Unread, *, lenient: bool) -> Found:
    """Return the event in a record, and the accepted problems.

    Raises a `DecodeError` if the record is invalid.
    """
    if type(record.headers) is UnreadHeaders:
        raise BrokenEvent([_unread(record.headers)], record)
    with_bytes = with_bytes_headers(record)
    try:
        if lenient:
            return read_leniently(with_bytes, unread)
        if isinstance(unread, InvalidEvent):
            raise unread
        sniffed = sniff(with_bytes.headers)
        return _READERS[sniffed.mode](with_bytes, sniffed), ()
    except InvalidEvent as error:
        is_whole = any(problem.attribute is None for problem in error.problems)
        hint = framed_hint(with_bytes.value) if is_whole else None
        raise BrokenEvent(error.problems, with_bytes, hint) from error.__cause__


def _unread(headers: UnreadHeaders) -> Problem:
    """Return the problem of headers that the Kafka client could not return; their names are unknown."""
    return Problem(None, headers.rule, "K-06", headers.value, headers.hint)  # K-06: "encoded as UTF-8"


def _read_structured(record: Record, sniffed: Verdict) -> Event:
    media = media_type(str(sniffed.media_type))
    check_content_type(record, media)
    event = decode_structured(record.value, media)
    if event is None:
        raise decode_error(sniffed, record)
    return event


def _refuse(record: Record, sniffed: Verdict) -> NoReturn:
    raise decode_error(sniffed, record)


_READERS: Final[dict[Mode, Callable[[Record, Verdict], Event]]] = {
    "binary": lambda record, _: decode_binary(record),
    "structured": _read_structured,
    "unsupported-format": _read_structured,
    "batch": _refuse,
    "not-an-event": _refuse,
}
