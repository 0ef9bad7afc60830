"""Write an event as a record: choose the record's content mode, event format, key and headers."""

from __future__ import annotations

from typing import Any, Final, get_args

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.binding._binary import encode_binary
from cloudevents_kafka.binding._decode import Decoded, decode
from cloudevents_kafka.binding._headers import (
    CONTENT_TYPE,
    CONTENT_TYPE_COPY,
    KEY_SCHEMA_ID,
    PREFIX,
    SCHEMA_ID,
    attribute_of,
    exact_name,
)
from cloudevents_kafka.binding._keys import KeyMapper
from cloudevents_kafka.binding._sniffer import ContentMode, Verdict, sniff
from cloudevents_kafka.binding._structured import encode_structured
from cloudevents_kafka.errors import EncodeError
from cloudevents_kafka.event import Event, origin_of, raw_parts
from cloudevents_kafka.primitives.bounded import remember
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.record import (
    HeaderInput,
    Headers,
    Record,
    RecordInput,
    checked_record,
    to_bytes,
    to_headers,
    with_bytes_headers,
)

_MODES: Final = get_args(ContentMode)
_BEFORE_VALUES: Final = frozenset((b'"', b" ", b"\t"))
"""Starts of headers that may be in quotation marks, or name an event format after a blank."""
_TEXT_HEADERS: Final = frozenset({"ce_id", "ce_source", "ce_type", "ce_subject"})  # read without any change


class _Foreign(dict[str, bool]):
    """Maps the name of a header to True if the header does not belong to the event; a cache.

    The value is False for the exact name of an event header, and for names that nearly match such a name.
    """

    def __missing__(self, name: str) -> bool:
        return remember(self, name, exact_name(name) is None)


_is_foreign: Final = _Foreign()


def to_record(
    event: Any,
    *,
    mode: ContentMode | None = None,
    format: str | None = None,
    key: bytes | str | None = None,
    key_mapper: KeyMapper | None = None,
    headers: HeaderInput = None,
    topic: str | None = None,
    like: RecordInput | None = None,
) -> Record:
    """Return an event, or an event of the official SDK, as a record.

    ``mode`` is ``"binary"`` by default; ``format`` names the event format of structured mode, ``"json"`` by
    default. ``key`` takes precedence over ``key_mapper``; if neither is passed, the key is None. ``headers``
    are additional headers, after the headers of the event. Their names must differ from the names of event
    headers.

    ``like`` is the record from which the event was read, or the Kafka client's message (see `Record.of`). The
    new record has the same mode, format, key, order of headers, and headers outside the event as ``like``,
    unless an argument sets them. A header in ``headers`` replaces all headers of ``like`` that have the same
    name. If the event that strict or lenient reading returns for ``like`` equals ``event``, the new record
    equals ``like``, byte for byte. If the event was changed after reading, the new record also contains the
    headers, JSON members and attributes of other formats that lenient reading left out of ``like``, in their
    original form. The serializers of a schema registry write the id of the schema to a header. The new record
    contains the schema id of the key only if the key is unchanged, and the schema id of the data only if the
    data is unchanged.

    Raises `EncodeError` if the event cannot be written with these arguments, and `InvalidEvent` if an event
    of the official SDK breaks a rule.

    Examples:
        >>> from cloudevents_kafka import Event, to_record
        >>> event = Event(id="1", source="/shop", type="order.placed", data={"total": "9.50"})
        >>> to_record(event, key="customer-4").headers[1:3]
        [('ce_id', b'1'), ('ce_source', b'/shop')]
        >>> to_record(event, mode="structured").value
        b'{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed","data":{"total":"9.50"}}'
    """
    _, key, value, headers = encode(event, mode, format, key, key_mapper, headers, like)
    return checked_record(key, value, headers, topic)


