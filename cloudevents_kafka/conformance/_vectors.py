"""The cases of vector files: one typed struct for each kind, tagged by ``kind``.

``spec-conformance/README.md`` says what must hold for each kind. A field that is left out
is None, False or empty, or UNSET where null means something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.conformance.notation import (
    BodyObject,
    Bytes,
    Data,
    EventNotation,
    Expected,
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


class Case(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"
):
    """The fields that all cases have."""

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
        return bool(_ACCEPTS.get(self.kind, _is_not_refused)(self))


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
        if self.value is UNSET and self.json is None and self.code_units is None and not self.absent:
            raise ValueError("one of value, json, code_units and absent is missing")
        try:
            as_value(self.value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"value must be hexadecimal: {error}") from None


class ConstructCase(Case, frozen=True, tag="construct"):
    """A whole event, by every entry point."""

    event: EventNotation
    accepted: bool
    faults: list[str] | None = None

    def __post_init__(self) -> None:
        if not self.accepted and self.faults is None:
            raise ValueError("faults is missing")


class DecodeCase(Case, frozen=True, tag="decode"):
    """A record to read strictly and leniently."""

    record: RecordNotation
    strict: Expected
    lenient: Expected | None = None
    secret: str | None = None
    heeds: dict[_Labelled, list[str]] = {}


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


class SniffCase(Case, frozen=True, tag="sniff"):
    """Headers to sniff."""

    headers: HeaderPairs
    mode: Literal["structured", "binary", "not-an-event", "unsupported-format", "batch"]


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


class JsonBatchCase(Case, frozen=True, tag="json-batch"):
    """A JSON batch."""

    batch: str
    accepted: bool


class MomentCase(Case, frozen=True, tag="moment"):
    """An event with a moment, and the time at which to check it."""

    event: EventNotation
    attribute: Literal["expirytime", "deprecationsunset"]
    now: str
    over: bool


class SequenceCase(Case, frozen=True, tag="sequence"):
    """Events in the order in which they are read."""

    events: list[EventNotation]
    orders: list[Order]
    attribute: Literal["bamtxid"] | None = None
    missing: int = 0


class RelationCase(Case, frozen=True, tag="relation"):
    """Two events that are related or not."""

    events: tuple[EventNotation, EventNotation]
    relation: Literal["duplicate", "effect"]
    holds: bool


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
        if not self.encodings:
            raise ValueError("encodings must not be empty")


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


class ForwardCase(Case, frozen=True, tag="forward"):
    """A record of a signed event to change and forward."""

    record: RecordNotation
    signed: bool
    changes: dict[str, str | None] = {}
    data: Data | UnsetType = UNSET


CASE_TYPES: Final[dict[str, type[Case]]] = {
    str(cls.__struct_config__.tag): cls for cls in Case.__subclasses__()
}
"""The kinds of case, by name."""


def _is_not_refused(case: Case) -> bool:
    return not getattr(case, "refused", False)


_ACCEPTS: Final[dict[str, Callable[[Any], object]]] = {
    "attribute": lambda case: case.accepted,
    "construct": lambda case: case.accepted,
    "decode": lambda case: case.strict.verdict == "event",
    "equal": lambda case: case.equal,
    "forward": lambda case: case.signed,
    "json-batch": lambda case: case.accepted,
    "media-type": lambda case: case.is_json,
    "moment": lambda case: not case.over,
    "relation": lambda case: case.holds,
    "sequence": lambda case: (
        not {"gap", "later", "earlier", *(() if case.attribute else ["same"])} & {*case.orders}
    ),
    "size": lambda case: not case.too_large,
    "sniff": lambda case: case.mode in MODES,
    "verify": lambda case: case.verified,
}
"""Whether a case is of something accepted, for the kinds without a member ``refused``."""
