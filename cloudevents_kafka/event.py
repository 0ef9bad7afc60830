"""Event: one CloudEvent, read-only, exact, and lazy about its data.

An `Event` passes wherever the official SDK takes a ``BaseCloudEvent``. It never
invents an attribute: what is not given is absent. It keeps what came: the payload
bytes, the text of ``time``, and, if it was read from a structured record, that
record's value, so that writing it again gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Self

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.fast_validation import is_valid_fast
from cloudevents_kafka.attributes.timestamps import instant, is_timestamp, to_datetime
from cloudevents_kafka.attributes.types import (
    CORE,
    SPECVERSION,
    AttributeType,
    AttributeValue,
    canonical_text,
    to_attribute,
)
from cloudevents_kafka.attributes.validation import validate
from cloudevents_kafka.codecs.payload import DataKind, data_problem, from_payload, to_payload
from cloudevents_kafka.codecs.registry import call_decode
from cloudevents_kafka.errors import DataError, InvalidEvent, Problem

_UNREAD: Final = object()
_new: Final = object.__new__


class Event:
    """A CloudEvent of specversion 1.0.

    Attributes are given by keyword, core and extension alike; those that are None
    are absent. ``data`` is kept as bytes at once, so later changes to the object
    given do not reach the event: None is no data, bytes are the payload itself, text
    and other values are written as the content type says (JSON where none is set).

    Raises `InvalidEvent`, which names every broken rule.
    """

    __slots__ = ("_attributes", "_data", "_kind", "_payload", "_wire")

    _attributes: dict[str, AttributeValue]
    _payload: bytes | None
    _kind: DataKind
    _wire: tuple[str, bytes] | None
    _data: Any

    def __init__(
        self,
        /,
        *,
        id: str | None = None,
        source: str | None = None,
        type: str | None = None,
        specversion: str = SPECVERSION,
        datacontenttype: str | None = None,
        dataschema: str | None = None,
        subject: str | None = None,
        time: str | datetime | None = None,
        data: Any = None,
        **extensions: AttributeValue | datetime | None,
    ) -> None:
        given = {
            "specversion": specversion,
            "id": id,
            "source": source,
            "type": type,
            "datacontenttype": datacontenttype,
            "dataschema": dataschema,
            "subject": subject,
            "time": time,
            **extensions,
        }
        self._fill(given, data)

    def _fill(self, given: Mapping[str, object], data: Any) -> None:
        attributes, problems = _checked(given)
        content_type = attributes.get("datacontenttype")
        try:
            self._payload, self._kind = to_payload(
                data, content_type if isinstance(content_type, str) else None, attributes
            )
        except DataError as error:
            problems.append(data_problem(error))
        if problems:
            raise InvalidEvent(problems)
        self._attributes = attributes
        self._wire = None
        self._data = _UNREAD

    @classmethod
    def of(cls, source: Any) -> Event:
        """Make an event of an official SDK's, version 2 or 1, or of an `Event` (itself).

        Taken by shape: ``get_attributes()`` and ``get_data()``. Nothing is added and
        the object is not changed. Raises `InvalidEvent`, and `TypeError` for anything
        that has no such shape.
        """
        if isinstance(source, cls):
            return source
        if not (
            callable(getattr(source, "get_attributes", None)) and callable(getattr(source, "get_data", None))
        ):
            raise TypeError(f"no CloudEvent: {type(source).__name__} has no get_attributes() and get_data()")
        event = cls.__new__(cls)
        event._fill(source.get_attributes(), source.get_data())
        return event

    # --- attributes ---

    @property
    def id(self) -> str:
        """Identifies the event within its source."""
        return self._attributes["id"]  # type: ignore[return-value]  # core attributes are text, by the rules

    @property
    def source(self) -> str:
        """The context in which it happened, a URI-reference."""
        return self._attributes["source"]  # type: ignore[return-value]  # see id

    @property
    def type(self) -> str:
        """What kind of event this is."""
        return self._attributes["type"]  # type: ignore[return-value]  # see id

    @property
    def specversion(self) -> str:
        """The version of the specification: 1.0."""
        return self._attributes["specversion"]  # type: ignore[return-value]  # see id

    @property
    def datacontenttype(self) -> str | None:
        """The media type of the data, as received."""
        return self._attributes.get("datacontenttype")  # type: ignore[return-value]  # see id

    @property
    def dataschema(self) -> str | None:
        """The URI of the schema that the data follows."""
        return self._attributes.get("dataschema")  # type: ignore[return-value]  # see id

    @property
    def subject(self) -> str | None:
        """What within the source it is about."""
        return self._attributes.get("subject")  # type: ignore[return-value]  # see id

    @property
    def time(self) -> datetime | None:
        """When it happened, in the offset it was told in; ``text("time")`` is exact."""
        return self.get("time")  # type: ignore[return-value]  # a Timestamp, by type_of

    def __getitem__(self, name: str) -> AttributeValue | datetime:
        """Return an attribute: its typed value, a datetime for a known Timestamp."""
        value = self._attributes[name]
        if type_of(name) is AttributeType.TIMESTAMP and isinstance(value, str):
            return to_datetime(value) if is_timestamp(value) else value  # lenient reading keeps bad ones
        return value

    def get(self, name: str) -> AttributeValue | datetime | None:
        """Return an attribute as ``event[name]`` does, or None where it is absent."""
        return self[name] if name in self._attributes else None

    def text(self, name: str) -> str | None:
        """Return an attribute's canonical text, for `time` as it was received; None if absent."""
        value = self._attributes.get(name)
        return None if value is None else canonical_text(value)

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self) -> Iterator[str]:
        """Names of the attributes, in the order they came."""
        return iter(self._attributes)

    @property
    def attributes(self) -> Mapping[str, AttributeValue | datetime]:
        """All attributes by name, in the order they came, read-only."""
        return MappingProxyType({name: self[name] for name in self._attributes})

    @property
    def extensions(self) -> Mapping[str, AttributeValue | datetime]:
        """The attributes beyond the core ones, read-only."""
        return MappingProxyType({name: self[name] for name in self._attributes if name not in CORE})

    # --- data ---

    @property
    def payload(self) -> bytes | None:
        """The data as bytes, exactly as they came or will go; None is no data."""
        return self._payload

    @property
    def kind(self) -> DataKind:
        """Whether the payload is bytes, a JSON value's text, or a text."""
        return self._kind

    @property
    def data(self) -> Any:
        """The data as a Python value: of JSON, a text, or bytes; decoded once, when asked for.

        A codec that is registered for ``datacontenttype`` makes of it what it makes.
        Raises `DataError` where the payload is not what ``datacontenttype`` says.
        """
        if self._data is _UNREAD:
            self._data = self._read()
        return self._data

    def _read(self) -> Any:
        return from_payload(self._payload, self._kind, self.datacontenttype, self._attributes)

    def read_with(self, read: Callable[[Event], Any]) -> Event:
        """Make the same event, whose ``data`` is what ``read`` makes of it when asked for.

        That goes before every codec, and for what `replace` makes with the same data; not in
        a pickled copy. What ``read`` raises becomes a `DataError`; no data is not read.
        """
        event = _ReadAsTold.__new__(_ReadAsTold)
        event._attributes, event._payload, event._kind = self._attributes, self._payload, self._kind
        event._wire, event._data, event._reader = self._wire, _UNREAD, read
        return event

    # --- a value among values ---

    def replace(self, /, *, data: Any = _UNREAD, **attributes: AttributeValue | datetime | None) -> Event:
        """Make a changed event; an attribute set to None goes, data stays unless given.

        A new ``datacontenttype`` alone does not touch the payload: it says anew what the
        bytes are. Raises `InvalidEvent`.
        """
        changed = {**self._attributes, **attributes}
        event = Event.__new__(type(self))
        event._fill(changed, self._payload if data is _UNREAD else data)
        if (
            data is _UNREAD
            and self._kind is not DataKind.BYTES
            and event.datacontenttype == self.datacontenttype
        ):
            event._kind = self._kind
        return event

    __replace__ = replace

    def __eq__(self, other: object) -> bool:
        """Equal attributes (times by instant) and equal payloads."""
        if not isinstance(other, Event):
            return NotImplemented
        return (
            self._payload == other._payload
            and self._attributes.keys() == other._attributes.keys()
            and all(_equal(name, value, other._attributes[name]) for name, value in self._attributes.items())
        )

    def __hash__(self) -> int:
        """By id and source, which tell events apart (core: id)."""
        return hash((self.id, self.source))

    def __repr__(self) -> str:
        rest = "".join(
            f", {name}={self.text(name)!r}"
            for name in self
            if name not in ("specversion", "id", "source", "type")
        )
        size = "" if self._payload is None else f", data=<{len(self._payload)} bytes>"
        return f"Event(id={self.id!r}, source={self.source!r}, type={self.type!r}{rest}{size})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._attributes, self._payload, self._kind, self._wire)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    # --- the SDK's BaseCloudEvent ---

    def get_id(self) -> str:
        """SDK form of ``id``."""
        return self.id

    def get_source(self) -> str:
        """SDK form of ``source``."""
        return self.source

    def get_type(self) -> str:
        """SDK form of ``type``."""
        return self.type

    def get_specversion(self) -> str:
        """SDK form of ``specversion``."""
        return self.specversion

    def get_datacontenttype(self) -> str | None:
        """SDK form of ``datacontenttype``."""
        return self.datacontenttype

    def get_dataschema(self) -> str | None:
        """SDK form of ``dataschema``."""
        return self.dataschema

    def get_subject(self) -> str | None:
        """SDK form of ``subject``."""
        return self.subject

    def get_time(self) -> datetime | None:
        """SDK form of ``time``."""
        return self.time

    def get_extension(self, extension_name: str) -> Any:
        """SDK form of ``get``; None where the extension is absent."""
        return self.get(extension_name)

    def get_data(self) -> Any:
        """SDK form of ``data``."""
        return self.data

    def get_attributes(self) -> dict[str, Any]:
        """SDK form of ``attributes``: a fresh dict, the caller's own."""
        return dict(self.attributes)


