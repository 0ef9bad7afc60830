"""The sniffer: what a record is, told from its headers alone.

The content-type header decides and nothing else (Kafka binding 3): where it starts
with ``application/cloudevents``, in any case, the record is structured, whatever
``ce_`` headers stand beside it. Else it is binary, if all four required ``ce_``
headers are there, and else it is no CloudEvent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from cloudevents_kafka import formats
from cloudevents_kafka.attributes.media_type import MediaType, media_type
from cloudevents_kafka.attributes.types import REQUIRED
from cloudevents_kafka.binding._headers import CONTENT_TYPE, PREFIX
from cloudevents_kafka.errors import DecodeError, NotAnEvent, UnsupportedBatch, UnsupportedFormat
from cloudevents_kafka.record import Record, to_bytes

Mode = Literal["structured", "binary", "not-an-event", "unsupported-format", "batch"]

_RECORD_NAMES: Final = {"value", "headers"}  # of a mapping that is a record, see `Record.of`
_REQUIRED_HEADERS: Final = tuple(PREFIX + name for name in REQUIRED)


class Verdict(msgspec.Struct, frozen=True):
    """What the sniffer says: the mode, the content type as received, and the reason.

    ``format`` is the name of the event format where the mode is structured.
    """

    mode: Mode
    media_type: str | None
    reason: str
    format: str | None = None


def sniff(headers: Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None] | Record | Any) -> Verdict:
    """Return what a record with these headers is; total, for any names and bytes.

    A record, or a client's (see `Record.of`), stands for its headers.
    """
    if not isinstance(headers, list):
        headers = _headers_of(headers)
    content_type: str | None = None
    present: set[str] = set()
    for name, value in headers:
        if value is None:
            continue  # a null header is an absent attribute
        if name == CONTENT_TYPE:
            text = value if type(value) is bytes else to_bytes(value) or b""
            content_type = text.decode("utf-8", "replace")  # whether it is UTF-8 is the reader's to judge
        else:
            present.add(name)
    media = None if content_type is None else media_type(content_type)
    if media is not None and media.cloudevents:
        return _of_prefix(media, content_type)
    return _of_headers(present, content_type)


def _headers_of(source: Any) -> Iterable[tuple[str, bytes | None]]:
    is_record = source.keys() >= _RECORD_NAMES if isinstance(source, Mapping) else hasattr(source, "headers")
    if is_record or source is None or isinstance(source, str | bytes):
        return Record.of(source).headers
    return source.items() if isinstance(source, Mapping) else source


def decode_error(verdict: Verdict, record: Record) -> DecodeError:
    """Make the error for a record that its headers show to be none that can be read."""
    if verdict.mode == "not-an-event":
        return NotAnEvent(f"not a CloudEvent: {verdict.reason} (K-11, Kafka binding 3)", record)
    if verdict.mode == "batch":
        return UnsupportedBatch(str(verdict.media_type), record, "split it where it was produced")
    hint = f"{verdict.reason}: forward the record as it is, or register the format"
    return UnsupportedFormat(str(verdict.media_type), record, hint)


def _of_prefix(media: MediaType, content_type: str | None) -> Verdict:
    if media.batch:
        return Verdict("batch", content_type, "the content-type names a batch of events")
    if media.format in formats.names():
        return Verdict(
            "structured", content_type, "the content-type names a known event format", media.format
        )
    known = ", ".join(map(formats.media_type_of, formats.names()))
    return Verdict(
        "unsupported-format", content_type, f"the content-type names no event format known here ({known})"
    )


def _of_headers(present: set[str], content_type: str | None) -> Verdict:
    missing = [name for name in _REQUIRED_HEADERS if name not in present]
    if not missing:
        reason = "all required ce_ headers are there, and the content-type names no event format"
        return Verdict("binary", content_type, reason)
    return Verdict("not-an-event", content_type, _why_not(missing, present, content_type))


def _why_not(missing: list[str], present: set[str], content_type: str | None) -> str:
    said = (
        "there is no content-type header"
        if content_type is None
        else f"the content-type is {content_type[:60]!r}"
    )
    if len(missing) == len(_REQUIRED_HEADERS):
        lacking = "none of the required ce_ headers is there"
    else:
        lacking = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    return f"{said}, and {lacking}{_lookalike(present)}"


def _lookalike(present: set[str]) -> str:
    """Name the mistake, where headers look like those of another binding or case."""
    for name in sorted(map(str, present)):
        folded = name.lower()
        for prefix in ("ce-", "cloudevents:", "cloudevents_"):
            if folded.startswith(prefix):
                return f" (found {name!r}: Kafka headers start with ce_, not {name[: len(prefix)]})"
        if name != folded and (folded.startswith(PREFIX) or folded == CONTENT_TYPE):
            return f" (found {name!r}: Kafka header names are exact, in lower case)"
    return ""
