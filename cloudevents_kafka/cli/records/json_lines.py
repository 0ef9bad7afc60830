r"""JSON lines: the format that `consume` writes and `produce` reads, one JSON object for each record.

::

    {"topic": "orders", "partition": 0, "offset": 17, "timestamp": 1763730000123,
     "key": "customer-7",
     "mode": "binary",
     "event": {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.placed",
               "datacontenttype": "application/json", "data": {"total": 12.50}},
     "headers": [["ce_specversion", "1.0"], ["ce_id", "1"], ["ce_source", "/shop"],
                 ["ce_type", "order.placed"], ["content-type", "application/json"],
                 ["trace", {"base64": "/wA="}], ["note", null]],
     "value": "{\"total\": 12.50}"}

``key``, ``headers`` and ``value`` represent the exact record. Bytes are written as text if they are UTF-8
without NUL; all other bytes are written as ``{"base64": …}``. Null is written as null: a tombstone has the
value null, and an empty value is ``""``. ``headers`` contains all headers in order, with repeats.
``timestamp`` is in milliseconds since the epoch, or null.

``mode``, ``format`` and ``event`` represent the decoded event. The mode is ``binary`` or ``structured``;
``format`` is present if the mode is ``structured``. ``event`` is in the JSON event format. The text of the
event's ``data`` is unchanged, except that line ends between tokens become spaces. JSON data that parsers
refuse, because of a lone surrogate or deep nesting, is written as ``data_base64``. With --lenient,
``tolerated`` lists the problems that were tolerated. ``left_out`` lists, in order, the names and the complete
values of attributes that were left out of the event. A value in ``left_out`` is text, or ``{"base64": …}`` if
the value is not UTF-8. For a record that is not an event, the line contains ``error`` instead of ``mode``,
``format`` and ``event``::

    "error": {"verdict": "not-an-event", "reason": "…", "clauses": ["K-11"]}

If the data has a schema id, --schema-registry adds one of two members to the line: ``decoded`` is the data
after decoding with the registry's schema. ``decode_error`` is the reason why the data cannot be decoded.

For each record, the command `produce` sends the same bytes again. If the ``event`` of a line differs from
the line's record, the event was edited. An edited event is sent with the mode, the key and the other headers
of the record. Tools such as jq convert numbers to doubles; this conversion alone does not count as an edit. A
line without ``value`` does not describe an exact record: the ``event`` in the line is encoded, and
``headers`` are added to the headers of the event.

The command `produce` also accepts lines that are events in the JSON event format, that is, objects with
``specversion``. All lines are safe to print, because control characters are escaped.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.cli.terminal.text import escape_json
from cloudevents_kafka.codecs.json import is_json, is_parsable
from cloudevents_kafka.codecs.json_grammar import blank_members
from cloudevents_kafka.codecs.payload import DataKind, implies_utf8_json
from cloudevents_kafka.errors import CloudEventsKafkaError, DecodeError, LeftOut, Problem
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.primitives.preview import message_without_data
from cloudevents_kafka.record import Headers, Record

_event_format: Final = JsonFormat(text_data=True)
_encode: Final = msgspec.json.Encoder().encode
_decode_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode: Final = msgspec.json.Decoder().decode
# In strings, control characters "MUST be escaped" (RFC 8259, 7): these bytes are only between tokens.
_SPACES: Final = bytes.maketrans(b"\n\r\t", b"   ")
_MAX_DEPTH: Final = 1_000
"""The deepest nesting of JSON in a line.