def encode(  # noqa: PLR0917  # keywords would take a tenth of the time of EventProducer.send()
    event: Any,
    mode: ContentMode | None,
    format: str | None,
    key: bytes | str | None,
    key_mapper: KeyMapper | None,
    headers: HeaderInput,
    like: RecordInput | None,
) -> tuple[Event, bytes | None, bytes | None, Headers]:
    """Return the event, and the key, value and headers of the record that `to_record` returns."""
    is_binary = format is None and (mode is None or mode == "binary") and like is None
    if type(event) is not Event:
        event = Event.of(event)
    if key is None and key_mapper is not None:
        key = key_mapper(event)
    if key is not None and type(key) is not bytes:
        key = key.encode() if type(key) is str and key.isascii() else _key_bytes(key)
    if is_binary:
        written, value = encode_binary(event)
    elif like is not None:
        like = _record_like(like)
        written, value = _encode_like(event, like, mode, format)
        key = like.key if key is None else key
        written = written if key == like.key else _without(KEY_SCHEMA_ID, written)
    else:
        if mode != "structured":  # structured mode accepts any format that encode_structured finds
            check_mode("binary" if mode is None else mode, format)
        written, value = encode_structured(event, "json" if format is None else format)
    if headers:
        added = extra_headers(headers)
        if like is not None:
            names = {name for name, _ in added}
            written = [header for header in written if header[0] not in names]
        written += added
    return event, key, value, written


def check_mode(mode: object, format: str | None) -> None:
    """Raise `EncodeError` unless ``mode`` is a content mode that may be combined with ``format``."""
    if mode not in _MODES:
        raise EncodeError(f"mode must be 'binary' or 'structured', got {mode!r}")
    if format is not None and mode == "binary":
        raise EncodeError(f"format must be None in binary mode, got {format!r}; use mode='structured'")


def extra_headers(headers: HeaderInput) -> Headers:
    """Return a new list of the headers that the caller adds to the headers of the event.

    Raises `EncodeError` if the name of a header is reserved for the event, or cannot be encoded in UTF-8.
    Raises `TypeError` if the name of a header is not a str, or if its value is not a str, bytes or None.
    """
    try:
        added = to_headers(headers)
    except ValueError as error:
        raise EncodeError(str(error)) from None
    check_header_names(added)
    for name, _ in added:
        folded = name.lower()
        if folded == CONTENT_TYPE or folded.startswith(PREFIX):
            attribute = "datacontenttype" if folded == CONTENT_TYPE else folded[len(PREFIX) :]
            raise EncodeError(f"header {name!r} belongs to the event; set the attribute {attribute}")
    return added


def _key_bytes(key: bytes | str) -> bytes | None:
    try:
        return to_bytes(key, "key")  # K-12: "map the user provided record key"
    except ValueError as error:
        raise EncodeError(str(error)) from None


def check_header_names(headers: Headers) -> None:
    """Raise `EncodeError` if UTF-8 cannot encode a header name; such a name would crash confluent-kafka."""
    for name, _ in headers:
        if not isinstance(name, str):
            raise TypeError(
                f"a header name must be a str, got {type(name).__name__} {preview(name)}; pass it as text"
            )
        if not name.isascii() and any("\ud800" <= character <= "\udfff" for character in name):
            # K-06: "header keys and header values MUST be encoded as UTF-8"
            raise EncodeError(f"a header name must be UTF-8 (K-06), got {name!r}; remove the header")


def _record_like(like: RecordInput) -> Record:
    try:
        return with_bytes_headers(Record.of(like))
    except ValueError as error:
        raise EncodeError(f"the argument like must be a record that can be written: {error}") from None


def _encode_like(
    event: Event, like: Record, mode: ContentMode | None, format: str | None
) -> tuple[Headers, bytes | None]:
    """Return the headers and value of the event in the record ``like``, or of a changed copy of it."""
    sniffed = sniff(like.headers)
    is_like = format in {None, sniffed.format} and mode in {None, sniffed.mode}
    if is_like and sniffed.mode == "binary":
        found = _replace_headers(event, like)
        if found is not None:
            return found
    read = _reading_of(event, like, sniffed)
    if read is None:
        item = decode(like, lenient=True)
        if isinstance(item, Decoded) and item.tolerated:
            return _encode_like_deviating(event, item, mode, format)
        read = item.event if isinstance(item, Decoded) else None
    if is_like and (event is read or (read is not None and event.type == read.type and event == read)):
        return _unchanged(like)
    if mode is None:
        mode = "structured" if sniffed.mode == "structured" else "binary"
    if format is None and mode == "structured":
        format = sniffed.format
    written = to_record(event, mode=mode, format=format)
    headers = _merge_headers(written.headers, like.headers, same_mode=mode == sniffed.mode)
    headers = _without_old_id(headers, event, like.value if read is None else read.payload)
    check_header_names(headers)
    return headers, written.value


