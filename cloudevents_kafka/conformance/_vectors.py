"""The cases of vector files: one typed struct for each kind, tagged by ``kind``.

``spec-conformance/README.md`` says what must hold for each kind. A field that is left out
is None, False or empty, or UNSET where null means something else.
"""

from __future__ import annotations

from typing import Any, Final, Literal, Union

import msgspec
from msgspec import UNSET, Struct, UnsetType

from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.conformance.notation import (
    BodyObject,
    Bytes,
    Data,
    EventNotation,
    HeaderPairs,
    HexObject,
    RecordNotation,
    Scalar,
    WrittenRecord,
    as_value,
)

Format = Literal["json", "avro", "avro-compact", "protobuf"]
EntryPoint = Literal["constructor", "headers", "json", "avro", "avro-compact", "protobuf"]
Order = Literal["unnumbered", "first", "next", "gap", "later", "same", "earlier"]
_Labelled = Literal["dataclassification", "dataregulation", "datacategory"]

MODES: Final[tuple[ContentMode, ...]] = ("binary", "structured")
MODES_AND_FORMATS: Final[tuple[tuple[ContentMode, str | None], ...]] = (
    ("binary", None),
    *(("structured", name) for name in ("json", "avro", "avro-compact", "protobuf")),
)
"""The modes and formats that preserve every event exactly."""


# --- expectations ----------------------------------------------------------------


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


# --- cases -----------------------------------------------------------------------


class Case(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"
):
    """The fields that all cases have; `decode_case` decodes a case of any kind."""

    id: str
    clause: str
    source: str
    about: str
    choice: bool = False
    documented: bool = False

    @property
    def kind(self) -> str:
        """The kind of the case, by its name in the vectors."""
        return str(self.__struct_config__.tag)

    @property
    def accepts(self) -> bool:
        """Whether the case is of something that is accepted, not of something that is refused."""
        return not getattr(self, "refused", False)


class AttributeCase(Case, frozen=True, tag="attribute"):
    """One attribute of an event that is otherwise minimal."""

    attribute: str
    accepted: bool
    value: Any = UNSET
    json: str | None = None
    code_units: list[str] | None = None
    absent: bool = False
    text: str | None = None
    typed: bool | int | HexObject | None = None
    fault: str | UnsetType | None = UNSET
    entry_points: list[EntryPoint] | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` unless the case has a value and the value is well formed."""
        if self.value is UNSET and self.json is None and self.code_units is None and not self.absent:
            raise ValueError("one of value, json, code_units and absent is missing")
        try:
            as_value(self.value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"value must be hexadecimal: {error}") from None

    @property
    def accepts(self) -> bool:
        """Whether the value is accepted."""
        return self.accepted


class ConstructCase(Case, frozen=True, tag="construct"):
    """A whole event, by every entry point."""

    event: EventNotation
    accepted: bool
    faults: list[str] | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` if the event is refused without faults."""
        if not self.accepted and self.faults is None:
            raise ValueError("faults is missing")

    @property
    def accepts(self) -> bool:
        """Whether the event is accepted."""
        return self.accepted


class DecodeCase(Case, frozen=True, tag="decode"):
    """A record to read strictly and leniently."""

    record: RecordNotation
    strict: Expected
    lenient: Expected | None = None
    secret: str | None = None
    heeds: dict[_Labelled, list[str]] = {}

    @property
    def accepts(self) -> bool:
        """Whether strict reading returns an event."""
        return isinstance(self.strict, ExpectedEvent)


class EncodeCase(Case, frozen=True, tag="encode"):
    """An event to write."""

    event: EventNotation
    mode: ContentMode
    format: Format | None = None
    headers: HeaderPairs = []
    broker: Literal["0.8", "0.9", "0.10", "0.11"] | None = None
    record: WrittenRecord | None = None
    refused: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` if the result is missing."""
        if self.record is None and not self.refused:
            raise ValueError("record is missing")


class TranscodeCase(Case, frozen=True, tag="transcode"):
    """A record to read and to write in another mode or format."""

    record: RecordNotation
    mode: ContentMode
    result: WrittenRecord
    format: Format | None = None


class RelayCase(Case, frozen=True, tag="relay"):
    """A record to read and to write unchanged."""

    record: RecordNotation


class RoundTripCase(Case, frozen=True, tag="round-trip"):
    """An event to write and read in every mode and format."""

    event: EventNotation


class EqualCase(Case, frozen=True, tag="equal"):
    """Two events to compare."""

    events: tuple[EventNotation, EventNotation]
    equal: bool

    @property
    def accepts(self) -> bool:
        """Whether the events are equal."""
        return self.equal


class SniffCase(Case, frozen=True, tag="sniff"):
    """Headers to sniff."""

    headers: HeaderPairs
    mode: Literal["structured", "binary", "not-an-event", "unsupported-format", "batch"]

    @property
    def accepts(self) -> bool:
        """Whether the headers are those of an event."""
        return self.mode in MODES


class AttributeMapper(Struct, frozen=True, forbid_unknown_fields=True):
    """A key mapper that uses an attribute."""

    attribute: str


class KeyCase(Case, frozen=True, tag="key"):
    """An event to send with a key or a key mapper."""

    event: EventNotation
    key: Bytes
    mapper: Literal["partitionkey"] | AttributeMapper | None
    record_key: Bytes
    partition: int | None = None


class MediaTypeCase(Case, frozen=True, tag="media-type"):
    """A media type that is JSON or not."""

    media_type: str
    is_json: bool

    @property
    def accepts(self) -> bool:
        """Whether the media type is JSON."""
        return self.is_json


