"""Large data as a claim check: stored elsewhere, and fetched again (extension dataref).

`store_data` gives the data of an event that would be too large on the wire to a store of
the user's, and sends the reference instead; `fetch_data` fetches it. Both are told to by
the user alone: a receiver that does not know the extension would see no data.
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
"""Keeps bytes, and gives the URI-reference at which they are found."""

Fetch = Callable[[str], bytes]
"""Gives the bytes at a URI-reference. It comes from a stranger: fetch from where you trust only."""


def store_data(event: Event, store: Store, *, limit: int = SIZE_LIMIT, keep: bool = False) -> Event:
    """Store the data of an event that is larger than ``limit`` bytes on the wire.

    Gives the event with its ``dataref``, and without data unless told to ``keep`` it;
    the very event where it is small enough or has no data. Measured is the larger of
    binary and structured mode (S-03), without a key. A reference that the event has already
    gives way to the new one. A signature holds again when the data is back. What ``store`` raises is raised;
    `DataError` where it gives no reference, as the data could not be found again.
    """
    if event.payload is None or (len(event.payload) <= limit and _largest(event) <= limit):
        return event
    reference = store(event.payload)
    if not isinstance(reference, str) or not reference:
        raise DataError(
            f"the store gave {preview(reference)}, which is no reference: it must return the URI-reference "
            "at which the data is found (X-04, extension dataref)"
        )
    if keep:
        return event.replace(dataref=reference)
    return with_content_type(event).replace(data=None, dataref=reference)  # nobody could tell any more


def fetch_data(event: Event, fetch: Fetch) -> Event:
    """Fetch the data that an event refers to, and give the event with it.

    The very event where it has no ``dataref``, or where it has data too and they are
    the same, byte for byte or as JSON. Raises `DataError` where they are not (they must
    be identical) or ``fetch`` gives no bytes, and what ``fetch`` raises.
    """
    reference = event.text("dataref")
    if reference is None:
        return event
    fetched = fetch(reference)
    if not isinstance(fetched, bytes | bytearray | memoryview):
        raise DataError(
            f"for dataref {preview(reference)} fetch gave a {type(fetched).__name__}, not bytes: "
            "it must raise where nothing is found (X-04, extension dataref)"
        )
    fetched = bytes(fetched)
    if event.payload is None:
        return event.replace(data=fetched)
    if fetched != event.payload and not _same_json(fetched, event):
        raise DataError("data and what dataref refers to differ (X-04, extension dataref)")
    return event


def _largest(event: Event) -> int:
    sizes = [len(event.payload or b"")]
    for mode in _MODES:
        with suppress(EncodeError):  # one of them may have no place for it; then it goes by the other
            sizes.append(wire_size(to_record(event, mode=mode)))
    return max(sizes)


def _same_json(fetched: bytes, event: Event) -> bool:
    """Tell that two texts are one JSON value, by their canonical texts: 1, 1.0 and true are three."""
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
