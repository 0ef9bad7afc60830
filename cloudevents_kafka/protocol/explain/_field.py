"""The fields and problems of a frame, and the meanings of the fields' values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from cloudevents_kafka.primitives.epoch import format_milliseconds
from cloudevents_kafka.protocol.api_keys import api_name
from cloudevents_kafka.protocol.error_codes import BrokerErrorCode, ErrorCode
from cloudevents_kafka.protocol.records import Codec
from cloudevents_kafka.protocol.records.nesting import Nesting

MAX_FIELDS: Final = 500_000
"""The largest number of fields of a frame; compressed data is untrusted, and may contain more fields."""
_MAX_DECOMPRESSED: Final = 16 * 1024 * 1024
"""The largest size of all data that is decompressed for one frame, in bytes."""


class Field(NamedTuple):
    """The bytes from index ``at`` to ``end``, with their path, type, value and meaning (``note``).

    ``raw`` contains the bytes. The ``value`` of an array is the number of its elements; the ``value`` of
    records is their size. Further fields describe the elements of the array, and the records. For a field of
    the frame itself, ``within`` is "". For a field in compressed data, ``within`` is the path of the
    compressed data, and ``at`` and ``end`` are indexes in the decompressed data.

    Examples:
        >>> from cloudevents_kafka.protocol.explain import explain_request
        >>> frame = explain_request(bytes.fromhex("0000000a00120000000000070000"))
        >>> field = frame.fields[1]
        >>> field.at, field.raw.hex(), field.path, field.value, field.note
        (4, '0012', 'header.request_api_key', 18, 'ApiVersions')
    """

    at: int
    end: int
    path: str
    type: str
    value: Any
    raw: bytes
    note: str = ""
    within: str = ""


class Problem(NamedTuple):
    """A broken rule, and where the bytes break it; ``at`` and ``within`` have the same meaning as in `Field`.

    Examples:
        >>> from cloudevents_kafka.protocol.explain import explain_request
        >>> explain_request(bytes.fromhex("0000000a001200000000")).problems[0].rule
        'the size must be 6, got 10'
    """

    at: int
    path: str
    rule: str
    within: str = ""

    def __str__(self) -> str:
        """Return the problem as text, formatted like the text of an error."""
        where = f" of the decompressed {self.within}" if self.within else ""
        return f"{self.path + ' ' if self.path else ''}at byte {self.at}{where}: {self.rule}"


@dataclass
class ExplainedFrame:
    """The fields of a frame, in the order of their bytes; together, the fields cover each byte once.

    The fields of decompressed data follow the field of the compressed data. The bytes that follow a problem
    are a field of type ``unread``.

    Examples:
        >>> from cloudevents_kafka.protocol.explain import explain_request
        >>> frame = explain_request(bytes.fromhex("0000000a00120000000000070000"))
        >>> frame.api, frame.version, frame.value("header.correlation_id")
        ('ApiVersions', 0, 7)
    """

    kind: str
    size: int
    max_fields: int = field(default=MAX_FIELDS, repr=False)
    api: str = "unknown"
    key: int | None = None
    version: int | None = None
    known: bool = False
    """Whether this library supports this version of the API."""
    fields: list[Field] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    nesting: Nesting = field(init=False, repr=False, compare=False)
    """The number of bytes to which the frame's compressed data may still expand."""
    is_cut: bool = field(default=False, init=False, repr=False, compare=False)
    """Whether some fields are missing, because there are too many fields, or too many nested message sets."""

    def __post_init__(self) -> None:
        """Set the limit for the size of decompressed data."""
        self.nesting = Nesting(_MAX_DECOMPRESSED, self.size)

    @property
    def read(self) -> int:
        """The number of bytes of the frame, without the bytes of ``unread`` fields."""
        return sum(f.end - f.at for f in self.fields if not f.within and f.type != "unread")

    def value(self, path: str) -> Any:
        """Return the value of the first field with this path, or None if no field has this path."""
        return next((field.value for field in self.fields if field.path == path), None)


def describe_value(name: str, value: Any, codes: type[BrokerErrorCode] = ErrorCode) -> str:
    """Return the meaning of a field's value, or "" if the value explains itself."""
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    match name:
        case "error_code":
            known = codes.find(value)
            return "an unknown error code" if known is None else known.name
        case "request_api_key" | "api_key":
            return api_name(value)
        case "base_timestamp" | "max_timestamp":
            return format_time(value)
    meanings = _MEANINGS.get(name, {})
    return meanings.get(value) or (format_time(value) if meanings is _TIMES else "")


_TIMES: Final = {-1: "none, or the latest", -2: "none, or the earliest"}
_MEANINGS: Final = {
    "acks": {-1: "all replicas in sync", 0: "no answer", 1: "the leader"},
    "isolation_level": {0: "read uncommitted", 1: "read committed"},
    "timestamp": _TIMES,
    "log_append_time_ms": _TIMES,
}


def format_time(milliseconds: int) -> str:
    """Return milliseconds since the epoch as an RFC 3339 timestamp, or "" outside the years 1 to 9999."""
    try:
        return format_milliseconds(milliseconds)
    except OverflowError:
        return ""


def describe_attributes(number: int, magic: int) -> str:
    """Return the meaning of the attributes of a message or batch."""
    codec = number & 7
    words = [Codec(codec).name.lower() if codec <= max(Codec) else f"unknown codec {codec}"]
    if magic:
        words.append("log append time" if number & 8 else "create time")
    if magic == 2:
        flags = {0x10: "transactional", 0x20: "control", 0x40: "delete horizon"}
        words += [word for bit, word in flags.items() if number & bit]
    return ", ".join(words)
