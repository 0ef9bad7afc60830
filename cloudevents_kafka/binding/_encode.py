"""From an event to a record: the mode, the format, the key and the headers."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.binding import _binary, _structured
from cloudevents_kafka.binding._headers import CONTENT_TYPE, PREFIX, attribute_of
from cloudevents_kafka.binding._keys import KeyMapper
from cloudevents_kafka.binding._sniffer import sniff
from cloudevents_kafka.errors import (
    EncodeError,
)
from cloudevents_kafka.event import Event, raw_parts
from cloudevents_kafka.record import HeaderInput, Headers, Record, to_bytes, to_headers, with_bytes_headers

ContentMode = Literal["binary", "structured"]
_MODES: Final = get_args(ContentMode)
_COPY = "ce_datacontenttype"  # some write it beside content-type


def to_record(
    event: Any,
    *,
    mode: ContentMode | None = None,
    format: str | None = None,
    key: bytes | str | None = None,
    key_mapper: KeyMapper | None = None,
    headers: HeaderInput = None,
    topic: str | None = None,
    like: Record | Any | None = None,
) -> Record:
    """Write an event, or an SDK's event, as a record; neither is changed.

    ``mode`` is binary unless told otherwise, ``format`` (of structured mode) is json.
    ``key`` wins over what ``key_mapper`` gives; there is no key without either. Other
    ``headers`` go behind the event's; none of them may be one of its.

    ``like`` is the record that the event came from, a client's too (see `Record.of`):
    mode, format, key, header order and foreign headers are taken from it, where the call
    does not say otherwise, so that an event that was not changed gives the same record,
    byte for byte.

    Raises `EncodeError`, and `InvalidEvent` for an SDK's event that breaks rules.
    """
    if type(event) is not Event:
        event = Event.of(event)
    made = None if key is None and key_mapper is None else _key(event, key, key_mapper)
    if like is not None:
        return _to_record_like(event, like, mode=mode, format=format, key=made, headers=headers, topic=topic)
    if format is None and (mode is None or mode == "binary"):
        written, value = _binary.encode(event)
    else:
        check_mode("binary" if mode is None else mode, format)
        written, value = _structured.encode(event, "json" if format is None else format)
    if headers:
        written += extra_headers(headers)
    return Record(key=made, value=value, headers=written, topic=topic)


def check_mode(mode: object, format: str | None) -> None:
    """Raise `EncodeError` if there is no such content mode, or if it has no event format."""
    if mode not in _MODES:
        raise EncodeError(f"mode must be 'binary' or 'structured', got {mode!r}")
    if format is not None and mode == "binary":
        raise EncodeError(f"format must be None in binary mode, got {format!r}; use mode='structured'")


def _key(event: Event, key: bytes | str | None, key_mapper: KeyMapper | None) -> bytes | None:
    if key is None and key_mapper is not None:
        key = key_mapper(event)
    try:
        return to_bytes(key)
    except ValueError as error:
        raise EncodeError(f"the key cannot be written: {error}") from None


def _check_header_names(headers: Headers) -> None:
    """Refuse names that cannot be sent: `EncodeError` for no UTF-8 (K-06), `TypeError` for no text."""
    for name, _ in headers:
        if not isinstance(name, str):
            raise TypeError(f"a header's name is a text, not a {type(name).__name__}")
        if not name.isascii() and any("\ud800" <= sign <= "\udfff" for sign in name):
            raise EncodeError(f"header {name!r} has a name that UTF-8 cannot hold (K-06): send it without")


def extra_headers(headers: HeaderInput) -> Headers:
    """Check and copy headers that a user adds; `EncodeError` for those that are the event's.

    `TypeError` for names that are no texts, and values that are neither text, bytes nor None.
    """
    try:
        added = to_headers(headers)
    except ValueError as error:
        raise EncodeError(f"a header cannot be written: {error}") from None
    _check_header_names(added)
    for name, _ in added:
        folded = name.lower()
        if folded == CONTENT_TYPE or folded.startswith(PREFIX):
            raise EncodeError(
                f"header {name!r} belongs to the event: set the attribute instead "
                f"({'datacontenttype' if folded == CONTENT_TYPE else folded[len(PREFIX) :]})"
            )
    return added


def _to_record_like(
    event: Event,
    like: Record | Any,
    *,
    mode: ContentMode | None,
    format: str | None,
    key: bytes | None,
    headers: HeaderInput,
    topic: str | None,
) -> Record:
    try:
        like = with_bytes_headers(Record.of(like))
    except ValueError as error:
        raise EncodeError(f"the record in like cannot be written: {error}") from None
    verdict = sniff(like.headers)
    if mode is None:
        mode = "structured" if verdict.mode == "structured" else "binary"
    if format is None and mode == "structured":
        format = verdict.format
    written = to_record(event, mode=mode, format=format)
    _, wire = raw_parts(event)
    if wire is not None and written.value is wire[1] and wire[1] == like.value:
        kept = list(like.headers)  # the very event of that record: its content-type and its ce_ copies too
    else:
        kept = _merge_headers(written.headers, like.headers, same=mode == verdict.mode)
    _check_header_names(kept)
    return Record(
        key=like.key if key is None else key,
        value=written.value,
        headers=kept + extra_headers(headers),
        topic=topic,
    )


def _merge_headers(written: Headers, like: Headers, *, same: bool) -> Headers:
    """Put written headers where their namesakes stood, foreign ones as they stood, new ones last.

    In the same mode, a null header that stands for an absent attribute stays too; so does
    a copy of the content-type that still is one.
    """
    fresh = dict(written)
    copy = (_COPY, fresh.get(CONTENT_TYPE))
    told = {name for name, value in like if value is not None}
    kept: Headers = []
    for name, value in like:
        attribute = attribute_of(name)
        if name in fresh and (value is not None or name not in told):
            new = fresh.pop(name)
            kept.append((name, value if _is_same_integer(attribute, value, new) else new))
        elif attribute is None or (same and value is None) or (name, value) == copy:
            kept.append((name, value))
    return kept + list(fresh.items())


def _is_same_integer(attribute: str | None, received: bytes | None, written: bytes | None) -> bool:
    """Tell that two texts are one Integer: of all types it alone has two texts for a value."""
    zeros = received == b"-0" and written == b"0"
    return zeros and attribute is not None and type_of(attribute) is AttributeType.INTEGER
