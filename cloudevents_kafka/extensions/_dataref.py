"""Claim checks: store large data elsewhere, and fetch it again (extension dataref).

`store_data` passes the data of a large event to a function of the user and sends a reference
instead; `fetch_data` fetches it. Only the user calls them: a receiver that does not support the
extension would find no data.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from cloudevents_kafka.binding import ContentMode, to_record
from cloudevents_kafka.codecs.json import decode_json
from cloudevents_kafka.codecs.payload import DataKind, implies_json, to_utf8
from cloudevents_kafka.errors import DataError, EncodeError, preview
from cloudevents_kafka.event import Event, with_content_type
from cloudevents_kafka.extensions._size import SIZE_LIMIT, wire_size

_MODES: Final[tuple[ContentMode, ...]] = ("binary", "structured")

Store = Callable[[bytes], str]
"""Store bytes and return the URI-reference from which they can be fetched."""

Fetch = Callable[[str], bytes]
"""Return the bytes at a URI-reference, which is untrusted input: fetch from known places only."""


def store_data(event: Event, store: Store, *, limit: int = SIZE_LIMIT, keep: bool = False) -> Event:
    """Return the event with a ``dataref`` in place of its data if it is larger than ``limit`` bytes.

    The size is that of the larger of its records in binary and structured mode (S-03), without a
    key. A smaller event, or one without data, is returned unchanged. ``keep`` keeps the data in
    the event too. An existing ``dataref`` is replaced. A signature is valid again when the data is
    fetched. Raises what ``store`` raises, and `DataError` if it does not return a reference.
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
    return with_content_type(event).replace(data=None, dataref=reference)  # without data it implies nothing


def fetch_data(event: Event, fetch: Fetch) -> Event:
    """Return the event with the data to which its ``dataref`` refers.

    An event without a ``dataref`` is returned unchanged, and so is one whose data is the same,
    byte for byte or as JSON. Raises `DataError` if the data differs (X-04: both must be identical)
    or if ``fetch`` does not return bytes, and what ``fetch`` raises.
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
    sizes = [len(event.payload or b"")]
    for mode in _MODES:
        with suppress(EncodeError):  # if one mode cannot represent the event, the other is sent
            sizes.append(wire_size(to_record(event, mode=mode)))
    return max(sizes)


def _is_same_json(fetched: bytes, event: Event) -> bool:
    """Return whether two texts have the same canonical JSON; 1, 1.0 and true are three values."""
    content_type = event.datacontenttype
    if not implies_json(content_type) or (content_type is None and event.kind is not DataKind.JSON):
        return False
    try:
        one, other = (_canonical(to_utf8(data, content_type)) for data in (fetched, event.payload or b""))
    except (DataError, RecursionError):
        return False
    return one == other


def _canonical(text: bytes) -> bytes:
    return msgspec.json.encode(decode_json(text), order="sorted")
