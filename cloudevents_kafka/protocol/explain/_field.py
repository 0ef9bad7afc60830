"""The fields and problems of a frame, the cursor that collects them, and the meaning of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cloudevents_kafka.primitives.epoch import format_milliseconds
from cloudevents_kafka.protocol.api_keys import api_name
from cloudevents_kafka.protocol.error_codes import BrokerErrorCode, ErrorCode
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated

MAX_FIELDS: Final = 500_000
"""The largest number of fields of a frame: compressed data is untrusted input, and may have more."""
MAX_DECOMPRESSED: Final = 16 * 1024 * 1024
"""The largest decompressed size of the data in one frame, in bytes."""


class Field(NamedTuple):
    """The bytes from index ``at`` to ``end``, with path, type, value and meaning (``note``).

    ``raw`` is the bytes. The ``value`` of an array or of records is their count or size; their content
    follows as further fields. ``within`` is "" for a field of the frame; for a field in compressed data
    it is the path of that data, and the indexes are those in the decompressed data.
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
    """A broken rule and its position; ``at`` and ``within`` are as in `Field`."""

    at: int
    path: str
    rule: str
    within: str = ""

    def __str__(self) -> str:
        """Return the text of the problem, as errors write it."""
        where = f" of the decompressed {self.within}" if self.within else ""
        return f"{self.path + ' ' if self.path else ''}at byte {self.at}{where}: {self.rule}"


class Explained(NamedTuple):
    """The fields of a frame in the order of their bytes, which cover each byte once.

    The fields of decompressed data follow the field of the compressed data. The bytes after a problem are
    a field of type ``unread``.
    """

    kind: str
    api: str
    key: int | None
    version: int | None
    size: int
    fields: list[Field]
    problems: list[Problem]
    known: bool
    """Whether this library supports the API in the version."""

    @property
    def read(self) -> int:
        """The number of bytes of the frame before any problem."""
        return sum(f.end - f.at for f in self.fields if not f.within and f.type != "unread")

    def value(self, path: str) -> Any:
        """Return the value of the first field with a path, None without one."""
        return next((field.value for field in self.fields if field.path == path), None)


class TooManyFields(ProtocolError):
    """Raised if a frame has more fields than `MAX_FIELDS`."""


class Findings:
    """The fields and problems of a frame."""

    def __init__(self, max_fields: int = MAX_FIELDS) -> None:
        """Start without fields; accept up to ``max_fields``."""
        self.fields: Final[list[Field]] = []
        self.problems: Final[list[Problem]] = []
        self.allowance = MAX_DECOMPRESSED
        self._max_fields: Final = max_fields

    def add(self, field: Field) -> None:
        """Add a field; raise `TooManyFields` after the limit."""
        if len(self.fields) >= self._max_fields:
            raise TooManyFields(f"a frame must have at most {self._max_fields:,} fields; the rest is omitted")
        self.fields.append(field)


