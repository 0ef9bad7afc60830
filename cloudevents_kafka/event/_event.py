"""Event: an immutable CloudEvent that decodes its data on first access.

An `Event` satisfies the official SDK's protocol ``BaseCloudEvent``. An event contains only attributes that
its creator has set. An event stores the exact bytes of the payload and the exact text of ``time``. An event
that was read from a structured record also stores the value of this record, so that exactly these bytes are
written again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, KeysView, Mapping
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Self, TypeVar

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.python_values import accept_values, is_same, value_as
from cloudevents_kafka.attributes.timestamps import is_timestamp, to_datetime
from cloudevents_kafka.attributes.types import (
    CORE,
    SPECVERSION,
    AttributeType,
    AttributeValue,
    canonical_text,
)
from cloudevents_kafka.attributes.value_hints import core_name
from cloudevents_kafka.codecs.payload import DataKind, from_payload, to_payload
from cloudevents_kafka.codecs.registry import call_decode
from cloudevents_kafka.event._problems import data_problem, find_problems
from cloudevents_kafka.event._sdk import SdkMethods, parts_of
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.problems import DataError, InvalidEvent

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # for type checkers only

    DataT_co = TypeVarWithDefault("DataT_co", covariant=True, default=Any)
else:
    DataT_co = TypeVar("DataT_co", covariant=True)
T = TypeVar("T")
ValueT = TypeVar("ValueT", str, int, bool, bytes, datetime)
_Class = type[ValueT]  # in Event, ``type`` is a property
MYPY: Final = False  # mypy treats it as true

_UNSET: Final = object()
_FOR_READER: Final = object()  # marks data that the function passed to `read_with` decodes
_BYTES: Final = DataKind.BYTES
_new: Final = object.__new__


class Event(SdkMethods, Generic[DataT_co]):
    """A CloudEvent (specversion 1.0).

    Core and extension attributes are passed as keyword arguments; None means that the event does not have the
    attribute. ``data`` is encoded immediately, so the event does not change if the passed object is changed
    later. If ``data`` is None, the event has no data; if ``data`` is bytes, the payload consists of these
    bytes. Other values, such as text, dataclasses, msgspec Structs and pydantic models, are encoded as the
    content type demands. If the event has no content type, they are encoded as JSON.

    Raises `InvalidEvent` if the attributes or the data break a rule; the error lists all broken rules. For a
    type checker, the attribute ``data`` of an `Event[Order]` is an ``Order``.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> event = Event(id="1", source="/shop", type="order.placed", data={"total": "9.50"}, attempt=3)
        >>> event.data, event["attempt"], event.payload
        ({'total': '9.50'}, 3, b'{"total":"9.50"}')
    """

    __slots__ = ("_attributes", "_data", "_encoded", "_kind", "_origin", "_payload", "_reader")

    _attributes: dict[str, Any]
    _payload: bytes | None
    _kind: DataKind
    _encoded: tuple[str, bytes] | None
    _data: Any
    _origin: Event  # set by `replace` only: the event that was read from a structured value
    _reader: Callable[[Event], Any]  # set by `read_with` only, since setting it takes time

    if TYPE_CHECKING:
        if not MYPY:  # pyright compares __init__ with the SDK's protocol
            __init__: Any

        def __new__(  # the docstring of the class describes it
            cls,
            /,
            *,
            id: str,
            source: str,
            type: str,
            specversion: str = SPECVERSION,
            datacontenttype: str | None = None,
            dataschema: str | None = None,
            subject: str | None = None,
            time: str | datetime | None = None,
            data: Any = None,
            **extensions: AttributeValue | datetime | None,
        ) -> Self: ...

    else:

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
            attributes: dict[str, Any] = {
                "specversion": specversion,
                "id": id,
                "source": source,
                "type": type,
            }
            if datacontenttype is not None:
                attributes["datacontenttype"] = datacontenttype
            if dataschema is not None:
                attributes["dataschema"] = dataschema
            if subject is not None:
                attributes["subject"] = subject
            if time is not None:
                attributes["time"] = time
            if extensions:
                attributes |= extensions
            self._set(attributes, data)

    def _set(self, attributes: dict[str, Any], data: Any, before: Mapping[str, Any] | None = None) -> None:
        """Check values and store them in this event; ``before`` contains the attributes before the change."""
        if not accept_values(attributes):
            attributes = find_problems(attributes, data, before)
        try:
            if data is None or type(data) is bytes:
                self._payload = data
                self._kind = _BYTES
            else:
                content_type = attributes.get("datacontenttype")
                self._payload, self._kind = to_payload(data, content_type, attributes)
        except DataError as error:
            problem = data_problem(error)
        else:
            self._attributes = attributes
            self._encoded = None
            self._data = _UNSET
            return
        raise InvalidEvent([problem])

    @classmethod
    def of(cls, source: Any) -> Event:
        """Return an event from any object that has the methods ``get_attributes()`` and ``get_data()``.

        Events of the official SDK, versions 1 and 2, have these methods. If the content type is JSON or
        absent, data that is a text is treated as in the SDK's binary mode: valid JSON becomes the payload
        unchanged, and any other text becomes a JSON string. If the object is an instance of this class, it is
        returned unchanged. An instance of another `Event` class is converted to an equal instance of this
        class. The returned event has no additional attribute, and ``source`` is not changed. Raises
        `InvalidEvent` if the event breaks a rule, and `TypeError` if the object does not have these methods.
        """
        if isinstance(source, Event):
            if isinstance(source, cls):
                return source
            return source._with_reader(unchecked_event(*stored_parts(source), cls))
        attributes, data = parts_of(source)
        event = _new(cls)
        event._set(attributes, data)
        return event

    @property
    def id(self) -> str:
        """The identifier of the event within its source."""
        return self._attributes["id"]  # type: ignore[no-any-return]  # a str, as validation checks

    @property
    def source(self) -> str:
        """The context in which the event happened, a URI-reference."""
        return self._attributes["source"]  # type: ignore[no-any-return]  # see id

    @property
    def type(self) -> str:
        """The kind of event, such as ``com.example.order.created``."""
        return self._attributes["type"]  # type: ignore[no-any-return]  # see id

    @property
    def specversion(self) -> str:
        """The version of the specification, ``1.0``."""
        return self._attributes["specversion"]  # type: ignore[no-any-return]  # see id

    @property
    def datacontenttype(self) -> str | None:
        """The media type of the data, as received, or None."""
        return self._attributes.get("datacontenttype")

    @property
    def dataschema(self) -> str | None:
        """The URI of the schema of the data, or None."""
        return self._attributes.get("dataschema")

    @property
    def subject(self) -> str | None:
        """The subject of the event within its source, or None."""
        return self._attributes.get("subject")

    @property
    def time(self) -> datetime | None:
        """The time of the event with its UTC offset, or None; ``text("time")`` is the exact text."""
        return self.get("time")  # type: ignore[return-value]  # type_of says Timestamp

    def __getitem__(self, name: str) -> AttributeValue | datetime:
        """Return the value of an attribute; for an attribute of the type Timestamp, return a datetime."""
        value: AttributeValue = self._attributes[name]
        if type_of(name) is AttributeType.TIMESTAMP and isinstance(value, str):
            return to_datetime(value) if is_timestamp(value) else value  # lenient reading accepts others
        return value

    def get(self, name: str) -> AttributeValue | datetime | None:
        """Return the value of an attribute, or None if the attribute is absent."""
        return self[name] if name in self._attributes else None

    def extension(self, name: str, type: _Class[ValueT]) -> ValueT | None:
        """Return an attribute as a str, int, bool, bytes or datetime, or None if the event does not have it.

        Kafka headers contain each value as text. An extension that is not registered may therefore be a str
        in one event and an int in another event. Raises `InvalidEvent` if the value is not of the requested
        type.
        """
        value = self._attributes.get(name)
        return None if value is None else value_as(name, value, type)

    def text(self, name: str) -> str | None:
        """Return the canonical text of an attribute, or None; for ``time``, return the text as received."""
        value = self._attributes.get(name)
        return value if value is None or type(value) is str else canonical_text(value)

    if not TYPE_CHECKING:  # checkers know that there are no other attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an `AttributeError` that names a core attribute, or says how to read an extension."""
            advice = ""
            if not name.startswith("_"):
                core = None if name in self._attributes else core_name(name)
                advice = f"; read an extension with event[{name!r}] or event.get({name!r})"
                advice = advice if core is None else f"; it is event.{core}"
            message = f"{type(self).__name__!r} object has no attribute {name!r}{advice}"
            raise AttributeError(message, name=name, obj=self)

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the attributes in the order of the record or of the constructor's arguments."""
        return iter(self._attributes)

    def keys(self) -> KeysView[str]:
        """Return the names of the attributes, so that ``dict(event)`` contains all attributes.

        The dictionary does not contain the event's data; use ``event.data`` or ``event.payload``.
        """
        return self._attributes.keys()

    @property
    def attributes(self) -> Mapping[str, AttributeValue | datetime]:
        """All attributes by name, in the order of the record or of the constructor's arguments; read-only."""
        return MappingProxyType({name: self[name] for name in self._attributes})

    @property
    def extensions(self) -> Mapping[str, AttributeValue | datetime]:
        """The extension attributes by name; read-only."""
        return MappingProxyType({name: self[name] for name in self._attributes if name not in CORE})

    @property
    def payload(self) -> bytes | None:
        """The exact bytes of the data, or None if the event has no data."""
        return self._payload

    @property
    def kind(self) -> DataKind:
        """The kind of the payload: bytes, JSON, a text or a Protobuf message."""
        return self._kind

    @property
    def data(self) -> DataT_co:
        """The data of the event as a Python value: the value of JSON, a text, or bytes.

        The payload is decoded only once. If this value is changed in place, the payload stays the same. To
        send changed data, send ``event.replace(data=changed)``. If a codec is registered for
        ``datacontenttype``, the codec decodes the payload. Raises `DataError` if the payload does not match
        ``datacontenttype``.
        """
        if self._data is _UNSET:
            self._data = from_payload(self._payload, self._kind, self.datacontenttype, self._attributes)
        elif self._data is _FOR_READER:
            self._data = call_decode(self._reader, self, self.datacontenttype)
        return self._data  # type: ignore[no-any-return]  # a reader's type is known to its caller

    def read_with(self, read: Callable[[Event], T]) -> Event[T]:
        """Return an equal event, whose attribute ``data`` is the result of ``read(event)``.

        The function ``read`` has precedence over codecs. If `replace` returns an event with the same data,
        this event also uses the function ``read``. After pickling, the copy of the event does not use the
        function ``read``. The function ``read`` is not called for an event without data. If the function
        ``read`` raises an exception, access to ``data`` raises a `DataError`.
        """
        event = unchecked_event(*stored_parts(self), type(self))
        event._reader = read
        event._data = None if event._payload is None else _FOR_READER
        return event

    def replace(self, /, *, data: Any = _UNSET, **attributes: AttributeValue | datetime | None) -> Event:
        """Return a changed copy of the event; the value None removes an attribute.

        If ``data`` is not passed, the payload stays the same, even if ``datacontenttype`` changes. If lenient
        reading has accepted an invalid value, this value also stays, unless a new value of the attribute is
        passed. Raises `InvalidEvent` if the changed event breaks a rule in any other way.
        """
        event = _new(type(self))
        changed = {**self._attributes, **attributes}
        event._set(changed, self._payload if data is _UNSET else data, self._attributes)
        if self._encoded is not None:
            event._origin = self
        elif hasattr(self, "_origin"):
            event._origin = self._origin
        if data is not _UNSET:
            return event
        if self._kind is not DataKind.BYTES and event.datacontenttype == self.datacontenttype:
            event._kind = self._kind
        return self._with_reader(event)

    def _with_reader(self, event: Event) -> Event:
        """Return ``event`` with the reading function that `read_with` has set for this event, if any."""
        return event.read_with(self._reader) if hasattr(self, "_reader") else event

    __replace__ = replace

    def __eq__(self, other: object) -> bool:
        """Return whether the payloads and the attributes of two events are equal; times count as instants."""
        if not isinstance(other, Event):
            return NotImplemented
        return (
            self._payload == other._payload
            and self._attributes.keys() == other._attributes.keys()
            and all(is_same(name, value, other._attributes[name]) for name, value in self._attributes.items())
        )

    def __hash__(self) -> int:
        """Return the hash of the id and the source, which together identify an event (R-03)."""
        return hash((self.id, self.source))

    def __repr__(self) -> str:
        names = [name for name in self if name not in ("specversion", "id", "source", "type")]
        attributes = "".join(f", {name}={self.text(name)!r}" for name in names)
        size = "" if self._payload is None else f", data=<{pluralize(len(self._payload), 'byte')}>"
        return f"Event(id={self.id!r}, source={self.source!r}, type={self.type!r}{attributes}{size})"

    def __reduce__(self) -> tuple[Any, ...]:
        parts = stored_parts(self)
        # Earlier versions read the parts of an `Event`.
        return unchecked_event, parts if type(self) is Event else (*parts, type(self))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _refuse_to_set(name: str) -> Callable[[Event, object], NoReturn]:
    """Return a setter that raises an error whose message explains that events are read-only."""
    argument = "data" if name == "payload" else name

    def refuse(event: Event, _value: object) -> NoReturn:
        advice = f"event.replace({argument}=…) returns a changed event"
        raise AttributeError(
            f"an Event is read-only, so {name} cannot be set; {advice}", name=name, obj=event
        )

    return refuse


