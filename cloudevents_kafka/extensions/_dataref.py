"""The size limit of events (core, Size Limits), and data that is stored elsewhere (extension dataref).

The library itself never calls `store_data` and `fetch_data`, because a receiver that does not support the
extension would receive the event without its data.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, get_args

import msgspec

from cloudevents_kafka.binding import ContentMode, to_record
from cloudevents_kafka.codecs.json import decode_json
from cloudevents_kafka.codecs.payload import DataKind, implies_json, to_utf8
from cloudevents_kafka.errors import DataError, EncodeError, Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions._content_type import with_content_type
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.record import Record, RecordInput

SIZE_LIMIT: Final = 64 * 1024
"""The event size that intermediaries must forward (S-01) and consumers should accept (S-02), in bytes.

Examples:
    >>> from cloudevents_kafka.extensions import SIZE_LIMIT
    >>> SIZE_LIMIT
    65536
"""

Store = Callable[[bytes], str]
"""A function that stores bytes and returns a URI-reference from which the bytes can be fetched."""

Fetch = Callable[[str], bytes]
"""A function that returns the bytes at a URI-reference.

The reference is untrusted input: fetch data only from known servers and paths.
"""


def size_problem(record: RecordInput, limit: int = SIZE_LIMIT) -> Problem | None:
    """Return a problem if a record is larger than ``limit`` bytes, else None.

    Examples:
        >>> from cloudevents_kafka import Record
        >>> from cloudevents_kafka.extensions import size_problem
        >>> problem = size_problem(Record(value=bytes(70_000)))
        >>> problem and problem.value
        '70072 bytes'
    """
    size = Record.of(record).wire_size()
    if size <= limit:
        return None
    rule = f"should not be larger than {limit} bytes on the wire: store its data and send a dataref"
    return Problem(None, rule, "S-02", f"{size} bytes")  # no record has 1 byte


def store_data(event: Event, store: Store, *, limit: int = SIZE_LIMIT, keep: bool = False) -> Event:
    """Return the event; in an event of more than ``limit`` bytes, a ``dataref`` replaces the data.

    The size of an event is the size of its record without a key. This size is calculated for both content
    modes, and the larger size counts (S-03). An event of at most ``limit`` bytes, or without data, is
    returned unchanged. If ``keep`` is True, the returned event contains both the ``dataref`` and the data. If
    the event already has a ``dataref``, it is replaced. A signature of the event is valid again after a
    receiver has called `fetch_data`. Raises the exceptions of the function ``store``, and `DataError` if
    ``store`` does not return a reference.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import store_data
        >>> event = Event(id="1", source="/shop", type="t", data=bytes(100_000))
        >>> store_data(event, lambda data: "s3://orders/1")
        Event(id='1', source='/shop', type='t', dataref='s3://orders/1')
    """
    if event.payload is None or (len(event.payload) <= limit and _largest_size(event) <= limit):
        return event
    reference = store(event.payload)
    if not isinstance(reference, str) or not reference:
        raise DataError(
            "store must return the URI-reference of the data (X-04, extension dataref), "
            f"got {preview(reference)}"
        )
    if keep:
        return event.replace(dataref=reference)
    return with_content_type(event).replace(data=None, dataref=reference)  # only data implies JSON


def fetch_data(event: Event, fetch: Fetch) -> Event:
    """Return the event with the data to which its ``dataref`` refers.

    An event without ``dataref`` is returned unchanged. An event that contains data is also returned unchanged
    if this data equals the fetched data, byte for byte or as JSON. Raises `DataError` if the event contains
    other data than the fetched data (X-04: the two must be identical), or if ``fetch`` does not return bytes.
    Exceptions of the function ``fetch`` are raised unchanged.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import fetch_data
        >>> event = Event(id="1", source="/shop", type="t", dataref="s3://orders/1")
        >>> fetch_data(event, {"s3://orders/1": b"9.50"}.__getitem__).data
        b'9.50'
    """
    reference = event.text("dataref")
    if reference is None:
        return event
    fetched = fetch(reference)
    if not isinstance(fetched, bytes | bytearray | memoryview):
        raise DataError(
            f"fetch must return the bytes at dataref {preview(reference)}, or raise an error "
            f"(X-04, extension dataref), got {type(fetched).__name__}"
        )
    fetched = bytes(fetched)
    if event.payload is None:
        return event.replace(data=fetched)
    if fetched != event.payload and not _is_same_json(fetched, event):
        raise DataError("data and the data at dataref must be identical (X-04, extension dataref)")
    return event


def _largest_size(event: Event) -> int:
    sizes = [len(event.payload or b"")]  # S-03: the largest encoding counts
    for mode in get_args(ContentMode):
        with suppress(EncodeError):  # an event that one mode cannot represent is sent in the other mode
            sizes.append(to_record(event, mode=mode).wire_size())
    return max(sizes)


def has_json(event: Event) -> bool:
    """Return whether an event has JSON data, according to the content type or the kind of the data."""
    untyped = event.datacontenttype is None and event.kind is not DataKind.JSON
    return event.payload is not None and implies_json(event.datacontenttype) and not untyped


def decode_event_json(event: Event, data: bytes) -> Any:
    """Return the value of JSON data with an event's content type. Raises `DataError` for invalid JSON."""
    return decode_json(to_utf8(data, event.datacontenttype))


def _is_same_json(fetched: bytes, event: Event) -> bool:
    """Return whether two pieces of JSON data have the same value; 1, 1.0 and true are three values."""
    if not has_json(event):
        return False
    try:
        texts = {
            msgspec.json.encode(decode_event_json(event, data), order="sorted")
            for data in (fetched, event.payload or b"")
        }
    except (DataError, RecursionError):
        return False
    return len(texts) == 1
