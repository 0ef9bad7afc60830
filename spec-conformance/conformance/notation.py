"""The notations of values in vector files: types, and the Python values they denote."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Headers, Record

_T = TypeVar("_T")
_MOST_TIMES: Final = 1_000_000
_HEX: Final = ("hex", "avro", "protobuf")  # members whose value is hexadecimal


class Bytes(bytes):
    """Bytes: hex, ``{"text": …}``, ``{"repeat": hex, "times": number}``, or a list of these."""


class Attribute:
    """The value of an attribute: a JSON value, or bytes as ``{"hex": …}``."""

    def __init__(self, notation: Any) -> None:
        is_hex = isinstance(notation, dict) and notation.keys() == {"hex"}
        self.value = _from_hex(notation["hex"]) if is_hex else notation


class Data:
    """The data of an event: null, a text, bytes in hex or that repeat, or ``{"json": …}``."""

    def __init__(self, notation: Any) -> None:
        self.value = None if notation is None else _member(notation, "text", "hex", "repeat", "json")[1]


class Written:
    """A written value: `Bytes`, ``{"json": …}``, or an Avro datum or Protobuf message in hex.

    ``form`` is bytes, json, avro or protobuf.
    """

    def __init__(self, notation: Any) -> None:
        self.form = "bytes"
        self.content: Any = None
        if isinstance(notation, dict) and notation.keys() & {"json", "avro", "protobuf"}:
            self.form, self.content = _member(notation, "json", "avro", "protobuf")
        else:
            self.content = _bytes(notation)


HeaderPairs = list[tuple[str, Bytes | None]]
Scalar = str | bool | int


class RecordNotation(Struct, frozen=True, forbid_unknown_fields=True):
    """A Kafka record to read."""

    key: Bytes | None
    value: Bytes | None
    headers: HeaderPairs


class WrittenRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """A Kafka record that the library must write; its headers may be in any order."""

    key: Bytes | None
    value: Written | None
    headers: HeaderPairs


class EventNotation(Struct, frozen=True, forbid_unknown_fields=True):
    """An event to construct."""

    attributes: dict[str, Attribute]
    data: Data

    def __post_init__(self) -> None:
        """Raise `ValueError` if an attribute is called data."""
        if "data" in self.attributes:
            raise ValueError("attributes must not contain 'data'; use the member data of the event")

    @property
    def values(self) -> dict[str, Any]:
        """The values of the attributes."""
        return {name: attribute.value for name, attribute in self.attributes.items()}


class Expected(Struct, frozen=True, forbid_unknown_fields=True):
    """The outcome of reading a record: an event with the problems that lenient reading reports, or an error.

    If ``attributes_at_fault`` is empty, any attribute may be at fault.
    """

    verdict: Literal["event", "broken-event", "not-an-event", "unsupported-format", "batch"]
    mode: ContentMode | None = None
    attributes: dict[str, Scalar] = {}
    data: Bytes | None = None
    value: Data | UnsetType = UNSET
    tolerated: list[str | None] | None = None
    attributes_at_fault: list[str] = []


def convert(value: object, type: type[_T]) -> _T:
    """Return a JSON value as a type of this module or one that contains them.

    Raises `ValueError`, which names the member, if one is wrong.
    """
    return msgspec.convert(value, type, dec_hook=_new)


def _new(cls: Any, notation: Any) -> object:
    return Bytes(_bytes(notation)) if cls is Bytes else cls(notation)


def _bytes(notation: Any) -> bytes:
    return b"".join(map(_part, notation)) if isinstance(notation, list) else _part(notation)


def _part(notation: Any) -> bytes:
    if isinstance(notation, str):
        return _from_hex(notation)
    value = _member(notation, "text", "repeat")[1]
    return value if isinstance(value, bytes) else str(value).encode()


def _member(notation: Any, *names: str) -> tuple[str, Any]:
    """Return the name and the value of the only member, or of repeat and times, if it is one of the names."""
    match notation:
        case {"repeat": unit, "times": int(times)} if len(notation) == 2 and "repeat" in names:
            if not 1 <= times <= _MOST_TIMES:
                raise ValueError(f"times must be from 1 to {_MOST_TIMES}, got {times}")
            return "repeat", _from_hex(unit) * times
        case {"text": str(text)} if len(notation) == 1 and "text" in names:
            return "text", text
        case dict() if len(notation) == 1 and (name := next(iter(notation))) in {"json", *_HEX} & {*names}:
            return name, notation[name] if name == "json" else _from_hex(notation[name])
    forms = " or ".join(names).replace("repeat", "repeat and times")
    found = sorted(notation) if isinstance(notation, dict) else notation
    raise ValueError(f"must have {forms}, got {found!r:.60}")


def _from_hex(text: Any) -> bytes:
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        raise ValueError(f"bytes must be hexadecimal, got {str(text)[:20]!r}") from None


def as_headers(notation: HeaderPairs) -> Headers:
    """Return the headers of a record."""
    return [(name, _plain(value)) for name, value in notation]


def as_record(notation: RecordNotation) -> Record:
    """Return the record of a notation."""
    return Record(
        key=_plain(notation.key), value=_plain(notation.value), headers=as_headers(notation.headers)
    )


def as_event(notation: EventNotation) -> Event:
    """Return the event of a notation; raise `InvalidEvent` if it breaks a rule."""
    return Event(data=notation.data.value, **notation.values)


def _plain(value: Bytes | None) -> bytes | None:
    return None if value is None else bytes(value)
