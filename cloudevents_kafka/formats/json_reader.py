"""A reader of valid events in JSON.

It reads any order of members, white space, escapes, types and data, and keeps the text of
``data``. The parser skips ``data``, then the other members are read as one small object.
`json_decoder` names the problems of the objects that it returns no event for.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.fast_validation import accept, is_scalar
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import parse_binary
from cloudevents_kafka.codecs.json import is_utf8
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import InvalidEvent
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.formats.json_decoder import read_data

NAME: Final = "json"
_ABSENT: Final = msgspec.Raw()


class _Envelope(msgspec.Struct):
    """The one member that is not read."""

    data: msgspec.Raw = _ABSENT


_skip_to_data: Final = msgspec.json.Decoder(_Envelope).decode
_check_json: Final = msgspec.json.Decoder(msgspec.Raw).decode
_read_texts: Final = msgspec.json.Decoder(dict[str, str]).decode
_read_scalars: Final = msgspec.json.Decoder(dict[str, str | int | bool | None]).decode
_data_name: Final = re.compile(
    rb'[{,\s]"(?:d|\\u0064)(?:a|\\u0061)(?:t|\\u0074)(?:a|\\u0061)"[ \t\r\n]*:[ \t\r\n]*'
).search
"""The name of data with any escapes and white space. In a text, a backslash would be before it."""
REFUSED: Final = (msgspec.MsgspecError, RecursionError, ValueError, InvalidEvent)
_DATA: Final = b'"data"'
_NO_DATA: Final = b'"data":""'  # replaces data in the object that is read
_LAST: Final = _NO_DATA + b"}"
_BLANKS: Final = b" \t\r\n"
_QUOTE: Final = b'"'
_COLON: Final = ord(":")
_BRACE: Final = ord("}")
_BACKSLASH: Final = ord("\\")
_ENOUGH: Final = 3
_DEL: Final = 0x7F  # the only control character that JSON does not escape


class JsonReader:
    """A reader that adapts to its records: those of a topic are alike.

    A record of texts in ASCII without escapes, with JSON data as its last member or without
    data, is simple. After a few of them in a row, records are first read as such.
    """

    __slots__ = ("_data_is_last", "_simple", "_texts")

    def __init__(self) -> None:
        self._simple = _ENOUGH  # how many simple records in a row
        self._texts = True  # whether all members of the last record were texts
        self._data_is_last = True  # in the last record

    def read(self, value: bytes) -> Event | None:
        """Return the event of a JSON object, or None if it is not valid or needs a slower reader."""
        if self._simple >= _ENOUGH and (event := _read_simple(value)) is not None:
            return event
        try:
            attributes, data, encoded, joined = self.split(value)
            if accept(attributes, joined):
                payload, kind = read_payload(attributes, data, encoded)
                if kind is DataKind.TEXT:
                    self._simple = 0
                return unchecked_event(attributes, payload, kind, (NAME, value))
        except REFUSED:
            pass
        return None

    def split(self, value: bytes) -> tuple[dict[str, Any], bytes | None, Any, str | None]:
        """Return the attributes, data, data_base64, and the texts of the attributes for `accept`.

        The attributes may break rules. Raises one of `REFUSED` if the form does, or needs a slower reader.
        """
        members, data = self._cut_data(value)
        attributes: dict[str, Any] = _read_scalars(members)
        names = len(attributes)
        encoded = attributes.pop("data_base64") if "data_base64" in attributes else None
        joined: str | None
        try:
            joined, texts = "".join(attributes.values()) if self._texts else None, len(attributes)
        except TypeError:
            joined = None
        if joined is None:
            joined, texts = self._join_typed(attributes)
        is_escaped = _BACKSLASH in members
        quotes = _count_quotes(members) if is_escaped else members.count(_QUOTE)
        # Without repeated names (N-05), each name and each text has two quotation marks.
        if quotes != 2 * (names + texts + (type(encoded) is str)):
            raise ValueError
        # The name of another member may end like data's after an escaped quotation mark.
        if data is not None and (
            attributes.pop("data", None) is None or not (data.isascii() or is_utf8(data))
        ):
            raise ValueError
        if is_escaped or _DEL in members or not members.isascii():
            self._simple = 0
        else:
            joined = ""  # texts in ASCII without escapes and DEL are Strings (T-06)
            is_simple = texts == names and (data is None or members.endswith(_LAST))
            self._simple = self._simple + 1 if is_simple else 0
        return attributes, data, encoded, joined

    def _cut_data(self, value: bytes) -> tuple[bytes, bytes | None]:
        """Return an object with an empty text as its data, and the text of its data or None.

        Only data may contain other members, so the first member of this name is data itself.
        """
        if self._data_is_last:
            head, _, rest = value.partition(_DATA)
            data = rest[1:-1].strip(_BLANKS)
            if data and rest[0] == _COLON and rest[-1] == _BRACE and _is_value(data):
                return head + _LAST, data
        raw = _skip_to_data(value).data
        if raw is _ABSENT:
            self._data_is_last = False
            return value, None
        data = bytes(raw)
        head, _, rest = value.partition(_DATA)
        start = 2 if rest[1:2] == b" " else 1
        if not (rest.startswith(data, start) and rest[0] == _COLON):
            head, rest, start = *_split_at_data(value, data, len(head)), 0
        rest = rest[start + len(data) :]
        self._data_is_last = len(rest) == 1
        return head + _NO_DATA + rest, data

    def _join_typed(self, attributes: dict[str, Any]) -> tuple[str, int]:
        """Remove null members; return all texts together, and how many they are.

        Raises `ValueError` if another member may not be an attribute.
        """
        texts = [member for member in attributes.values() if type(member) is str]
        self._texts = len(texts) == len(attributes)
        if not self._texts:
            for name in [name for name, member in attributes.items() if type(member) is not str]:
                if attributes[name] is None:
                    del attributes[name]
                elif not is_scalar(name, attributes[name]):
                    raise ValueError
        return "".join(texts), len(texts)


def read_payload(
    attributes: dict[str, Any], data: bytes | None, encoded: Any
) -> tuple[bytes | None, DataKind]:
    """Return the payload of an event and its kind. Raises one of `REFUSED` if it is wrong."""
    if encoded is not None:
        return _read_base64(encoded, data), DataKind.BYTES
    if data is None:
        return None, DataKind.BYTES
    if _is_json(attributes):
        return data, DataKind.JSON
    return read_data(data, None, attributes["datacontenttype"])


def _read_simple(value: bytes) -> Event | None:
    """Return the event of a simple object, or None."""
    head, name, rest = value.partition(_DATA)
    data = rest[1:-1].strip(_BLANKS)
    try:
        if name:
            if not data or rest[0] != _COLON or rest[-1] != _BRACE:
                return None
            _check_json(data)
            head += _LAST
        attributes: dict[str, Any] = _read_texts(head)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    if (
        head.count(_QUOTE) != 4 * len(attributes)  # a name is repeated, or a text has quotation marks
        or _BACKSLASH in head
        or _DEL in head
        or not value.isascii()
        or not _is_json(attributes)
        or "data_base64" in attributes
    ):
        return None
    if not data:
        return (
            unchecked_event(attributes, None, DataKind.BYTES, (NAME, value))
            if accept(attributes, "")
            else None
        )
    del attributes["data"]
    return unchecked_event(attributes, data, DataKind.JSON, (NAME, value)) if accept(attributes, "") else None


def _is_value(text: bytes) -> bool:
    """Return whether a text is one JSON value for the parser, whose strings may not be UTF-8."""
    try:
        _check_json(text)
    except msgspec.DecodeError:
        return False
    return True


def _split_at_data(value: bytes, data: bytes, position: int) -> tuple[bytes, bytes]:
    """Return what is before the name of data, which is probably at a position, and what is from data on."""
    for start in (max(position - 1, 0), 0):
        name = _data_name(value, start)
        if name is not None and value.startswith(data, name.end()):
            return value[: name.start() + 1], value[name.end() :]
    raise ValueError  # data occurs more than once


def _count_quotes(members: bytes) -> int:
    """Return the number of quotation marks that no backslash escapes."""
    if b"\\\\" in members:
        members = members.replace(b"\\\\", b"")
    return members.count(_QUOTE) - members.count(b'\\"')


def _read_base64(encoded: Any, data: bytes | None) -> bytes:
    if not isinstance(encoded, str) or data not in (None, b"null"):
        raise ValueError
    return parse_binary(encoded)


def _is_json(attributes: dict[str, Any]) -> bool:
    """Return whether data is JSON in UTF-8, as it is without a content type (J-09)."""
    content_type = attributes.get("datacontenttype")
    return content_type is None or media_type(content_type).is_utf8_json