class Cursor:
    """A position in data, which adds a field for the bytes that it passes.

    Raises `Truncated` and `Malformed` with index and path, as the interpreter does.
    """

    def __init__(self, findings: Findings, data: bytes, at: int, end: int, within: str = "") -> None:
        """Start at index ``at`` of the data and stop at ``end``."""
        self.findings: Final = findings
        self.data: Final = data
        self.at = at
        self.end: Final = end
        self.within: Final = within

    def explained(
        self, kind: str, api: str, key: int | None, version: int | None, *, known: bool
    ) -> Explained:
        """Return the explanation of the frame, whose fields and problems are complete."""
        fields, problems = self.findings.fields, self.findings.problems
        return Explained(kind, api, key, version, len(self.data), fields, problems, known)

    def part(self, end: int) -> Cursor:
        """Return a cursor from the current index to an earlier end."""
        return Cursor(self.findings, self.data, self.at, end, self.within)

    def add_field(self, path: str, end: int, type: str, value: Any, note: str = "") -> None:
        """Add a field for the bytes up to ``end``, and advance to it."""
        raw = self.data[self.at : end]
        self.findings.add(Field(self.at, end, path, type, value, raw, note, self.within))
        self.at = end

    def check(self, size: int, path: str, at: int | None = None) -> int:
        """Return the index after ``size`` bytes; raise `Truncated` if they are missing."""
        at = self.at if at is None else at
        if at + size > self.end:
            raise Truncated(at + size - self.end, at=at, path=path)
        return at + size

    def add_problem(self, rule: str, path: str, at: int | None = None) -> None:
        """Add a problem that does not stop the decoding."""
        self.findings.problems.append(Problem(self.at if at is None else at, path, rule, self.within))

    def stop(self, error: ProtocolError, path: str) -> None:
        """Add the problem of an error, and the remaining bytes as an ``unread`` field."""
        found = problem(error, self.at, path, self.within)
        if not isinstance(error, TooManyFields) or not any(
            known.rule == found.rule for known in self.findings.problems
        ):
            self.findings.problems.append(found)
        if self.at < self.end:
            # Also after the limit, so that the fields cover all bytes.
            raw = self.data[self.at : self.end]
            self.findings.fields.append(
                Field(self.at, self.end, path, "unread", len(raw), raw, within=self.within)
            )
            self.at = self.end


def problem(error: ProtocolError, at: int, path: str, within: str = "") -> Problem:
    """Return the problem of an error, at the error's position if it has one."""
    if isinstance(error, Malformed):
        rule = error.rule
    elif isinstance(error, Truncated):
        rule = (
            f"the data must have at least {error.missing:,} more {'byte' if error.missing == 1 else 'bytes'}"
        )
    else:
        return Problem(at, path, str(error), within)
    return Problem(at if error.at is None else error.at, error.path or path, rule, within)


_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_FLAGS: Final = {0x10: "transactional", 0x20: "control", 0x40: "delete horizon"}


def describe_value(name: str, value: Any, codes: type[BrokerErrorCode] = ErrorCode) -> str:
    """Return the meaning of a field's value, "" if the value has no further meaning."""
    explain = _error if name == "error_code" else _NOTES.get(name)
    if explain is None or not isinstance(value, int) or isinstance(value, bool):
        return ""
    return _error(value, codes) if explain is _error else explain(value)


def format_time(milliseconds: int) -> str:
    """Return milliseconds since the epoch as an RFC 3339 timestamp, "" outside of its years."""
    try:
        return format_milliseconds(milliseconds)
    except OverflowError:
        return ""


def describe_attributes(number: int, magic: int) -> str:
    """Return the meaning of the attributes of a message or batch."""
    codec = number & 7
    words = [_CODECS[codec] if codec < len(_CODECS) else f"unknown codec {codec}"]
    if magic:
        words.append("log append time" if number & 8 else "create time")
    if magic == 2:
        words += [word for bit, word in _FLAGS.items() if number & bit]
    return ", ".join(words)


def _error(code: int, codes: type[BrokerErrorCode] = ErrorCode) -> str:
    known = codes.find(code)
    return "an unknown error code" if known is None else known.name


def _time(milliseconds: int) -> str:
    return {-1: "none, or the latest", -2: "none, or the earliest"}.get(milliseconds) or format_time(
        milliseconds
    )


def _among(*meanings: str, first: int = 0) -> Callable[[int], str]:
    words = dict(enumerate(meanings, first))
    return lambda value: words.get(value, "")


_NOTES: Final[dict[str, Callable[[int], str]]] = {
    "request_api_key": api_name,
    "api_key": api_name,
    "acks": _among("all replicas in sync", "no answer", "the leader", first=-1),
    "isolation_level": _among("read uncommitted", "read committed"),
    "timestamp": _time,
    "log_append_time_ms": _time,
    "base_timestamp": format_time,
    "max_timestamp": format_time,
}