def _without_old_id(headers: Headers, event: Event, data: bytes | None) -> Headers:
    """Return headers without the id of the data's schema, unless the data of the event is still ``data``."""
    return headers if event.payload == data else _without(SCHEMA_ID, headers)


def _without(name: str, headers: Headers) -> Headers:
    return [header for header in headers if header[0] != name]


def _replace_headers(event: Event, like: Record) -> tuple[Headers, bytes | None] | None:
    """Return the headers and value of an event in binary mode; None if ``like`` must be decoded first.

    The record ``like`` is not decoded if two conditions are true. First, each event header of ``like`` occurs
    once, and the encoded ``event`` also has this header. Second, comparing the values of the headers is
    enough to decide whether the event was changed.
    """
    written, value = encode_binary(event)
    new = dict(written)
    headers: Headers = []
    is_changed = value != like.value
    is_equal = True
    for name, came in like.headers:
        text = new.pop(name, None)
        if text is None:
            if not _is_foreign[name]:
                return None
            if name != SCHEMA_ID or value == like.value:
                headers.append((name, came))
            continue
        if came != text:
            is_equal = False
            is_changed = is_changed or name in _TEXT_HEADERS
            if came is None or came == b"-0" or came[:1] in _BEFORE_VALUES:
                return None
        headers.append((name, text))
    if not is_changed and (new or not is_equal):
        return None
    check_header_names(headers)
    return headers + list(new.items()), value


def _reading_of(event: Event, like: Record, sniffed: Verdict) -> Event | None:
    """Return the event that strict reading returns for the record ``like``, or None if it is not known."""
    origin = origin_of(event)
    encoded = None if origin is None else raw_parts(origin)[1]
    if encoded is None or encoded[1] != like.value or encoded[0] != sniffed.format:
        return None
    return origin if len(like.headers) == 1 or _has_one_type(like.headers) else None


def _has_one_type(headers: Headers) -> bool:
    return [name for name, _ in headers].count(CONTENT_TYPE) == 1


def _unchanged(like: Record) -> tuple[Headers, bytes | None]:
    headers = list(like.headers)
    check_header_names(headers)
    return headers, like.value


def _encode_like_deviating(
    event: Event, item: Decoded, mode: ContentMode | None, format: str | None
) -> tuple[Headers, bytes | None]:
    """Return the headers and value of an event that was read from a record, perhaps by lenient reading."""
    from cloudevents_kafka.binding._forward import keep_left_out  # few records deviate

    like, origin = item.record, item
    is_like = mode in {None, item.mode} and format in {None, item.format}
    strict = decode(like)
    if is_like and (event == item.event or (isinstance(strict, Decoded) and event == strict.event)):
        return _unchanged(like)
    if isinstance(strict, Decoded):
        origin = strict
    mode = mode or origin.mode
    if format is None and mode == "structured":
        format = origin.format
    written = to_record(event, mode=mode, format=format)
    if origin.tolerated and (mode, format) == (origin.mode, origin.format):
        headers, value = keep_left_out(written, event, origin)
    else:
        headers = _merge_headers(written.headers, like.headers, same_mode=mode == origin.mode)
        value = written.value
    headers = _without_old_id(headers, event, origin.event.payload)
    check_header_names(headers)
    return headers, value


def _merge_headers(written: Headers, like: Headers, *, same_mode: bool) -> Headers:
    """Return the headers of the record ``like``; written headers replace headers of the same name.

    Written headers whose names do not occur in ``like`` are at the end. If the content mode does not change,
    headers of ``like`` whose value is null stay, although the event does not have the attributes of these
    headers. The header ce_datacontenttype of ``like``, a copy of the content-type, stays if its value equals
    the written content-type.
    """
    new = dict(written)
    copy = (CONTENT_TYPE_COPY, new.get(CONTENT_TYPE))
    with_value = {name for name, value in like if value is not None}
    merged: Headers = []
    for name, value in like:
        attribute = attribute_of(name)
        if name in new and (value is not None or name not in with_value):
            text = new.pop(name)
            # Only the Integer zero has two texts.
            is_zero = (value, text) == (b"-0", b"0") and type_of(str(attribute)) is AttributeType.INTEGER
            merged.append((name, value if is_zero else text))
        elif attribute is None or (same_mode and value is None) or (name, value) == copy:
            merged.append((name, value))
    return merged + list(new.items())
