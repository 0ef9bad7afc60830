"""A decoder of JSON envelopes (the JSON objects of events); it returns members, repeated members and data.

msgspec splits an envelope into its members according to the strict grammar of RFC 8259. This module refuses
some envelopes that msgspec accepts, because the format does not allow them. This module also reads data that
msgspec refuses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.types import AttributeValue, parse_binary
from cloudevents_kafka.attributes.validation import find_repeats
from cloudevents_kafka.codecs.json import explain_error
from cloudevents_kafka.codecs.json_grammar import blank_members, find_lone_surrogate, find_members
from cloudevents_kafka.codecs.payload import DataKind, encode_text, from_utf8, implies_json
from cloudevents_kafka.primitives.preview import preview_name
from cloudevents_kafka.problems import DataError, InvalidEvent, Problem

_split: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_parse: Final = msgspec.json.Decoder().decode
_REFUSED: Final = (msgspec.MsgspecError, RecursionError)
_QUOTE: Final = b'"'
_NULL: Final = b"null"


class Envelope(msgspec.Struct, frozen=True):
    """The members of a JSON object, before they are checked.

    ``attributes`` contains the values of the members that are not null, without ``data`` and ``data_base64``.
    ``texts`` contains the JSON texts of the members in ``attributes``. ``data`` is the JSON text of the
    member ``data``, which may be null. ``encoded`` is the JSON text of the member ``data_base64``.
    ``problems`` lists repeated names. If several members have the same name, the last of them is used, and
    ``earlier`` contains the names and the JSON texts of the others. ``unread`` contains the names and the
    JSON texts of members that the parser refuses; lenient reading leaves these members out.
    """

    attributes: dict[str, Any]
    texts: dict[str, msgspec.Raw]
    data: bytes | None
    encoded: bytes | None
    problems: list[Problem]
    earlier: list[tuple[str, bytes]] = []
    unread: list[tuple[str, bytes]] = []


class InvalidEnvelope(InvalidEvent):
    """The value is a JSON object whose members break rules; ``envelope`` contains the members."""

    def __init__(self, problems: Sequence[Problem], envelope: Envelope) -> None:
        super().__init__(problems)
        self.envelope = envelope


def split_envelope(value: bytes) -> Envelope:
    """Return the members of a JSON object. Raises `InvalidEvent` if the value is not a JSON object.

    The member ``data`` may be JSON that the parser refuses, such as a lone surrogate.
    """
    try:
        value.decode()
        return _split_members(value)
    except UnicodeDecodeError as error:
        raise InvalidEvent([_malformed(value, error)]) from None
    except _REFUSED:
        readable, texts = blank_members(value, "data") or (value, {})
    try:
        envelope = _split_members(readable)
    except _REFUSED as error:
        raise InvalidEvent([_malformed(readable, error)]) from None
    return msgspec.structs.replace(envelope, data=texts.get("data", envelope.data))


def _split_members(value: bytes) -> Envelope:
    members = _split(value)
    count = len(members)
    data, encoded = bytes(members.pop("data", b"")), bytes(members.pop("data_base64", b""))
    texts = b"[" + b",".join(members.values()) + b"]"
    try:
        values: list[Any] = _parse(texts)
    except msgspec.ValidationError:  # a number is out of the range of float
        values = [member_value(bytes(text)) for text in members.values()]
    earlier = _find_earlier(value, texts + data + encoded, count)
    names = [name for name, _ in earlier] if earlier else []
    repeats = find_repeats([*names, *dict.fromkeys(names)]) if names else []
    # J-04: null is an absent attribute
    attributes = dict(zip(members, values, strict=True))
    if None in values:
        attributes = {name: value for name, value in attributes.items() if value is not None}
        members = {name: members[name] for name in attributes}
    encoded = b"" if encoded == _NULL else encoded
    return Envelope(attributes, members, data or None, encoded or None, repeats, earlier)


def member_value(text: bytes) -> Any:
    """Return the Python value of a member.

    If a number is out of the parser's range, the result is infinity for a number, an empty dict for an
    object, and an empty list for an array.
    """
    try:
        return _parse(text)
    except msgspec.ValidationError:
        return {b"{": {}, b"[": []}.get(text[:1], math.inf)


def _find_earlier(value: bytes, kept: bytes, count: int) -> list[tuple[str, bytes]]:
    """Return the members that a later member with the same name replaces (N-05), with their JSON texts.

    If no name is repeated and no name contains escapes, the document contains exactly the quotation marks of
    its values and two more for each name. If the number of quotation marks differs, a slower parser reads the
    document.
    """
    if value.count(b'"') == kept.count(b'"') + 2 * count:
        return []
    members = find_members(value)
    last = {name: number for number, (name, _, _) in enumerate(members)}
    return [(name, value[start:end]) for n, (name, start, end) in enumerate(members) if last[name] != n]


def _malformed(value: bytes, error: Exception) -> Problem:
    if isinstance(error, RecursionError):
        rule = "the value must not be nested deeper than the parser allows"
    elif value.startswith(b"\xef\xbb\xbf"):  # RFC 8259 8.1: JSON on a network has no byte order mark
        rule = "the value must be JSON in UTF-8 without a byte order mark"
    elif isinstance(error, UnicodeDecodeError):
        rule = f"the value must be JSON in UTF-8, but byte {error.start} is not UTF-8"
    elif blank_members(value) is not None and (end := find_lone_surrogate(value)) is not None:
        rule = f"the value must be one JSON object, but the escape before byte {end} is a lone surrogate"
    else:
        rule = f"the value must be one JSON object, but {error}"
    return Problem(None, rule, "J-01")


def read_data(
    data: bytes | None, encoded: bytes | None, content_type: AttributeValue | None
) -> tuple[bytes | None, DataKind]:
    """Return the payload that the JSON text of ``data`` or ``data_base64`` contains.

    Raises `InvalidEvent` if the JSON text is wrong.
    """
    if encoded is not None:
        return _read_base64(data, encoded), DataKind.BYTES
    if data is None:
        return None, DataKind.BYTES
    if not isinstance(content_type, str):
        content_type = None
    try:
        if implies_json(content_type):  # J-13: null is data, too
            return from_utf8(data, content_type), DataKind.JSON
        if data.startswith(_QUOTE):  # J-15: a string, even if it resembles JSON
            return encode_text(_parse(data), content_type), DataKind.TEXT
        rule = f"must be a string if datacontenttype is {preview_name(content_type)}"
    except DataError as error:
        rule = str(error)
    except msgspec.MsgspecError as error:
        why = explain_error(data, error)
        rule = f"must be text in the charset of {preview_name(content_type)}, but {why}"
    raise InvalidEvent([Problem("data", rule, "J-16")])


def _read_base64(data: bytes | None, encoded: bytes) -> bytes:
    problems = []
    if data is not None and data != _NULL:
        problems.append(Problem("data", "data and data_base64 must not occur together", "J-12"))
    try:  # J-14: bytes, which are not JSON
        payload = parse_binary(_parse(encoded)) if encoded.startswith(_QUOTE) else None
    except ValueError:
        payload = None
    if payload is None:
        rule = "must be a string of base64, RFC 4648, with padding"
        problems.append(Problem("data_base64", rule, "J-14"))
    if payload is None or problems:
        raise InvalidEvent(problems)
    return payload
