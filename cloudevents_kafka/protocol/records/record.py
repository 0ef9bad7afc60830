"""Record: one message as it stands in a partition, in whatever form it was written.

None and ``b""`` are different things in a key, a value and a header: null is no value,
``b""`` is a value of no bytes.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

Headers = list[tuple[str, bytes | None]]
"""Header names and values in wire order; names may repeat.

A name that is not UTF-8 is kept by surrogate escapes, so it can be written back unchanged.
"""


class TimestampType(IntEnum):
    """Who set a record's timestamp."""

    CREATE = 0
    """The producer."""
    LOG_APPEND = 1
    """The broker, when it wrote the record to its log."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record's key, value and headers, its time, and its offset in the partition.

    ``timestamp`` is in milliseconds since the epoch, None where there is none: always in
    magic 0. ``offset`` is -1 as long as the record has none. Only magic 2 has headers.
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = []
    timestamp: int | None = None
    offset: int = -1
    timestamp_type: TimestampType = TimestampType.CREATE
