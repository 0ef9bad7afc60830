"""The JSON event format, ``application/cloudevents+json``.

The exact text of ``data`` is kept in both directions: white space, escapes and digits are
preserved, and data that nobody accesses is not parsed into Python values. This module has
the writer and a fast path for simple objects; `json_decoder` reads all others.
"""

from __future__ import annotations

import base64
import math
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import AttributeValue, is_string
from cloudevents_kafka.attributes.validation import are_text_names, are_valid_texts
from cloudevents_kafka.codecs.json import encode_json, is_json, is_utf8
from cloudevents_kafka.codecs.payload import (
    DataKind,
    decode_text,
    encode_text,
    from_utf8,
    to_utf8,
)
from cloudevents_kafka.errors import DataError, EncodeError, InvalidEvent, Problem
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.formats._base import BaseFormat, build_event
from cloudevents_kafka.formats.json_decoder import InvalidEnvelope, read_data, split_envelope
from cloudevents_kafka.record import to_bytes

_parse_texts: Final[Any] = msgspec.json.Decoder(dict[str, str]).decode
_check_json: Final = msgspec.json.Decoder(msgspec.Raw).decode
_write: Final = msgspec.json.Encoder().encode
_NOT_PLAIN: Final = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_NAME: Final = "json"
_DATA: Final = b',"data":'
_DEL: Final = 0x7F
_BACKSLASH: Final = ord("\\")
_BRACE: Final = ord("}")
_SPACE: Final = ord(" ")  # the highest of the four white space characters of JSON
_QUOTE: Final = b'"'


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
        head = _write(attributes)  # J-03: a Boolean is true or false, an Integer a number, a Binary base64
        payload = event.payload
        return head if payload is None else b"%b,%b}" % (head[:-1], self._data_member(event, payload))

    def _data_member(self, event: Event, payload: bytes) -> bytes:
        content_type = event.datacontenttype
        try:
            if event.kind is DataKind.JSON:  # J-10: the JSON value itself
                return b'"data":' + to_utf8(payload, content_type)
            if event.kind is DataKind.TEXT:  # J-11: another value is a string
                return b'"data":' + encode_json(decode_text(payload, content_type))
        except DataError as error:
            raise EncodeError(str(error)) from None
        text = None if content_type is None else self._as_json(payload, content_type)
        # J-06: Binary is data_base64. J-07: it does not get a content type.
        return b'"data_base64":"%b"' % base64.b64encode(payload) if text is None else b'"data":' + text

    def _as_json(self, payload: bytes, content_type: str) -> bytes | None:
        """Return JSON that is read as the same bytes, or None: some charsets encode a text in two ways."""
        media = media_type(content_type)
        try:
            if media.is_json:
                text = to_utf8(payload, content_type)
                return text if is_json(text) and from_utf8(text, content_type) == payload else None
            if self._text_data and (
                media.is_text or media.charset is not None or media.essence.endswith(("/xml", "+xml"))
            ):
                text_data = decode_text(payload, content_type)
                return encode_json(text_data) if encode_text(text_data, content_type) == payload else None
        except DataError:
            pass
        return None

    def decode(self, value: bytes) -> Event:
        """Return the event of a JSON object. Raises `InvalidEvent` with all problems.

        The fast path is for attributes that are strings without escapes, with JSON data as the
        last member. `_decode` reads all other objects.
        """
        value = value if type(value) is bytes else to_bytes(value) or b""
        head, data, rest = value.partition(_DATA)
        payload = rest[:-1]
        try:
            if data:
                _check_json(payload)
                head += b"}"
            attributes = _parse_texts(head)
        except _NOT_PLAIN:
            return self._decode(value)
        content_type = attributes.get("datacontenttype")
        media = None if content_type is None else media_type(content_type)
        if (
            head.count(_QUOTE) == 4 * len(attributes)  # N-05: as many as there are without repeats
            and _BACKSLASH not in head
            and _DEL not in head  # T-06: the only control character that JSON does not escape
            and (value.isascii() or (is_utf8(value) and is_string("".join(attributes.values()))))
            and are_text_names(attributes.keys())
            and are_valid_texts(attributes)
            and (media is None or media.valid)
        ):
            if not data:
                return unchecked_event(attributes, None, DataKind.BYTES, (_NAME, value))
            is_json = media is None or (media.is_json and media.utf8)  # J-09: without a content type it is
            if is_json and value[-1] == _BRACE and payload[0] > _SPACE and payload[-1] > _SPACE:
                return unchecked_event(attributes, payload, DataKind.JSON, (_NAME, value))
        return self._decode(value)

    def _decode(self, value: bytes) -> Event:
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


def _type_problem(name: str, value: object) -> Problem:
    if isinstance(value, dict | list):  # maybe nested too deep for repr()
        got = "an object" if isinstance(value, dict) else "an array"
    else:
        got = "a number out of range" if value == math.inf else str(value)
    return Problem(name, "must be a string, true, false or an integer of 32 bits", "J-03", got)
