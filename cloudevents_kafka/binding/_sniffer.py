"""The sniffer: the kind of a record, by its headers alone.

The content-type header decides: a record whose content-type starts with
``application/cloudevents``, in any case, is structured, and its ``ce_`` headers are
ignored. Another record is in binary mode if it has all four required ``ce_`` headers. Any
other record is not a CloudEvent (Kafka binding 3).
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
from cloudevents_kafka.record import Record, RecordInput, to_bytes

Mode = Literal["structured", "binary", "not-an-event", "unsupported-format", "batch"]

_RECORD_NAMES: Final = {"value", "headers"}  # keys of a mapping that is a record, see `Record.of`
_REQUIRED_HEADERS: Final = tuple(PREFIX + name for name in REQUIRED)
_OTHER_PREFIXES: Final = ("ce-", "cloudevents:", "cloudevents_")  # of the bindings for HTTP and AMQP


class Verdict(msgspec.Struct, frozen=True):
    """The kind of a record: its mode, its content-type as received, and the reason.

    ``format`` is the name of the event format if the mode is structured.
    """

    mode: Mode
    media_type: str | None
    reason: str
    format: str | None = None


def sniff(headers: Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None] | RecordInput) -> Verdict:
    """Return the kind of a record with these headers; any names and bytes have one.

    ``headers`` may also be a record, or a client's (see `Record.of`).
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
            content_type = text.decode("utf-8", "replace")  # the reader checks that it is UTF-8
        else:
            present.add(name)
    media = None if content_type is None else media_type(content_type)
    if media is not None and media.cloudevents:
        return _sniff_content_type(media, content_type)
    return _sniff_names(present, content_type)


def _headers_of(source: Any) -> Iterable[tuple[str, bytes | None]]:
    is_record = source.keys() >= _RECORD_NAMES if isinstance(source, Mapping) else hasattr(source, "headers")
    if is_record or source is None or isinstance(source, str | bytes):
        return Record.of(source).headers
    return source.items() if isinstance(source, Mapping) else source


def decode_error(verdict: Verdict, record: Record) -> DecodeError:
    """Return the error for a record that is not an event, a batch, or in an unknown event format."""
    if verdict.mode == "not-an-event":
        return NotAnEvent(f"not a CloudEvent: {verdict.reason} (K-11, Kafka binding 3)", record)
    if verdict.mode == "batch":
        return UnsupportedBatch(str(verdict.media_type), record, "split it before it is produced")
    hint = f"{verdict.reason}: forward the record unchanged, or register the format"
    return UnsupportedFormat(str(verdict.media_type), record, hint)


def _sniff_content_type(media: MediaType, content_type: str | None) -> Verdict:
    if media.batch:
        return Verdict("batch", content_type, "the content-type names a batch of events")
    if media.format in formats.names():
        reason = "the content-type names a known event format"
        return Verdict("structured", content_type, reason, media.format)
    return unsupported_format(content_type)


def unsupported_format(content_type: str | None) -> Verdict:
    """Return the verdict on a structured record whose event format is not registered."""
    known = ", ".join(map(formats.media_type_of, formats.names()))
    reason = f"the content-type names an unknown event format, not one of {known}"
    return Verdict("unsupported-format", content_type, reason)


def _sniff_names(present: set[str], content_type: str | None) -> Verdict:
    missing = [name for name in _REQUIRED_HEADERS if name not in present]
    if not missing:
        reason = "it has all required ce_ headers, and the content-type does not name an event format"
        return Verdict("binary", content_type, reason)
    return Verdict("not-an-event", content_type, _missing_reason(missing, present, content_type))


def _missing_reason(missing: list[str], present: set[str], content_type: str | None) -> str:
    if content_type is None:
        found = "the content-type header is missing"
    else:
        found = f"the content-type is {content_type[:60]!r}"
    if len(missing) == len(_REQUIRED_HEADERS):
        names = "all required ce_ headers are missing"
    else:
        names = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    return f"{found}, and {names}{_misspelling(present)}"


def _misspelling(present: set[str]) -> str:
    """Return a hint at the first header that has the case or the prefix of another binding, or ``""``."""
    for name in sorted(map(str, present)):
        folded = name.lower()
        for prefix in _OTHER_PREFIXES:
            if folded.startswith(prefix):
                return f" (found {name!r}: Kafka headers start with ce_, not {name[: len(prefix)]})"
        if name != folded and (folded.startswith(PREFIX) or folded == CONTENT_TYPE):
            return f" (found {name!r}: Kafka header names are exact, in lower case)"
    return ""
