"""A reader of valid events in JSON, which is faster than `json_decoder`.

The reader accepts any order of members, and any white space, escapes, types and data. It returns the data as
JSON text. In one pass, the parser reads the members whose names the reader knows, and skips ``data``. If an
object contains an unknown name, the reader usually knows this name when it reads the next object. If the
reader finds no valid event, `json_decoder` finds the problems.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypedDict

import msgspec

from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.fast_validation import accept_names, are_valid_texts, is_scalar
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import CORE, parse_binary
from cloudevents_kafka.codecs.json import is_utf8
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.formats.json_decoder import Envelope, read_data
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH
from cloudevents_kafka.problems import InvalidEvent

NAME: Final = "json"
_Scalar = str | int | bool | None

# Reading the member of an enum takes longer.
_BYTES: Final = DataKind.BYTES
_JSON: Final = DataKind.JSON
_TEXT: Final = DataKind.TEXT


_read_any_names: Final = msgspec.json.Decoder(dict[str, _Scalar]).decode
_data_name: Final = re.compile(
    rb'[{,\s]"(?:d|\\u0064)(?:a|\\u0061)(?:t|\\u0074)(?:a|\\u0061)"[ \t\r\n]*:[ \t\r\n]*'
).search
"""A pattern that matches the member name ``data``, with any escapes and white space.

