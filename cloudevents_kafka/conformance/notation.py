"""The notations of values in vector files, as typed structs, and the Python values they denote."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Headers, Record

# `msgspec.Meta` could check these too, but CPython may crash at exit after it has compiled a pattern.
_HEX_MEMBERS: Final = ("hex", "repeat", "avro", "protobuf")
_MOST_TIMES: Final = 1_000_000


class Notation(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A JSON object with one member, whose name says how to read its value, or with repeat and times."""

    def __post_init__(self) -> None:
        """Raise `ValueError` unless the object has the members of exactly one form."""
        members = {name for name in self.__struct_fields__ if getattr(self, name) is not UNSET}
        if len(members) != 1 and members != {"repeat", "times"}:
            raise ValueError(f"must have one of {', '.join(self.__struct_fields__)}, got {sorted(members)}")
        if len(members) == 1 and members <= {"repeat", "times"}:
            raise ValueError("repeat and times must be used together")
        for name in members.intersection(_HEX_MEMBERS):
            _check_hex(getattr(self, name))


class HexObject(Notation, frozen=True):
    """The bytes of a Binary attribute: ``{"hex": …}``."""

    hex: str


class BytesObject(Notation, frozen=True):
    """Bytes as the UTF-8 of a text or as bytes that repeat."""

    text: str | UnsetType = UNSET
    repeat: str | UnsetType = UNSET
    times: int | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Raise `ValueError` unless the object has one form and repeats a bounded number of times."""
        super().__post_init__()
        if not isinstance(self.times, UnsetType) and not 1 <= self.times <= _MOST_TIMES:
            raise ValueError(f"times must be from 1 to {_MOST_TIMES}, got {self.times}")


class DataObject(BytesObject, frozen=True):
    """The data of an event: a text, bytes, bytes that repeat, or a JSON value."""

    hex: str | UnsetType = UNSET
    json: Any = UNSET


class BodyObject(BytesObject, frozen=True):
    """A written value: bytes, or a JSON value that is compared as such."""

    json: Any = UNSET


class ValueObject(BodyObject, frozen=True):
    """A written value: as `BodyObject`, or an Avro datum or Protobuf message in hex."""

    avro: str | UnsetType = UNSET
    protobuf: str | UnsetType = UNSET


Part = str | BytesObject
Bytes = str | BytesObject | list[Part] | None
Data = DataObject | None
HeaderPairs = list[tuple[str, Bytes]]
Scalar = str | bool | int
AttributeNotation = str | bool | int | HexObject


class RecordNotation(Struct, frozen=True, forbid_unknown_fields=True):
    """A Kafka record to read."""

    key: Bytes
    value: Bytes
    headers: HeaderPairs

    def __post_init__(self) -> None:
        """Raise `ValueError` if bytes are not hexadecimal."""
        _check_parts(self.key, self.value, *(value for _, value in self.headers))


class WrittenRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """A Kafka record that the library must write; its headers may be in any order."""

    key: Bytes
    value: str | ValueObject | list[Part] | None
    headers: HeaderPairs

    def __post_init__(self) -> None:
        """Raise `ValueError` if bytes are not hexadecimal."""
        _check_parts(self.key, self.value, *(value for _, value in self.headers))


class EventNotation(Struct, frozen=True, forbid_unknown_fields=True):
    """An event to construct."""

    attributes: dict[str, AttributeNotation]
    data: Data

    def __post_init__(self) -> None:
        """Raise `ValueError` if an attribute is called data."""
        if "data" in self.attributes:
            raise ValueError("attributes must not contain 'data'; use the member data of the event")


class Expectation(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="verdict"):
    """The outcome of reading a record."""

    @property
    def verdict(self) -> str:
        """The verdict, by its name in the vectors."""
        return str(self.__struct_config__.tag)


class ExpectedEvent(Expectation, frozen=True, tag="event"):
    """An event, with the problems that lenient reading reports."""

    mode: ContentMode
    attributes: dict[str, Scalar]
    data: Bytes
    value: Data | UnsetType = UNSET
    tolerated: list[str | None] | None = None


class ExpectedFaults(Expectation, frozen=True, tag="broken-event"):
    """A broken event; without names any attribute may be at fault."""

    attributes_at_fault: list[str] = []


class ExpectedNotAnEvent(Expectation, frozen=True, tag="not-an-event"):
    """A record that is not an event."""


class ExpectedUnsupportedFormat(Expectation, frozen=True, tag="unsupported-format"):
    """An event in an unknown format."""


class ExpectedBatch(Expectation, frozen=True, tag="batch"):
    """A batch of events."""


Expected = ExpectedEvent | ExpectedFaults | ExpectedNotAnEvent | ExpectedUnsupportedFormat | ExpectedBatch


def _check_parts(*notations: Bytes) -> None:
    for notation in notations:
        for part in notation if isinstance(notation, list) else [notation]:
            if isinstance(part, str):
                _check_hex(part)


def _check_hex(text: str) -> None:
    try:
        bytes.fromhex(text)
    except ValueError:
        raise ValueError(f"bytes must be hexadecimal, got {text[:20]!r}") from None


def as_bytes(notation: Bytes | ValueObject) -> bytes | None:
    """Return the bytes of a notation: hex, a text, bytes that repeat, a list of these, or null."""
    if isinstance(notation, list):
        return b"".join(map(_part, notation))
    return None if notation is None else _part(notation)


def _part(notation: Part) -> bytes:
    if isinstance(notation, str):
        return bytes.fromhex(notation)
    if not isinstance(notation.repeat, UnsetType) and not isinstance(notation.times, UnsetType):
        return bytes.fromhex(notation.repeat) * notation.times
    return str(notation.text).encode()


def as_headers(notation: HeaderPairs) -> Headers:
    """Return the headers of a record."""
    return [(name, as_bytes(value)) for name, value in notation]


def as_record(notation: RecordNotation) -> Record:
    """Return the record of a notation."""
    return Record(
        key=as_bytes(notation.key), value=as_bytes(notation.value), headers=as_headers(notation.headers)
    )


def as_value(notation: Any) -> Any:
    """Return an attribute's value: a JSON value, or bytes for ``{"hex": …}``."""
    if isinstance(notation, HexObject):
        return bytes.fromhex(notation.hex)
    if isinstance(notation, dict) and set(notation) == {"hex"}:
        return bytes.fromhex(notation["hex"])
    return notation


def as_data(notation: Data) -> Any:
    """Return the data of an event: a JSON value, a text, bytes, or None."""
    if notation is None:
        return None
    if not isinstance(notation.hex, UnsetType):
        return bytes.fromhex(notation.hex)
    if not isinstance(notation.text, UnsetType):
        return notation.text
    return notation.json if notation.json is not UNSET else as_bytes(notation)


def as_event(notation: EventNotation) -> Event:
    """Return the event of a notation; raises `InvalidEvent`."""
    attributes = {name: as_value(value) for name, value in notation.attributes.items()}
    return Event(data=as_data(notation.data), **attributes)