Since Python 3.14, msgspec reads deeper JSON if the stack allows it.
"""
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_NOT_BRACKETS: Final = bytes({*range(256)} - {*b"[]{}"})
_PARSER_ERRORS: Final = (msgspec.MsgspecError, RecursionError)
_BYTES_RULE: Final = 'must be text, null, {"base64": text} or {"hex": text}'
_NOT_AN_OBJECT: Final = "the line must be a JSON object"


# --- writing -------------------------------------------------------------------


def write_line(item: Decoded | Undecodable, more: Mapping[str, Any] = MappingProxyType({})) -> bytes:
    """Return the line for a record, which may be an event or not, with additional members and a line end."""
    decoded = _event_members(item) if isinstance(item, Decoded) else {"error": error_object(item.error)}
    return encode_json(record_object(item.record, {**decoded, **more})) + b"\n"


def record_object(record: Record, decoded: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Return a record as a JSON object, in which the members of ``decoded`` follow the key."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": bytes_to_json(record.key),
        **decoded,
        "headers": [[name, bytes_to_json(value)] for name, value in record.headers],
        "value": bytes_to_json(record.value),
    }


def encode_json(members: dict[str, Any]) -> bytes:
    """Return a JSON object on one line, with control characters escaped."""
    line = _encode(members)
    return line if line.isascii() and b"\x7f" not in line else escape_json(line.decode()).encode()


def _event_members(item: Decoded) -> dict[str, Any]:
    members: dict[str, Any] = {"mode": item.mode}
    if item.format is not None:
        members["format"] = item.format
    members["event"] = event_json(item.event)
    if item.tolerated:
        members["tolerated"] = [_whole(problem) for problem in item.tolerated]
        left_out = [one for one in item.tolerated if isinstance(one, LeftOut)]
        if left_out:
            members["left_out"] = [[one.attribute, value_to_json(one.value)] for one in left_out]
    return members


def _whole(problem: Problem) -> str:
    """Return a problem as text; if a value was left out of the event, the text contains the whole value."""
    if not isinstance(problem, LeftOut) or problem.value is None:
        return str(problem)
    return str(Problem(problem.attribute, problem.rule, problem.clause, repr(problem.value)))


def value_to_json(value: str | bytes | None) -> str | dict[str, str] | None:
    """Return a text unchanged; for bytes, return the result of `bytes_to_json`."""
    return bytes_to_json(value) if isinstance(value, bytes) else value


def event_json(event: Event) -> msgspec.Raw:
    """Return an event in the JSON event format, on one line.

    JSON data that parsers refuse is encoded as base64, because other tools would fail on the data or change
    it.
    """
    payload, content_type = event.payload, event.datacontenttype
    if payload is None or not implies_utf8_json(content_type) or _is_for_tools(payload):
        return msgspec.Raw(_event_format.encode(event).translate(_SPACES))
    without_data = _event_format.encode(_with_data(event, None))
    return msgspec.Raw(b'%b,"data_base64":"%b"}' % (without_data[:-1], base64.b64encode(payload)))


def restore_json_data(event: Event) -> Event:
    """Return the event in a line; JSON data that `event_json` encoded as base64 is decoded."""
    payload = event.payload
    if payload is None or event.kind is not DataKind.BYTES or not implies_utf8_json(event.datacontenttype):
        return event
    was_encoded = not _is_for_tools(payload) and is_json(payload)
    return _with_data(event, payload) if was_encoded else event


def _is_for_tools(payload: bytes) -> bool:
    """Return whether JSON data has a Python value, and is not nested too deeply for other parsers."""
    if not is_parsable(payload):
        return False
    if payload.count(b"[") + payload.count(b"{") <= _MAX_DEPTH:
        return True
    brackets = _STRING.sub(b"", payload).translate(None, _NOT_BRACKETS)
    return max(accumulate(1 if sign in b"[{" else -1 for sign in brackets)) <= _MAX_DEPTH


def _with_data(event: Event, payload: bytes | None) -> Event:
    """Return an event with JSON as data.

    The event is not validated, since events from lenient reading may break rules.
    """
    return unchecked_event(dict(raw_parts(event)[0]), payload, DataKind.JSON)


def error_object(error: DecodeError) -> dict[str, Any]:
    """Return why a record is not an event, as a JSON object: verdict, reason, clauses and hint."""
    members = {"verdict": error.verdict, "reason": error.reason, "clauses": error.clauses}
    return {**members, **({"hint": error.hint} if error.hint else {})}


def bytes_to_json(value: bytes | None) -> str | dict[str, str] | None:
    """Return bytes as text if they are UTF-8 without NUL, else as ``{"base64": …}``; return None for null."""
    if value is None:
        return None
    if b"\0" not in value:  # text has no NUL: such bytes are numbers, or Avro
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    return {"base64": base64.b64encode(value).decode()}


# --- reading -------------------------------------------------------------------


class BadLine(CloudEventsKafkaError, ValueError):
    """A line is neither an event nor a record."""


class JsonLine(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a line: a record, an event, or both (see the docstring of this module).

    If ``exact`` is False, ``record`` contains only the key and the headers that are sent with the event.
    ``event_text`` is the event in the JSON event format, as a text that was not checked yet.
    """

    record: Record
    event_text: bytes | None = None
    exact: bool = False
    mode: str | None = None
    format: str | None = None

    def event(self) -> Event | None:
        """Return the event in the line. Raises `InvalidEvent` if the event breaks a rule."""
        return None if self.event_text is None else restore_json_data(_event_format.decode(self.event_text))

    def has_text_of(self, event: Event) -> bool:
        """Return whether the event in the line and ``event`` have the same text.

        Equal events may have different texts.
        """
        return self.event_text == bytes(event_json(event))


