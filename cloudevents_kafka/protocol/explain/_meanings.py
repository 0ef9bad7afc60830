"""The meaning of a number, by the name of its field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cloudevents_kafka.primitives.epoch import format_milliseconds
from cloudevents_kafka.protocol.api_keys import api_name
from cloudevents_kafka.protocol.error_codes import BrokerErrorCode, ErrorCode

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
