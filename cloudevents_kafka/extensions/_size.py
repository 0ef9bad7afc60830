"""The size of a record on the wire, and what is too large for every hop (core: Size Limits)."""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka.errors import Problem
from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.record import Record

SIZE_LIMIT: Final = 64 * 1024
"""Bytes that every intermediary must forward (S-01) and every consumer should take (S-02)."""

_BATCH: Final = 61  # what stands before the records of a batch, in message format 2
_FIXED: Final = 3  # attributes, and the deltas of timestamp and offset, which are 0 here


def wire_size(record: Record | Any) -> int:
    """Return the bytes of a record on the wire: key, value, headers, and the frame around them.

    That is a batch of this record alone, uncompressed, in the format of Kafka 0.11 and
    later: the most that it can take but for a request's own few bytes.
    """
    record = Record.of(record)
    size = _FIXED + _field(record.key) + _field(record.value) + zigzag.size(len(record.headers))
    for name, value in record.headers:
        size += _field(name.encode("utf-8", "surrogatepass")) + _field(value)
    return _BATCH + zigzag.size(size) + size


def size_problem(record: Record | Any, limit: int = SIZE_LIMIT) -> Problem | None:
    """Tell that a record is larger than intermediaries must forward; None where it is not."""
    size = wire_size(record)
    if size <= limit:
        return None
    rule = f"should not be larger than {limit} bytes on the wire: store its data, and send a dataref"
    return Problem(None, rule, "S-02", f"{size} bytes")


def _field(content: bytes | None) -> int:
    """Return the size of bytes behind their length, which is -1 for null."""
    return 1 if content is None else zigzag.size(len(content)) + len(content)