# Type checkers do not see the setters: for them, the attributes are read-only properties.
for _name in (*CORE, "data", "payload"):
    setattr(Event, _name, getattr(Event, _name).setter(_refuse_to_set(_name)))


def unchecked_event(
    attributes: dict[str, AttributeValue],
    payload: bytes | None,
    kind: DataKind = DataKind.BYTES,
    encoded: tuple[str, bytes] | None = None,
    cls: type[Event] = Event,
) -> Event:
    """Return an event of a class without checking the attributes, which the caller has validated.

    Formats and readers create events with this function. The event uses the dictionary ``attributes`` itself,
    not a copy. ``encoded`` is None, or a pair of the format's name and the structured value from which the
    event was read.
    """
    event = _new(cls)
    event._attributes = attributes
    event._payload = payload
    event._kind = kind
    event._encoded = encoded
    event._data = _UNSET
    return event


def has_reader(event: Event) -> bool:
    """Return whether the data of an event is decoded by a function that was passed to `Event.read_with`."""
    return hasattr(event, "_reader")


def origin_of(event: Event) -> Event | None:
    """Return the event that a structured value contained: this event, or the event before `replace`.

    The result is None if neither of the two events was read from a structured value.
    """
    return event if event._encoded is not None else getattr(event, "_origin", None)


def select_attributes(event: Event, names: Container[str]) -> Event:
    """Return an unchecked copy of an event, with the same data and with only the attributes in ``names``."""
    attributes = {name: value for name, value in event._attributes.items() if name in names}
    return event._with_reader(unchecked_event(attributes, event._payload, event._kind))


binary_parts: Final[Callable[[Event], tuple[dict[str, AttributeValue], bytes | None, DataKind]]] = attrgetter(
    "_attributes", "_payload", "_kind"
)
"""A function that returns three parts of an event: stored attributes, payload, and the payload's kind."""

stored_parts: Final[
    Callable[[Event], tuple[dict[str, AttributeValue], bytes | None, DataKind, tuple[str, bytes] | None]]
] = attrgetter("_attributes", "_payload", "_kind", "_encoded")
"""A function that returns all parts that an event stores: the first arguments of `unchecked_event`."""

raw_parts: Final[Callable[[Event], tuple[dict[str, AttributeValue], tuple[str, bytes] | None]]] = attrgetter(
    "_attributes", "_encoded"
)
"""A function that returns the stored attributes of an event, and the ``encoded`` pair of `unchecked_event`.

Encoders that use this function do not change the returned dictionary.
"""