The pattern does not match within a JSON string, because each quotation mark within a string follows a
backslash.
"""
REFUSED: Final = (msgspec.MsgspecError, RecursionError, ValueError, InvalidEvent)
_NO_DATA: Final = b"0"  # replaces data in the object that is read
_DATA: Final = b'"data"'
_QUOTE: Final = b'"'
_CORE: Final = (*CORE, "data_base64")
_BACKSLASH: Final = ord("\\")
_TEXTS: Final = (str, msgspec.Raw)
_MOST_NAMES: Final = 100
_DEL: Final = 0x7F  # the only control character that JSON does not escape

_Decode = Callable[[bytes], dict[str, Any]]


class _Expected(NamedTuple):
    """The member names and types that a reader expects; this object never changes, so threads may share it.

    The function ``read`` reads the expected members with the types in ``types``. The function
    ``read_scalars`` reads members with the same names and any scalar types. ``typed`` contains the names of
    expected members whose values may be other than texts.
    """

    read: _Decode
    read_scalars: _Decode
    typed: tuple[str, ...]
    types: Mapping[str, Any]


class JsonReader:
    """A reader that expects the members of earlier JSON objects, because records of a topic are similar.

    The reader stores the member names of earlier events, and which of these members were not texts. Each call
    reads the attribute `_expected` once, and replaces it with a single assignment. Threads may therefore
    share a reader, and an exception from a signal handler does not damage it.
    """

    __slots__ = ("_calls", "_changes", "_expected")

    def __init__(self) -> None:
        self._calls = self._changes = 0
        self._expected = _expect(dict.fromkeys(_CORE, str))

    def read(self, value: bytes) -> Event | Envelope | None:
        """Return the event in a JSON object, or the object's members if they break rules.

        The result is None if the value is not an object, or if only a slower reader can read the value. If
        the type of a member is known, its value may be a Python value, such as an int, instead of a text.
        """
        try:
            attributes, data, encoded, joined = self.split(value)
        except REFUSED:
            return None
        try:
            table = current.table
            if (  # as `accept` does, but without the call
                table.text_names.issuperset(attributes) or accept_names(attributes, table)
            ) and are_valid_texts(attributes, joined):
                payload, kind = read_payload(attributes, data, encoded)
                return unchecked_event(attributes, payload, kind, (NAME, value))
        except REFUSED:
            pass
        return _envelope(attributes, data, encoded)

    def members(self, value: bytes) -> Envelope | None:
        """Return the members of a JSON object without validation.

        The result is None if `read` returns None, or if the object has the member ``data_base64``.
        """
        try:
            attributes, data, encoded, _ = self.split(value)
        except REFUSED:
            return None
        return _envelope(attributes, data, encoded)

    def split(self, value: bytes) -> tuple[dict[str, Any], bytes | None, Any, str]:
        """Return the attributes, the texts of data and data_base64, and the attributes' texts as one string.

        The returned attributes are not checked, so they may break rules of the specification. Raises one of
        the `REFUSED` exceptions if the JSON text is malformed, or if only a slower reader can read it.
        """
        read, read_scalars, typed, _ = self._expected
        try:
            attributes = read(value)
        except msgspec.ValidationError:
            attributes = read_scalars(value)
            typed = tuple(attributes)
            self._know(attributes)
        names = len(attributes)
        data = None
        others = value
        if "data" in attributes:
            data = bytes(attributes.pop("data"))
            others = value[: -1 - len(data)] if value.endswith(data, 0, -1) else _without(value, data)
        texts = members = names - (data is not None)
        for name in typed:
            if name in attributes and type(member := attributes[name]) is not str:
                texts -= 1
                if member is None:
                    del attributes[name]
                elif not is_scalar(name, member):
                    raise ValueError
        encoded = attributes.pop("data_base64") if "data_base64" in attributes else None
        if value.isascii():
            is_plain = _BACKSLASH not in others and _DEL not in others
        elif data is None or is_utf8(data):  # the parser does not check data that it skips
            is_plain = False
        else:
            raise ValueError
        joined = (
            "" if is_plain else _join(attributes, texts == members)
        )  # if empty, all texts are Strings (T-06)
        # If no name is repeated (N-05) or unknown, each name and each text has two quotation marks.
        quotes = _count_outer_quotes(others, joined) if '"' in joined else others.count(_QUOTE)
        if quotes != 2 * (names + texts):
            attributes, encoded = self._read_unknown(value, data)
            joined = "" if is_plain else _join(attributes, False)
        return attributes, data, encoded, joined

    def _read_unknown(self, value: bytes, data: bytes | None) -> tuple[dict[str, Any], Any]:
        """Return all attributes, and the text of data_base64; the reader then expects these attributes."""
        members = value if data is None else _blank_data(value, data)
        attributes: dict[str, Any] = _read_any_names(members)
        names = len(attributes)
        if data is not None:
            del attributes["data"]
        self._know(attributes)
        texts = _remove_nulls(attributes)
        if _count_quotes(members) != 2 * (names + texts):
            raise ValueError  # a name is repeated
        return attributes, attributes.pop("data_base64", None)

    def _know(self, members: dict[str, Any]) -> None:
        """Add members to the expected members; forget earlier members if too many members are expected.

        A change of the expected members is slow: it takes as long as reading tens of events. Changes
        therefore become rarer: after many changes, only every nth call of this method makes a change, and n
        grows with each change.
        """
        self._calls += 1
        if self._calls < self._changes - _MOST_NAMES or len(members) + len(_CORE) > _MOST_NAMES:
            return
        self._calls = 0
        known = self._expected.types
        types = {  # the parser would read "" as an expected name that is not ASCII
            name: str if type(member) in _TEXTS and known.get(name, str) is str else _Scalar
            for name, member in members.items()
            if name.isascii() and len(name) <= MAX_KEY_LENGTH and name != "data"
        }
        changed = {**known, **types}
        if len(changed) > _MOST_NAMES:
            changed = dict.fromkeys(_CORE, str) | types
        if changed != known:
            self._changes += 1
            self._expected = _expect(changed)


def _envelope(attributes: dict[str, Any], data: bytes | None, encoded: Any) -> Envelope | None:
    """Return an `Envelope` of the object, or None if the object has the member ``data_base64``.

    An `Envelope` contains the JSON text of ``data_base64``, but this reader knows only the decoded text.
    """
    return None if encoded is not None else Envelope(attributes, {}, data, None, [])


def _join(attributes: dict[str, Any], are_texts: bool) -> str:  # noqa: FBT001  # a call by position is faster
    """Return all texts as one string; ``are_texts`` says whether all members are texts."""
    members = attributes.values()
    return "".join([member for member in members if type(member) is str] if not are_texts else members)


def _remove_nulls(attributes: dict[str, Any]) -> int:
    """Remove members whose value is null, and return how many members are texts.

    Raises `ValueError` if a member that is not a text is not a valid attribute value.
    """
    typed = [(name, member) for name, member in attributes.items() if type(member) is not str]
    texts = len(attributes) - len(typed)
    for name, member in typed:
        if member is None:
            del attributes[name]
        elif not is_scalar(name, member):
            raise ValueError
    return texts


def _expect(types: dict[str, Any]) -> _Expected:
    typed = tuple(name for name, kind in types.items() if kind is _Scalar)
    return _Expected(_decoder(types), _decoder(dict.fromkeys(types, _Scalar)), typed, types)


def _decoder(types: dict[str, Any]) -> _Decode:
    """Return a function that reads the core attributes, the members in ``types`` and the text of ``data``.

    The function skips all other members.
    """
    core = dict.fromkeys(_CORE, str)
    members = TypedDict("members", {**core, "data": msgspec.Raw, **types}, total=False)  # type: ignore[misc]  # names known at run time
    decode: _Decode = msgspec.json.Decoder(members).decode  # type: ignore[assignment]  # a TypedDict is a dict
    return decode


def read_payload(
    attributes: dict[str, Any], data: bytes | None, encoded: Any
) -> tuple[bytes | None, DataKind]:
    """Return an event's payload and its kind. Raises one of the `REFUSED` exceptions for wrong data."""
    if encoded is not None:
        return _read_base64(encoded, data), _BYTES
    if data is None:
        return None, _BYTES
    content_type = attributes.get("datacontenttype")
    if content_type is None:
        return data, _JSON  # J-09: without a content type, data is JSON
    media = media_type(content_type)
    if media.is_utf8_json:
        return data, _JSON
    is_plain = _BACKSLASH not in data and media.utf8 and (data.isascii() or not media.ascii)
    if is_plain and not media.is_json and data.startswith(_QUOTE):
        return data[1:-1], _TEXT  # J-15: a string
    return read_data(data, None, content_type)


