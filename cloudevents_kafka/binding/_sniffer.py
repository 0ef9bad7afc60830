"""Find out from the headers alone whether and in which mode a record is an event (Kafka binding 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import REQUIRED
from cloudevents_kafka.binding._headers import CONTENT_TYPE, OTHER_PREFIXES, PREFIX
from cloudevents_kafka.errors import DecodeError, NotAnEvent, Problem, UnsupportedBatch, UnsupportedFormat
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.message_headers import UnreadHeaders
from cloudevents_kafka.record import Record, RecordInput, to_bytes

Mode = Literal["structured", "binary", "not-an-event", "unsupported-format", "batch"]
ContentMode = Literal["binary", "structured"]

_RECORD_NAMES: Final = {"value", "headers"}  # keys of a mapping that is a record, see `Record.of`
_JSON_STARTS: Final = b"\xef\xbb\xbf \t\r\n"
_SHOWN: Final = 5  # problems in a message
_SHOWN_TYPES: Final = 3  # content types in a message
_FRAMES: Final = {0: 5, 1: 17}  # the length of the frame by its first byte
_REQUIRED_HEADERS: Final = tuple(PREFIX + name for name in REQUIRED)

_VERSION: Final = PREFIX + "specversion"
_VERSION_HINT: Final = (
    "if this is an event of CloudEvents 1.0, add the missing header, and decode the record again: "
    'decode(msgspec.structs.replace(record, headers=[*record.headers, ("ce_specversion", b"1.0")]))'
)


class Verdict(msgspec.Struct, frozen=True):
    """The result for a record: its content mode, its content-type as received, and the reason for the mode.

    ``format`` is the name of the event format if the mode is structured.

    Examples:
        >>> from cloudevents_kafka import sniff
        >>> verdict = sniff([("content-type", b"application/cloudevents+avro")])
        >>> verdict.mode, verdict.format
        ('structured', 'avro')
        >>> sniff([]).reason
        'the content-type header is missing, and all required ce_ headers are missing'
    """

    mode: Mode
    media_type: str | None
    reason: str
    format: str | None = None


def sniff(headers: Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None] | RecordInput) -> Verdict:
    """Return the content mode of a record with these headers. Any header names and values are allowed.

    ``headers`` may also be a record, or the message of a client (see `Record.of`).

    Examples:
        >>> from cloudevents_kafka import sniff
        >>> sniff({"content-type": b"application/cloudevents+json"}).mode
        'structured'
        >>> sniff({"content-type": b"application/json"}).mode
        'not-an-event'
    """
    content_type: str | None = None
    types: list[str] = []  # if there are several
    present: set[str] = set()
    pairs = headers if isinstance(headers, list) else _headers_of(headers)
    if type(pairs) is UnreadHeaders:
        return Verdict("not-an-event", None, pairs.reason)
    for name, value in pairs:
        if value is None:
            continue  # a null header is an absent attribute
        if name == CONTENT_TYPE:
            text = value if type(value) is bytes else to_bytes(value, "header 'content-type'") or b""
            if content_type is not None:
                types.append(content_type)
            content_type = text.decode("utf-8", "replace")  # the reader checks that it is UTF-8
        else:
            present.add(name)
    if types:
        types.append(content_type or "")
        content_type = max(types, key=rank_type)
    # K-09: "its value is prefixed with the CloudEvents media type"; so ce_ headers do not matter
    if content_type is not None and media_type(content_type).cloudevents:
        return _sniff_content_type(content_type)
    # K-11: "all of the mandatory CloudEvents attributes as headers"
    missing = [name for name in _REQUIRED_HEADERS if name not in present]
    if missing:
        return Verdict("not-an-event", content_type, _missing_reason(missing, present, content_type, types))
    reason = "it has all required ce_ headers, and the content-type does not name an event format"
    return Verdict("binary", content_type, reason)


def rank_type(content_type: str) -> tuple[int, str]:
    """Return the rank of a content type; of several content-type headers, the highest one decides the mode.

    So the order of these headers does not matter. Content types that name a known event format have the
    highest ranks.
    """
    media = media_type(content_type)
    if not media.cloudevents:
        return 0, content_type
    return (2 if media.batch else 3 if media.format in formats.names() else 1), content_type


def _headers_of(source: Any) -> Iterable[tuple[str, bytes | None]]:
    is_record = source.keys() >= _RECORD_NAMES if isinstance(source, Mapping) else hasattr(source, "headers")
    if is_record or source is None or isinstance(source, str | bytes):
        return Record.of(source).headers
    return source.items() if isinstance(source, Mapping) else source


def _sniff_content_type(content_type: str) -> Verdict:
    media = media_type(content_type)
    if media.batch:  # K-01: "does not currently support the batch content mode"
        return Verdict("batch", content_type, "the content-type names a batch of events")
    if media.format in formats.names():
        reason = "the content-type names a known event format"
        return Verdict("structured", content_type, reason, media.format)
    return Verdict("unsupported-format", content_type, _unknown_format())


def _unknown_format() -> str:
    known = ", ".join(map(formats.media_type_of, formats.names()))
    return f"the content-type names an unknown event format, not one of {known}"


def decode_error(
    sniffed: Verdict, record: Record, *, lenient: bool = False, problems: Sequence[Problem] = ()
) -> DecodeError:
    """Return the error for a record that is not an event, is a batch, or has an unknown event format.

    ``lenient`` says whether lenient reading has also refused the record. ``problems`` say why the value of
    the record is not an event in JSON either.
    """
    if sniffed.mode == "not-an-event":
        reason = f"not a CloudEvent: {sniffed.reason} (K-11, Kafka binding 3)"
        advice = _advice_on_json(record.value, problems, lenient=lenient) or _advice_on_frame(record)
        hint = _VERSION_HINT if _missing_of(record.headers) == [_VERSION] else None
        error = NotAnEvent(reason + (f"; {advice}" if advice else ""), record, hint)
        if problems:
            error.problems = tuple(problems)
        return error
    if sniffed.mode == "batch":
        return UnsupportedBatch(str(sniffed.media_type), record, "split the batch before it is produced")
    # K-10: "MAY still treat the event as binary"
    hint = f"{_unknown_format()}: forward the record unchanged, or register the format"
    return UnsupportedFormat(str(sniffed.media_type), record, hint)


def _advice_on_json(value: bytes | None, problems: Sequence[Problem], *, lenient: bool) -> str | None:
    """Return advice if a record's value may be an event in JSON without a content-type, otherwise None."""
    if problems:
        return f"its value is not an event in JSON either: {'; '.join(map(str, problems[:_SHOWN]))}"
    if value is None or b'"specversion"' not in value:
        return None
    if not value.lstrip(_JSON_STARTS).startswith(b"{"):
        return framed_hint(value)
    return None if lenient else "the value may be an event in JSON: lenient=True reads it"