def read_line(text: bytes) -> JsonLine:
    """Return the record, the event or both that a line contains.

    Raises `BadLine` if the line is neither a record nor an event.
    """
    members = _members(text.strip())
    if "specversion" in members:
        return JsonLine(record=Record(), event_text=text.strip())
    if not members.keys() & {"event", "value", "headers", "key"}:
        raise BadLine(
            'the line is neither an event (it has no "specversion") nor a record '
            '(it has no "event", "value", "headers" or "key")'
        )
    event_text = bytes(members.pop("event", b"null"))
    values = _values(members)
    return JsonLine(
        record=_record(values),
        event_text=None if event_text == b"null" else event_text,
        exact="value" in values,
        mode=_checked(values, "mode", str),
        format=_checked(values, "format", str),
    )


def read_record(text: bytes) -> Record:
    """Return the record in a line without reading its event.

    Raises `BadLine` if the line does not contain a record.
    """
    members = _members(text.strip())
    if not members.keys() & {"value", "headers", "key"}:
        raise BadLine('the line is not a record: it has no "value", "headers" or "key"')
    members.pop("event", None)
    return _record(_values(members))


def _members(text: bytes) -> dict[str, Any]:
    """Return the text of each member of a line, even if parsers refuse the data in the line."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise BadLine(f"{_NOT_AN_OBJECT}: {message_without_data(error)}") from None
    try:
        return _decode_members(text)
    except _PARSER_ERRORS:
        parsable, blanked = blank_members(text, "event", "data") or (text, {})
    try:
        return {**_decode_members(parsable), **blanked}
    except _PARSER_ERRORS as error:
        raise BadLine(f"{_NOT_AN_OBJECT}: {error}") from None


def _values(members: dict[str, Any]) -> dict[str, Any]:
    try:
        return {name: _decode(value) for name, value in members.items()}
    except _PARSER_ERRORS as error:
        raise BadLine(f"{_NOT_AN_OBJECT}: {error}") from None


def _record(members: dict[str, Any]) -> Record:
    return Record(
        key=bytes_from_json(members.get("key"), "key"),
        value=bytes_from_json(members.get("value"), "value"),
        headers=_headers_from_json(members.get("headers")),
        topic=_checked(members, "topic", str),
        partition=_integer(members, "partition", bits=32),
        offset=_integer(members, "offset", bits=64),
        timestamp=_integer(members, "timestamp", bits=64),
    )


def _checked(members: dict[str, Any], name: str, type_: type) -> Any:
    value = members.get(name)
    if value is not None and (not isinstance(value, type_) or isinstance(value, bool)):
        raise BadLine(f"{name} must be {'text' if type_ is str else 'an integer'} or null")
    return value


def _integer(members: dict[str, Any], name: str, *, bits: int) -> int | None:
    value: int | None = _checked(members, name, int)
    if value is not None and value.bit_length() >= bits:  # a client could not convert it
        raise BadLine(f"{name} must be an integer of {bits} bits")
    return value


def bytes_from_json(value: Any, name: str) -> bytes | None:
    """Return the bytes that a JSON value represents.

    The JSON value is a result of `bytes_to_json`, or has the form ``{"hex": …}``. Raises `BadLine` for other
    JSON values.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and len(value) == 1:
        [(encoding, text)] = value.items()
        try:
            if encoding == "base64":
                return base64.b64decode(text, validate=True)
            if encoding == "hex":
                return bytes.fromhex(text)
        except (TypeError, ValueError):
            raise BadLine(f"{name} must be valid {encoding}") from None
    raise BadLine(f"{name} {_BYTES_RULE}")


def _headers_from_json(value: Any) -> Headers:
    """Return headers from a list of [name, value] pairs, or from an object."""
    pairs = list(value.items()) if isinstance(value, dict) else [] if value is None else value
    if not isinstance(pairs, list):
        raise BadLine("headers must be a list of [name, value]")
    headers: Headers = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise BadLine("headers must be a list of [name, value], each name text")
        headers.append((pair[0], bytes_from_json(pair[1], f"header {pair[0]!r}")))
    return headers
