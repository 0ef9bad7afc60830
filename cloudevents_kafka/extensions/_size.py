"""The size of records on the wire, and its limit (core: Size Limits)."""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka.errors import Problem
from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.record import Record

SIZE_LIMIT: Final = 64 * 1024
"""The bytes that every intermediary must forward (S-01) and every consumer should accept (S-02)."""

_BATCH_HEADER: Final = 61  # bytes before the records of a batch, in message format 2
_FIXED_FIELDS: Final = 3  # attributes, and the deltas of timestamp and offset, which are 0 here


def wire_size(record: Record | Any) -> int:
    """Return the size in bytes of a batch with this record alone, uncompressed, as of Kafka 0.11.

    It has the key, the value, the headers and their frame: all but a few bytes of the request.
    """
    record = Record.of(record)
    size = _FIXED_FIELDS + _field(record.key) + _field(record.value) + zigzag.size(len(record.headers))
    for name, value in record.headers:
        size += _field(name.encode("utf-8", "surrogatepass")) + _field(value)
    return _BATCH_HEADER + zigzag.size(size) + size


def size_problem(record: Record | Any, limit: int = SIZE_LIMIT) -> Problem | None:
    """Return the problem of a record that is larger than intermediaries must forward, or None."""
    size = wire_size(record)
    if size <= limit:
        return None
    rule = f"should not be larger than {limit} bytes on the wire: store its data and send a dataref"
    return Problem(None, rule, "S-02", f"{size} bytes")


def _field(content: bytes | None) -> int:
    """Return the size of bytes after their length, which is -1 for null."""
    return 1 if content is None else zigzag.size(len(content)) + len(content)