def _advice_on_frame(record: Record) -> str | None:
    """Return advice if no header is an attribute and the value may be a framed event, otherwise None."""
    if record.value is None or record.value[:1] != b"\0":
        return None
    if any(str(name).startswith(PREFIX) for name, value in record.headers if value is not None):
        return None
    hint = framed_hint(record.value)
    return None if hint is None else f"if it is an event, {hint.replace('seems to have', 'may have')}"


def framed_hint(value: bytes | None) -> str | None:
    """Return advice for an event in the framing of a schema registry's serializer, or None for other values.

    The framing starts with one marker byte, followed by the id of the schema in four bytes or by its GUID.
    """
    if not value or value[0] not in _FRAMES or len(value) <= _FRAMES[value[0]]:
        return None
    return (
        "a serializer of a schema registry seems to have framed the value: read "
        f"value[{_FRAMES[value[0]]}:] (for Protobuf, also skip the message indexes), or send the event "
        "without that serializer, which is only for data"
    )


def _missing_of(headers: Iterable[tuple[str, bytes | None]]) -> list[str]:
    """Return the required headers of binary mode that are missing or null."""
    present = {name for name, value in headers if value is not None}
    return [name for name in _REQUIRED_HEADERS if name not in present]


def _missing_reason(missing: list[str], present: set[str], content_type: str | None, types: list[str]) -> str:
    found = "header is missing" if content_type is None else f"is {content_type[:60]!r}"
    if types:
        found = "is " + " and ".join(repr(each[:60]) for each in sorted(set(types))[:_SHOWN_TYPES])
    if len(missing) == len(_REQUIRED_HEADERS):
        names = "all required ce_ headers are missing"
    else:
        names = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    return f"the content-type {found}, and {names}{_misspelling(present)}"


def _misspelling(present: set[str]) -> str:
    """Return a hint about the first event header with capitals or another prefix, or ``""``."""
    for name in sorted(map(str, present)):
        folded = name.lower()
        if prefix := OTHER_PREFIXES.match(folded):
            return f" (found {name!r}: Kafka headers start with ce_, not {name[: prefix.end()]})"
        if name != folded and (folded.startswith(PREFIX) or folded == CONTENT_TYPE):
            return f" (found {name!r}: Kafka header names are exact, in lower case)"
    return ""