def _without(value: bytes, data: bytes) -> bytes:
    """Return a JSON object without the text of its data, or without another equal text."""
    if value.endswith(data, 0, -2):  # indented
        return value[: -2 - len(data)]
    start = value.find(_DATA) + len(_DATA)
    start += 2 if value[start + 1 : start + 2] == b" " else 1
    if value.startswith(data, start):
        return value[:start] + value[start + len(data) :]
    return value.replace(data, b"", 1)


def _blank_data(value: bytes, data: bytes) -> bytes:
    """Return the text of a JSON object in which the number 0 replaces the data.

    Only the data may contain nested members, so the first member that is called ``data`` is the event's data.
    """
    name = _data_name(value)
    if name is None or not value.startswith(data, name.end()):
        raise ValueError  # data occurs more than once
    return value[: name.end()] + _NO_DATA + value[name.end() + len(data) :]


def _count_quotes(members: bytes) -> int:
    """Return the number of quotation marks that are not escaped by a backslash."""
    if b"\\\\" in members:
        members = members.replace(b"\\\\", b"")
    return members.count(_QUOTE) - members.count(b'\\"')


def _count_outer_quotes(members: bytes, joined: str) -> int:
    """Return the number of quotation marks around texts; ``joined`` is the concatenation of these texts."""
    return _count_quotes(members) if b"u0022" in members else members.count(_QUOTE) - joined.count('"')


def _read_base64(encoded: Any, data: bytes | None) -> bytes:
    if not isinstance(encoded, str) or data not in (None, b"null"):
        raise ValueError
    return parse_binary(encoded)
