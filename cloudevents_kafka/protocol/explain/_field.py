"""The fields and problems of a frame, and the meaning of values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from cloudevents_kafka.primitives.epoch import format_milliseconds
from cloudevents_kafka.protocol.api_keys import api_name
from cloudevents_kafka.protocol.error_codes import BrokerErrorCode, ErrorCode
from cloudevents_kafka.protocol.records import Codec
from cloudevents_kafka.protocol.records.nesting import Nesting

MAX_FIELDS: Final = 500_000
"""The largest number of fields of a frame: compressed data is untrusted input, and may have more."""
_MAX_DECOMPRESSED: Final = 16 * 1024 * 1024
"""The largest decompressed size of the data in one frame, in bytes."""


class Field(NamedTuple):
    """The bytes from index ``at`` to ``end``, with path, type, value and meaning (``note``).

    ``raw`` is the bytes. The ``value`` of an array or of records is their count or size; their content
    follows as further fields. ``within`` is "" for a field of the frame; for a field in compressed data
    it is the path of that data, and the indexes are those in the decompressed data.

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
    """A broken rule and its position; ``at`` and ``within`` are as in `Field`.

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
        """Return the text of the problem, as errors write it."""
        where = f" of the decompressed {self.within}" if self.within else ""
        return f"{self.path + ' ' if self.path else ''}at byte {self.at}{where}: {self.rule}"


@dataclass
class ExplainedFrame:
    """The fields of a frame in the order of their bytes, which cover each byte once.

    The fields of decompressed data follow the field of the compressed data. The bytes after a problem are
    a field of type ``unread``.

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
    """Whether this library supports the API in the version."""
    fields: list[Field] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    nesting: Nesting = field(init=False, repr=False, compare=False)
    """How much may still be decompressed."""
    is_cut: bool = field(default=False, init=False, repr=False, compare=False)
    """Whether further fields are left out: there are too many, or compressed sets are nested."""

    def __post_init__(self) -> None:
        """Set the limit of what is decompressed."""
        self.nesting = Nesting(_MAX_DECOMPRESSED, self.size)

    @property
    def read(self) -> int:
        """The number of bytes of the frame before any problem."""
        return sum(f.end - f.at for f in self.fields if not f.within and f.type != "unread")

    def value(self, path: str) -> Any:
        """Return the value of the first field with a path, None without one."""
        return next((field.value for field in self.fields if field.path == path), None)


def describe_value(name: str, value: Any, codes: type[BrokerErrorCode] = ErrorCode) -> str:
    """Return the meaning of a field's value, "" if the value has no further meaning."""
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
    """Return milliseconds since the epoch as an RFC 3339 timestamp, "" outside of its years."""
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