class _ReadAsTold(Event):
    """An event whose data a function of the user's reads."""

    __slots__ = ("_reader",)

    _reader: Callable[[Event], Any]

    def _read(self) -> Any:
        return None if self._payload is None else call_decode(self._reader, self, self.datacontenttype)

    def replace(self, /, *, data: Any = _UNREAD, **attributes: AttributeValue | datetime | None) -> Event:
        """Make a changed event; the reader stays with it unless the data is another."""
        if data is not _UNREAD:
            return unchecked_event(self._attributes, self._payload, self._kind).replace(
                data=data, **attributes
            )
        return super().replace(**attributes).read_with(self._reader)

    __replace__ = replace


def unchecked_event(
    attributes: dict[str, AttributeValue],
    payload: bytes | None,
    kind: DataKind = DataKind.BYTES,
    wire: tuple[str, bytes] | None = None,
) -> Event:
    """Make an event of attributes that were checked already; the dict becomes its own.

    ``wire`` is the event format's name and the structured value it was read from.
    """
    event = _new(Event)
    event._attributes = attributes
    event._payload = payload
    event._kind = kind
    event._wire = wire
    event._data = _UNREAD
    return event


_restore = unchecked_event


def select_attributes(event: Event, names: Container[str]) -> Event:
    """Make an event of some of the attributes of another, and its data; unchecked, as nothing is new."""
    kept = {name: value for name, value in event._attributes.items() if name in names}
    made = unchecked_event(kept, event._payload, event._kind)
    return made.read_with(event._reader) if isinstance(event, _ReadAsTold) else made