class JsonBatchCase(Case, frozen=True, tag="json-batch"):
    """A JSON batch."""

    batch: str
    accepted: bool

    @property
    def accepts(self) -> bool:
        """Whether the batch is valid."""
        return self.accepted


class MomentCase(Case, frozen=True, tag="moment"):
    """An event with a moment, and the time at which to check it."""

    event: EventNotation
    attribute: Literal["expirytime", "deprecationsunset"]
    now: str
    over: bool

    @property
    def accepts(self) -> bool:
        """Whether the moment is still to come."""
        return not self.over


class SequenceCase(Case, frozen=True, tag="sequence"):
    """Events in the order in which they are read."""

    events: list[EventNotation]
    orders: list[Order]
    attribute: Literal["bamtxid"] | None = None
    missing: int = 0

    @property
    def accepts(self) -> bool:
        """Whether no event is missing, late or repeated."""
        good = {"unnumbered", "first", "next", *(["same"] if self.attribute else [])}
        return good.issuperset(self.orders)


class RelationCase(Case, frozen=True, tag="relation"):
    """Two events that are related or not."""

    events: tuple[EventNotation, EventNotation]
    relation: Literal["duplicate", "effect"]
    holds: bool

    @property
    def accepts(self) -> bool:
        """Whether the events are related."""
        return self.holds


class Encoding(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A mode and a format in which an event is written."""

    mode: ContentMode
    format: Format | None = None


class SizeCase(Case, frozen=True, tag="size"):
    """An event whose encodings are small enough or not."""

    event: EventNotation
    encodings: list[Encoding]
    too_large: bool
    referred: bool | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` if the case has no encodings."""
        if not self.encodings:
            raise ValueError("encodings must not be empty")

    @property
    def accepts(self) -> bool:
        """Whether each encoding is small enough."""
        return not self.too_large


class HttpMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """An HTTP message; the names of its headers are in lower case."""

    headers: dict[str, str]
    body: str | BodyObject


class HttpCase(Case, frozen=True, tag="http"):
    """An HTTP message to read and to write."""

    message: HttpMessage
    mode: ContentMode
    event: EventNotation | None = None
    refused: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` if the result is missing."""
        if self.event is None and not self.refused:
            raise ValueError("event is missing")


class SignCase(Case, frozen=True, tag="sign"):
    """An event to sign."""

    event: EventNotation
    extensions: list[str]
    core: str | None = None
    ext: str | None = None
    refused: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` if the result is missing."""
        if self.core is None and not self.refused:
            raise ValueError("core is missing")


class VerifyCase(Case, frozen=True, tag="verify"):
    """A record of a signed event to verify."""

    record: RecordNotation
    keys: dict[str, str]
    verified: Literal["core and extensions", "core", "core, extensions skipped", "nothing"] | None
    behaviour: Literal["strict", "passthrough", "core-only"] = "strict"
    required: bool = True
    attributes: dict[str, Scalar] | None = None
    unverified: list[str] = []

    @property
    def accepts(self) -> bool:
        """Whether the event is returned."""
        return self.verified is not None


class ForwardCase(Case, frozen=True, tag="forward"):
    """A record of a signed event to change and forward."""

    record: RecordNotation
    signed: bool
    changes: dict[str, str | None] = {}
    data: Data | UnsetType = UNSET

    @property
    def accepts(self) -> bool:
        """Whether the event keeps its signature."""
        return self.signed


CASE_TYPES: Final[dict[str, type[Case]]] = {
    str(cls.__struct_config__.tag): cls for cls in Case.__subclasses__()
}
"""The kinds of case, by name."""


# --- files -----------------------------------------------------------------------


class MatrixRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the decode matrix: a case of kind ``decode`` with a name and a number for an id."""

    name: str
    row: int
    clause: str
    about: str
    record: RecordNotation
    strict: Expected
    lenient: Expected
    choice: bool = False
    documented: bool = False


class VectorFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A vector file whose cases are not decoded yet."""

    about: str
    cases: list[msgspec.Raw]
    clauses: list[str] | None = None
    declared: dict[str, AttributeType] = {}


class _Head(Struct):
    kind: Any = UNSET
    id: Any = UNSET
    name: Any = UNSET


_DECODER: Final[msgspec.json.Decoder[Case]] = msgspec.json.Decoder(
    Union[tuple(CASE_TYPES.values())]  # noqa: UP007  # the union of a table
)
_ROW_DECODER: Final = msgspec.json.Decoder(MatrixRow)


def decode_case(raw: bytes | msgspec.Raw, *, file: str, number: int = 1) -> Case:
    """Return a case of a vector file, or a row of its decode matrix.

    Raises `ValueError`, which names the case, by its ``number`` if it has no id, and the wrong member.
    """
    names: list[object] = [number]
    try:
        head = msgspec.json.decode(raw, type=_Head)
        names = [name for name in (head.id, head.name, number) if name is not UNSET]
        if head.kind is UNSET and head.name is not UNSET:
            return _from_row(_ROW_DECODER.decode(raw), file)
        _check_kind(head.kind)
        return _DECODER.decode(raw)
    except ValueError as error:
        raise ValueError(f"case {names[0]}: {error}") from None


def _check_kind(kind: object) -> None:
    if not isinstance(kind, str) or kind not in CASE_TYPES:
        found = "none" if kind is UNSET else repr(kind)
        raise ValueError(f"kind must be one of {', '.join(sorted(CASE_TYPES))}, got {found}")


def _from_row(row: MatrixRow, file: str) -> Case:
    members = {name: getattr(row, name) for name in row.__struct_fields__ if name not in {"name", "row"}}
    return DecodeCase(id=f"decode-matrix/{row.name}", source=file, **members)
