"""The JSON event format, ``application/cloudevents+json``.

Reading and writing an event does not change the exact text of ``data``: white space, escapes and digits are
preserved. The data is parsed into Python values when the data is first accessed. This module contains the
writer; `json_reader` reads valid events, and `json_decoder` finds the problems of invalid events.
"""

from __future__ import annotations

import math
from binascii import b2a_base64
from typing import Final

import msgspec

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import AttributeValue
from cloudevents_kafka.codecs.json import encode_json, is_json
from cloudevents_kafka.codecs.payload import (
    DataKind,
    decode_text,
    encode_text,
    from_utf8,
    json_in_utf8,
    to_utf8,
)
from cloudevents_kafka.event import Event, stored_parts
from cloudevents_kafka.formats.base import build_event
from cloudevents_kafka.formats.json_decoder import Envelope, InvalidEnvelope, read_data, split_envelope
from cloudevents_kafka.formats.json_reader import NAME, JsonReader
from cloudevents_kafka.problems import DataError, EncodeError, InvalidEvent, Problem
from cloudevents_kafka.record import to_bytes

_JSON: Final = DataKind.JSON  # reading the member of an enum takes longer
_write: Final = msgspec.json.Encoder().encode


class JsonFormat:
    """The JSON format, in UTF-8 (RFC 8259).

    If ``text_data`` is True, textual bytes are written as a JSON string. Bytes are textual if their content
    type is ``text/*``, is XML, or has a charset, and if they can be decoded in the charset of the content
    type. Other bytes are written as base64, except JSON with a JSON content type. The methods ``read`` and
    ``members`` are the methods of the format's `JsonReader`.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.formats.json import JsonFormat
        >>> JsonFormat().encode(Event(id="1", source="/shop", type="order.placed", data={"total": 9}))
        b'{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed","data":{"total":9}}'
    """

    name = NAME

    def __init__(self, *, text_data: bool = False) -> None:
        self._text_data = text_data
        reader = JsonReader()
        self.read = reader.read
        self.members = reader.members

    def encode(self, event: Event) -> bytes:
        """Return an event as a JSON object; an unchanged event is returned as the value that was read.

        Raises `EncodeError` if JSON cannot express the data of the event.
        """
        attributes, payload, kind, encoded = stored_parts(event)
        if encoded is not None and encoded[0] == NAME:
            return encoded[1]
        head = _write(attributes)  # J-03: a Boolean is true or false, an Integer a number, a Binary base64
        if payload is None:
            return head
        content_type = attributes.get("datacontenttype")
        if type(content_type) is not str:
            content_type = None
        if kind is _JSON and (content_type is None or media_type(content_type).utf8):
            return b"".join((head[:-1], b',"data":', payload, b"}"))  # J-10: the JSON value itself
        return b"%b,%b}" % (head[:-1], self._data_member(kind, payload, content_type))

    def _data_member(self, kind: DataKind, payload: bytes, content_type: str | None) -> bytes:
        try:
            if kind is DataKind.JSON:
                return b'"data":' + json_in_utf8(payload, content_type)
            if kind is DataKind.TEXT:  # J-11: another value is a string
                return b'"data":' + encode_json(decode_text(payload, content_type))
        except DataError as error:
            raise EncodeError(str(error)) from None
        text = None if content_type is None else self._as_json(payload, content_type)
        if text is not None:
            return b'"data":' + text
        # J-06: Binary is data_base64. J-07: no content type is added.
        return b'"data_base64":"%b"' % b2a_base64(payload, newline=False)

    def _as_json(self, payload: bytes, content_type: str) -> bytes | None:
        """Return JSON that a reader decodes to the same payload, or None if base64 must be written."""
        media = media_type(content_type)
        if media.is_utf8_json:
            return payload if is_json(payload) else None
        try:
            if media.is_json:  # in another charset
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
        """Return the event in a JSON object. Raises `InvalidEvent` with all problems."""
        value = value if type(value) is bytes else to_bytes(value) or b""
        found = self.read(value)
        return found if isinstance(found, Event) else self._decode(value, found)

    def _decode(self, value: bytes, envelope: Envelope | None = None) -> Event:
        envelope = envelope or split_envelope(value)
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
            return build_event(attributes, payload, kind, (NAME, value), problems)
        except InvalidEvent as error:
            raise InvalidEnvelope(error.problems, envelope) from None


def _type_problem(name: str, value: object) -> Problem:
    if isinstance(value, dict | list):  # maybe nested too deep for repr()
        got = "an object" if isinstance(value, dict) else "an array"
    else:
        got = "a number out of range" if value == math.inf else str(value)
    return Problem(name, "must be a string, true, false or an integer of 32 bits", "J-03", got)