def with_content_type(event: Event) -> Event:
    """Tell the content type that JSON data implies, as most forms have to (R-10); else the very event."""
    if event.kind is not DataKind.JSON or event.datacontenttype is not None:
        return event
    return event.replace(datacontenttype="application/json")


def raw_parts(event: Event) -> tuple[dict[str, AttributeValue], tuple[str, bytes] | None]:
    """Give writers what they need beside an event's public face; not to be changed.

    That is its attributes as it holds them (see `attributes`), and the format and
    value it was read from, if it came in structured mode.
    """
    return event._attributes, event._wire


def _checked(given: Mapping[str, object]) -> tuple[dict[str, AttributeValue], list[Problem]]:
    """Attribute values in canonical form, and every rule they break."""
    attributes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if is_valid_fast(attributes):
        return attributes, []
    problems: list[Problem] = []
    for name, value in list(attributes.items()):
        try:
            attributes[name] = to_attribute(value)
        except ValueError as error:
            problems.append(Problem(name, str(error), "T-01"))
            del attributes[name]
    return validate(attributes, problems)


def _equal(name: str, one: AttributeValue, other: AttributeValue) -> bool:
    if type(one) is type(other) and one == other:
        return True
    if type_of(name) is AttributeType.TIMESTAMP and isinstance(one, str) and isinstance(other, str):
        return is_timestamp(one) and is_timestamp(other) and instant(one) == instant(other)
    return False
