"""Cases of attributes and events by each entry point: the constructor, headers and event formats.

An entry point turns the attributes of a case into its input: arguments of the constructor,
or a record to read. `_raw_encoders` writes the values, so that a case can use values which
no writer writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, Literal, NamedTuple

from msgspec import UNSET, UnsetType

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import CORE, INTEGER_RANGE, AttributeType, canonical_text
from cloudevents_kafka.binding import from_record, to_record
from cloudevents_kafka.errors import CloudEventsKafkaError, InvalidEvent, NotAnEvent
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record
from conformance._case import KINDS, MODES, Case, CaseFailed, require, require_equal
from conformance._compare import attributes_of, check_attribute, texts
from conformance._raw_encoders import avro, avro_compact, protobuf
from conformance.notation import Attribute, EventNotation, as_event

EntryPoint = Literal["constructor", "headers", "json", "avro", "avro-compact", "protobuf"]


class Input(NamedTuple):
    """The input of an entry point: arguments of the constructor, or a record.

    ``is_choice`` is whether the specification leaves open the outcome. It does if no writer
    produces such a value: a text in place of a type that has a field of its own, or an integer
    that is too large for the format. It also does if a required header is missing, whose outcome
    is a broken event or no event.
    """

    entry_point: str
    content: dict[str, Any] | Record
    is_choice: bool = False


_MINIMUM: Final = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
_TYPES_WITH_FIELDS: Final = {
    "avro": {AttributeType.BINARY},
    "avro-compact": {AttributeType.BINARY, AttributeType.TIMESTAMP},
    "protobuf": {AttributeType.BINARY, AttributeType.TIMESTAMP},
}
"""Types that have a field of their own in a format, so that they are not written as text."""
_JSON_TYPES: Final = {AttributeType.BOOLEAN, AttributeType.INTEGER}


class EntryCase(Case):
    """Attributes that are accepted or refused by every entry point that can express them."""

    accepted: bool

    @property
    def accepts(self) -> bool:
        """Whether the attributes are accepted."""
        return self.accepted

    def inputs(self) -> Iterator[Input]:
        """Return an input for every entry point that can express the case."""
        raise NotImplementedError

    def _faults(self) -> set[str | None] | None:
        """Return the attributes at fault, or None if the case leaves them open."""
        raise NotImplementedError

    def _check_event(self, event: Event) -> None:
        """Compare an accepted event with the case."""
        raise NotImplementedError

    def _check(self) -> None:
        for input in self.inputs():
            try:
                self.check_input(input)
            except (CaseFailed, CloudEventsKafkaError) as error:
                raise CaseFailed(f"{input.entry_point}: {error}") from error

    def check_input(self, input: Input) -> None:
        """Construct or read the event by one entry point, or check the attributes at fault."""
        content = input.content
        try:
            event = from_record(content) if isinstance(content, Record) else Event(**content)
        except InvalidEvent as error:
            if self.accepted:
                raise
            expected, found = self._faults(), attributes_of(error.problems)
            require(expected is None or found == expected, f"the fault must be {expected}: {error}")
        except NotAnEvent as error:
            require(not self.accepted and _misses_header(content), f"must be a broken event: {error}")
        else:
            require(self.accepted, f"must be refused, but was accepted as {event}")
            self._check_event(event)

    def _expressed(
        self, values: dict[str, Any], texts: dict[str, Any], names: Iterable[str] | None = None
    ) -> Iterator[Input]:
        """Yield the inputs of entry points that can express values, or in headers texts."""
        for name in names or _TYPES:
            attributes = texts if name == "headers" else values
            if not all(isinstance(value, _TYPES[name]) for value in attributes.values()):
                continue
            if name == "protobuf" and self.accepted and isinstance(attributes.get("time"), str):
                continue  # P-02: a time is a timestamp there, and a text must be refused
            content = _content(name, attributes)
            if content is not None:
                is_choice = any(_is_misplaced(name, *attribute) for attribute in values.items())
                yield Input(name, content, is_choice)


class AttributeCase(EntryCase, tag="attribute"):
    """One attribute of an event that is otherwise minimal."""

    one_of: ClassVar = ("value", "json", "code_units", "absent")
    attribute: str
    value: Attribute | UnsetType = UNSET
    json: str | None = None
    code_units: list[str] | None = None
    absent: bool = False
    text: str | None = None
    typed: Attribute | None = None
    fault: str | UnsetType | None = UNSET
    entry_points: list[EntryPoint] | None = None

    def inputs(self) -> Iterator[Input]:
        """Yield the event with the attribute, without it, or with JSON in its place."""
        name, value = self.attribute, self._value()
        if self.absent:
            yield from _inputs_without(name)
        elif self.json is not None:
            yield Input("json", _json_record({**_json_texts(_MINIMUM), name: self.json}))
        else:
            is_converted = isinstance(value, int) and type_of(name) in _JSON_TYPES  # as headers do by type
            text = canonical_text(value) if is_converted else value
            yield from self._expressed({**_MINIMUM, name: value}, {**_MINIMUM, name: text}, self.entry_points)

    def _value(self) -> Any:
        if self.code_units is not None:
            return text_of(self.code_units)
        return self.value.value if isinstance(self.value, Attribute) else None

    def _faults(self) -> set[str | None] | None:
        return None if self.fault is None else {self.fault if isinstance(self.fault, str) else self.attribute}

    def _check_event(self, event: Event) -> None:
        """Compare the attribute, also after it is written and read in each mode."""
        name = self.attribute
        if self.absent:
            require(name not in event and event.get(name) is None, f"{name} must be absent: {event}")
            return
        check_attribute(event, name, self._value() if self.text is None else self.text)
        if self.typed is not None:
            check_attribute(event, name, self.typed.value)
        for mode in MODES:
            again = from_record(to_record(event, mode=mode))
            require_equal(again.text(name), event.text(name), f"{name} after {mode} mode")


class ConstructCase(EntryCase, tag="construct"):
    """A whole event."""

    event: EventNotation
    faults: tuple[str, ...] = ()

    def inputs(self) -> Iterator[Input]:
        """Yield the event; one with data only for the constructor."""
        attributes, data = self.event.values, self.event.data.value
        if data is not None:
            yield Input("constructor", {**attributes, "data": data})
            return
        yield from self._expressed(
            attributes, {name: canonical_text(attributes[name]) for name in attributes}
        )

    def _faults(self) -> set[str | None]:
        return {*self.faults}

    def _check_event(self, event: Event) -> None:
        require_equal(texts(event), texts(as_event(self.event)), "the attributes")


KINDS.update(attribute=AttributeCase, construct=ConstructCase)


def _misses_header(content: Mapping[str, Any] | Record) -> bool:
    """Return whether a required header is missing."""  # K-11: "a record with fewer is not an event"
    if not isinstance(content, Record):
        return False
    return not {f"ce_{name}" for name in _MINIMUM} <= {name for name, value in content.headers if value}


def _is_misplaced(entry_point: str, name: str, value: Any) -> bool:
    if entry_point not in _TYPES_WITH_FIELDS:
        return False
    if isinstance(value, str):
        return name not in CORE and type_of(name) in _TYPES_WITH_FIELDS[entry_point]
    return isinstance(value, int) and value not in INTEGER_RANGE


def text_of(code_units: list[str]) -> str:
    """Return the text of UTF-16 code units; surrogates without a pair are kept."""
    return bytes.fromhex("".join(code_units)).decode("utf-16-be", "surrogatepass")


# --- entry points ----------------------------------------------------------------

_TYPES: Final[dict[str, Any]] = {
    "constructor": object,
    "headers": str,
    "json": (str, int, float, list, dict),
    **dict.fromkeys(("avro", "avro-compact", "protobuf"), (str, int, bytes)),
}
"""The types of the values that each entry point can express."""
_ENCODERS: Final = {"avro": avro, "avro-compact": avro_compact, "protobuf": protobuf}


def _content(entry_point: str, attributes: Mapping[str, Any]) -> dict[str, Any] | Record | None:
    """Return the content of an input, or None if the entry point cannot express the attributes."""
    match entry_point:
        case "constructor":
            return {**attributes}
        case "headers":
            return Record(headers=[_header(name, text) for name, text in attributes.items()])
        case "json":
            return _json_record(_json_texts(attributes))
    value = _ENCODERS[entry_point]({**attributes})
    return None if value is None else _structured_record(entry_point, value)


def _inputs_without(name: str) -> Iterator[Input]:
    """Yield the minimal event without an attribute, and with null in its place."""
    rest = {n: v for n, v in _MINIMUM.items() if n != name}
    is_required = name in _MINIMUM
    yield Input("constructor", {"specversion": None, **rest, name: None})
    for entry_point, has_null in (("headers", True), ("json", True), ("avro", True), ("protobuf", False)):
        is_choice = is_required and entry_point == "headers"
        yield Input(entry_point, _content(entry_point, rest) or {}, is_choice)
        if has_null:
            content = _content(entry_point, {**rest, name: None})
            yield Input(f"{entry_point}, null", content or {}, is_choice)
    if not is_required:
        yield Input("avro-compact, null", _content("avro-compact", rest) or {})


def _header(name: str, text: str | None) -> tuple[str, bytes | None]:
    value = None if text is None else text.encode("utf-8", "surrogatepass")
    return "content-type" if name == "datacontenttype" else f"ce_{name}", value


def _json_texts(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in attributes.items()}


def _json_record(members: Mapping[str, str]) -> Record:
    envelope = "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members.items()) + "}"
    return _structured_record("json", envelope.encode())


def _structured_record(name: str, value: bytes) -> Record:
    content_type = f"application/cloudevents+{name}".encode()
    return Record(value=value, headers=[("content-type", content_type)])
