"""The JSON event format, ``application/cloudevents+json``.

The exact text of ``data`` is kept in both directions: white space, escapes and digits are
preserved, and data that nobody accesses is not parsed into Python values. msgspec splits
the envelope into its members by the strict grammar of RFC 8259. This module checks what
msgspec accepts and this format does not: repeated members, and numbers that are not
Integers.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.fast_validation import are_text_names, are_valid_texts
from cloudevents_kafka.attributes.media_type import MediaType, media_type
from cloudevents_kafka.attributes.types import AttributeValue, is_string, parse_binary
from cloudevents_kafka.attributes.validation import find_repeats
from cloudevents_kafka.codecs.json import encode_json, explain_error, is_json
from cloudevents_kafka.codecs.json_grammar import blank_members, find_lone_surrogate
from cloudevents_kafka.codecs.payload import (
    DataKind,
    decode_text,
    encode_text,
    from_utf8,
    implies_json,
    to_utf8,
)
from cloudevents_kafka.errors import DataError, EncodeError, InvalidEvent, Problem, preview_name
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.formats._base import BaseFormat, build_event

_split: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_parse: Final = msgspec.json.Decoder().decode
_parse_texts: Final[Any] = msgspec.json.Decoder(dict[str, str]).decode
_check_json: Final = msgspec.json.Decoder(msgspec.Raw).decode
_write: Final = msgspec.json.Encoder().encode
_REFUSED: Final = (msgspec.MsgspecError, RecursionError)
_NOT_PLAIN: Final = (*_REFUSED, UnicodeDecodeError)
_NAME: Final = "json"
_DATA: Final = b',"data":'
_DEL: Final = 0x7F
_BACKSLASH: Final = ord("\\")
_BRACE: Final = ord("}")
_SPACE: Final = ord(" ")  # the highest of the four white space characters of JSON
_QUOTE: Final = b'"'
_NULL: Final = b"null"


class Envelope(msgspec.Struct, frozen=True):
    """The members of a JSON object, split but not validated.

    ``attributes`` are the values of all members that are not null, except ``data`` and
    ``data_base64``, and ``texts`` the JSON of the same members. ``data`` and ``encoded`` are the
    JSON of ``data``, also if it is null, and of ``data_base64``. ``problems`` are repeated names,
    of which the last member is kept.
    """

    attributes: dict[str, Any]
    texts: dict[str, msgspec.Raw]
    data: bytes | None
    encoded: bytes | None
    problems: list[Problem]


class InvalidEnvelope(InvalidEvent):
    """The value is a JSON object, and its members break rules. ``envelope`` has them."""

    def __init__(self, problems: Sequence[Problem], envelope: Envelope) -> None:
        super().__init__(problems)
        self.envelope = envelope


class JsonFormat(BaseFormat):
    """JSON in UTF-8 (RFC 8259).

    With ``text_data=True``, bytes whose content type is ``text/*``, XML or has a charset are
    written as a JSON string if they are text in that charset. Other bytes are written as
    base64.
    """

    name = _NAME

    def __init__(self, *, text_data: bool = False) -> None:
        self._text_data = text_data

    def _encode(self, event: Event, attributes: dict[str, AttributeValue]) -> bytes:
        head = _write(attributes)
        payload = event.payload
        return head if payload is None else b"%b,%b}" % (head[:-1], self._data_member(event, payload))

    def _data_member(self, event: Event, payload: bytes) -> bytes:
        content_type = event.datacontenttype
        try:
            if event.kind is DataKind.JSON:
                return b'"data":' + to_utf8(payload, content_type)
            if event.kind is DataKind.TEXT:
                return b'"data":' + encode_json(decode_text(payload, content_type))
        except DataError as error:
            raise EncodeError(str(error)) from None
        return self._bytes_member(payload, content_type)

    def _bytes_member(self, payload: bytes, content_type: str | None) -> bytes:
        """Return the member for bytes: JSON or text if they are that, else base64 (J-06, J-10)."""
        try:
            text = None if content_type is None else self._as_text(payload, content_type)
        except DataError:
            text = None
        return b'"data_base64":"%b"' % base64.b64encode(payload) if text is None else b'"data":' + text

    def _as_text(self, payload: bytes, content_type: str) -> bytes | None:
        """Return JSON that is read as the same bytes, or None: some charsets encode a text in two ways."""
        if implies_json(content_type):
            text = to_utf8(payload, content_type)
            return text if is_json(text) and from_utf8(text, content_type) == payload else None
        if self._text_data and _is_textual(media_type(content_type)):
            text_data = decode_text(payload, content_type)
            return encode_json(text_data) if encode_text(text_data, content_type) == payload else None
        return None

    def _decode(self, value: bytes) -> Event:
        """Return the event of a JSON object.

        The fast path is for attributes that are strings without escapes, with JSON data as the
        last member. The members before the data are parsed as an object; they have no repeats
        if they have all quotation marks of the text. `_decode_slow` reads all other objects.
        """
        head, data, rest = value.partition(_DATA)
        payload = rest[:-1]
        try:
            if data:
                _check_json(payload)
                head += b"}"
            attributes = _parse_texts(head)
        except _NOT_PLAIN:
            return _decode_slow(value)
        if (
            head.count(_QUOTE) != 4 * len(attributes)
            or _BACKSLASH in head
            or _DEL in head  # the only control character that JSON does not escape
            or not (value.isascii() or (_is_utf8(value) and is_string("".join(attributes.values()))))
            or not are_text_names(attributes.keys())
            or not are_valid_texts(attributes)
        ):
            return _decode_slow(value)
        content_type = attributes.get("datacontenttype")
        media = None if content_type is None else media_type(content_type)
        if media is not None and not media.valid:
            return _decode_slow(value)
        if not data:
            return unchecked_event(attributes, None, DataKind.BYTES, (_NAME, value))
        if (
            value[-1] != _BRACE
            or payload[0] <= _SPACE
            or payload[-1] <= _SPACE
            or not (media is None or (media.is_json and media.utf8))
        ):
            return _decode_slow(value)
        return unchecked_event(attributes, payload, DataKind.JSON, (_NAME, value))


def _is_textual(media: MediaType) -> bool:
    return media.is_text or media.charset is not None or media.essence.endswith(("/xml", "+xml"))


def _decode_slow(value: bytes) -> Event:
    """Return the event of any JSON object; raise `InvalidEvent` with all problems."""
    envelope = split_envelope(value)
    members = envelope.attributes
    attributes = {name: member for name, member in members.items() if isinstance(member, AttributeValue)}
    problems = [*envelope.problems]
    problems += [_type_problem(name, members[name]) for name in members if name not in attributes]
    payload, kind = None, DataKind.BYTES
    try:
        payload, kind = read_data(envelope.data, envelope.encoded, attributes.get("datacontenttype"))
    except InvalidEvent as error:
        problems += error.problems
    try:
        return build_event(attributes, payload, kind, (_NAME, value), problems)
    except InvalidEvent as error:
        raise InvalidEnvelope(error.problems, envelope) from None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def split_envelope(value: bytes) -> Envelope:
    """Return the members of a JSON object; raise `InvalidEvent` if the value is not one.

    ``data`` may be JSON that the parser refuses, such as a lone surrogate.
    """
    try:
        value.decode()
        return _split_members(value)
    except UnicodeDecodeError as error:
        raise InvalidEvent([_malformed(value, error)]) from None
    except _REFUSED:
        readable, kept = blank_members(value, "data") or (value, {})
    try:
        envelope = _split_members(readable)
    except _REFUSED as error:
        raise InvalidEvent([_malformed(readable, error)]) from None
    return msgspec.structs.replace(envelope, data=kept.get("data", envelope.data))


def _split_members(value: bytes) -> Envelope:
    members = _split(value)
    count = len(members)
    data, encoded = bytes(members.pop("data", b"")), bytes(members.pop("data_base64", b""))
    texts = b"[" + b",".join(members.values()) + b"]"
    values: list[Any] = _values(texts, members)
    repeats = _find_repeats(value, texts + data + encoded, count)
    attributes = {name: value for name, value in zip(members, values, strict=True) if value is not None}
    texts_of = {name: members[name] for name in attributes}
    return Envelope(attributes, texts_of, data or None, None if encoded in (b"", _NULL) else encoded, repeats)


def _values(texts: bytes, members: dict[str, Any]) -> list[Any]:
    try:
        values: list[Any] = _parse(texts)
    except msgspec.ValidationError:  # a number is out of the range of float
        return [_value(bytes(text)) for text in members.values()]
    return values


def _value(text: bytes) -> Any:
    """Return one member; an empty container or infinity if it has a number that is out of range."""
    try:
        return _parse(text)
    except msgspec.ValidationError:
        return {b"{": {}, b"[": []}.get(text[:1], math.inf)


def _find_repeats(value: bytes, kept: bytes, count: int) -> list[Problem]:
    """Return a problem for each repeated member (N-05), of which the parser keeps the last.

    A document without repeats has as many quotation marks as its members, unless a name has
    escapes; then a slower parser finds the repeats.
    """
    return [] if value.count(b'"') == kept.count(b'"') + 2 * count else _repeats(value)


def _repeats(value: bytes) -> list[Problem]:
    outermost: list[tuple[str, Any]] = []

    def keep(pairs: list[tuple[str, Any]]) -> None:
        outermost[:] = pairs  # the last call is for the outermost object

    json.loads(value, object_pairs_hook=keep, parse_int=str, parse_float=str)
    return find_repeats(name for name, _ in outermost)


def _malformed(value: bytes, error: Exception) -> Problem:
    if isinstance(error, RecursionError):
        return Problem(None, "the value must not be nested deeper than the parser allows", "J-01")
    if value.startswith(b"\xef\xbb\xbf"):
        return Problem(None, "the value must be JSON in UTF-8 without a byte order mark", "J-01")
    if isinstance(error, UnicodeDecodeError):
        return Problem(None, f"the value must be JSON in UTF-8, but byte {error.start} is not UTF-8", "J-01")
    if blank_members(value) is not None and (half := find_lone_surrogate(value)) is not None:
        rule = f"the value must be one JSON object, but the escape before byte {half} is a lone surrogate"
        return Problem(None, rule, "J-01")
    return Problem(None, f"the value must be one JSON object, but {error}", "J-01")


def _type_problem(name: str, value: object) -> Problem:
    if isinstance(value, dict | list):  # maybe nested too deep for repr()
        got = "an object" if isinstance(value, dict) else "an array"
    else:
        got = "a number out of range" if value == math.inf else str(value)
    return Problem(name, "must be a string, true, false or an integer of 32 bits", "J-03", got)


def read_data(
    data: bytes | None, encoded: bytes | None, content_type: AttributeValue | None
) -> tuple[bytes | None, DataKind]:
    """Return the payload of the texts of ``data`` and ``data_base64``; raise `InvalidEvent`."""
    if encoded is not None:
        both = data is not None and data != _NULL
        problems = [Problem("data", "data and data_base64 must not occur together", "J-12")] if both else []
        payload = _read_base64(encoded)
        if payload is None:
            rule = "must be a string of base64, RFC 4648, with padding"
            problems.append(Problem("data_base64", rule, "J-14"))
        if problems:
            raise InvalidEvent(problems)
        return payload, DataKind.BYTES
    if data is None:
        return None, DataKind.BYTES
    if not isinstance(content_type, str):
        content_type = None
    try:
        if implies_json(content_type):
            return from_utf8(data, content_type), DataKind.JSON
        if data.startswith(_QUOTE):  # a string; other JSON may be nested too deep to parse
            return encode_text(_parse(data), content_type), DataKind.TEXT
    except DataError as error:
        raise InvalidEvent([Problem("data", str(error), "J-16")]) from None
    except msgspec.MsgspecError as error:
        rule = (
            f"must be text in the charset of {preview_name(content_type)}, but {explain_error(data, error)}"
        )
        raise InvalidEvent([Problem("data", rule, "J-16")]) from None
    raise InvalidEvent(
        [Problem("data", f"must be a string if datacontenttype is {preview_name(content_type)}", "J-16")]
    )


def _read_base64(encoded: bytes) -> bytes | None:
    try:
        return parse_binary(_parse(encoded)) if encoded.startswith(_QUOTE) else None
    except ValueError:
        return None
