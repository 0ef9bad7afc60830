r"""JSON lines: what `consume` writes and `produce` reads, one JSON object per record.

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

The exact record stands in ``key``, ``headers`` and ``value``: text where the bytes are
UTF-8 (and have no NUL), else ``{"base64": …}``, null where there is nothing (so a
tombstone is null, and a value of no bytes is ``""``). ``headers`` are all of them, in
order, with repeats. ``timestamp`` is in milliseconds since the epoch, null if the broker has none.

What the record means stands beside it: ``mode`` is ``binary`` or ``structured``, then
with ``format``; ``event`` is the event in the JSON event format, with ``data`` in its
exact text (line ends between tokens become spaces); JSON that parsers refuse, with half a
surrogate pair or nested too deep, stands as ``data_base64``. With --lenient, ``tolerated`` lists
what was let pass. A record that is no event has ``error`` instead::

    "error": {"verdict": "not-an-event", "reason": "…", "clauses": ["K-11"]}

So `produce` gives back the same bytes, whatever the record was. A line whose ``event``
was edited on the way says something else than its record does: then the event counts,
and is written like the record was (mode, key, other headers). Tools such as jq keep
numbers as doubles: that alone is no edit. A line without ``value`` has no exact record:
its ``event`` is written, with ``headers`` as headers beside it.

`produce` takes a plain event, in the JSON event format, too: the object that has a
``specversion``. All lines are safe to print: what a terminal would obey is escaped.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable, sniff
from cloudevents_kafka.cli.terminal.escape import visible_json
from cloudevents_kafka.codecs.json import is_json, is_parsable
from cloudevents_kafka.codecs.json_grammar import blank_members
from cloudevents_kafka.codecs.payload import DataKind, implies_utf8_json
from cloudevents_kafka.errors import (
    CloudEventsKafkaError,
    DecodeError,
    message_without_data,
)
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.record import Headers, Record

_event_format: Final = JsonFormat(text_data=True)
_encode: Final = msgspec.json.Encoder().encode
_split: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_parse: Final = msgspec.json.Decoder().decode
_WHITE: Final = bytes.maketrans(b"\n\r\t", b"   ")  # raw, they stand between tokens only
_REFUSED: Final = (msgspec.MsgspecError, RecursionError)
_BYTES_RULE: Final = 'must be text, null, {"base64": text} or {"hex": text}'


# --- writing -------------------------------------------------------------------


def write_line(item: Decoded | Undecodable) -> bytes:
    """Write what was read as one line, with its line end; total."""
    record = item.record
    members: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": written(record.key),
    }
    if isinstance(item, Decoded):
        members |= _meaning(item)
    else:
        members["error"] = error_members(item.error)
    members["headers"] = [[name, written(value)] for name, value in record.headers]
    members["value"] = written(record.value)
    return encoded(members) + b"\n"


def encoded(members: dict[str, Any]) -> bytes:
    """Write a JSON object that is safe to print."""
    line = _encode(members)
    return line if line.isascii() and b"\x7f" not in line else visible_json(line.decode()).encode()


def _meaning(item: Decoded) -> dict[str, Any]:
    verdict = sniff(item.record.headers)
    structured = verdict.mode == "structured"
    members: dict[str, Any] = {"mode": verdict.mode if structured else "binary"}
    if structured:
        members["format"] = verdict.format
    members["event"] = event_members(item.event)
    if item.tolerated:
        members["tolerated"] = [str(problem) for problem in item.tolerated]
    return members


def event_members(event: Event) -> msgspec.Raw:
    """Write an event in the JSON event format, on one line.

    JSON data that parsers refuse goes as base64: tools would stop at it, or change it.
    """
    payload, content_type = event.payload, event.datacontenttype
    if payload is None or not implies_utf8_json(content_type) or is_parsable(payload):
        return msgspec.Raw(_event_format.encode(event).translate(_WHITE))
    bare = _event_format.encode(event.replace(data=None))
    return msgspec.Raw(b'%b,"data_base64":"%b"}' % (bare[:-1], base64.b64encode(payload)))


def with_json_data(event: Event) -> Event:
    """Return an event of a line with the JSON data that `event_members` has written as base64."""
    payload = event.payload
    if payload is None or event.kind is not DataKind.BYTES or not implies_utf8_json(event.datacontenttype):
        return event
    is_odd_json = not is_parsable(payload) and is_json(payload)
    return event.replace(data=msgspec.Raw(payload)) if is_odd_json else event


def error_members(error: DecodeError) -> dict[str, Any]:
    """Tell why a record is no event: a word, a sentence, and the clauses."""
    members: dict[str, Any] = {
        "verdict": error.verdict,
        "reason": error.reason,
        "clauses": error.clauses,
    }
    return members | ({"hint": error.hint} if error.hint else {})


def written(value: bytes | None) -> str | dict[str, str] | None:
    """Write bytes as text where they are UTF-8 without NUL, else as base64; null is null."""
    if value is None:
        return None
    if b"\0" not in value:  # text has none: these are numbers, or Avro
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass
    return {"base64": base64.b64encode(value).decode()}


# --- reading -------------------------------------------------------------------


class BadLine(CloudEventsKafkaError, ValueError):
    """A line is neither an event nor a record."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What a line says: the exact record, an event, or both; see this module's text.

    ``record`` without ``exact`` has the key and the headers to go beside the event.
    ``told`` is the event in the JSON event format, not looked at yet.
    """

    record: Record
    told: bytes | None = None
    exact: bool = False
    mode: str | None = None
    format: str | None = None

    def event(self) -> Event | None:
        """Return the event that the line has; raises `InvalidEvent`."""
        return None if self.told is None else with_json_data(_event_format.decode(self.told))

    def tells(self, event: Event) -> bool:
        """Tell quickly that the line tells this event, as it was written; False is "look closer"."""
        return self.told == bytes(event_members(event))


def read_line(text: bytes) -> Line:
    """Read a line; raises `BadLine`."""
    members = _members(text.strip())
    if "specversion" in members:
        return Line(record=Record(), told=text.strip())
    if not members.keys() & {"event", "value", "headers", "key"}:
        raise BadLine(
            'neither an event (no "specversion") nor a record (no "event", "value", "headers" or "key")'
        )
    told = bytes(members.pop("event", b"null"))
    values = _values(members)
    return Line(
        record=_record(values),
        told=None if told == b"null" else told,
        exact="value" in values,
        mode=_checked(values, "mode", str),
        format=_checked(values, "format", str),
    )


def read_record(text: bytes) -> Record:
    """Read the exact record of a line, and nothing else; raises `BadLine`."""
    members = _members(text.strip())
    if not members.keys() & {"value", "headers", "key"}:
        raise BadLine('no record: it has no "value", "headers" or "key"')
    members.pop("event", None)
    return _record(_values(members))


def _members(text: bytes) -> dict[str, Any]:
    """Return the texts of a line's members, of an event's too whose data no parser takes."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise BadLine(f"no JSON object: {message_without_data(error)}") from None
    try:
        found: dict[str, Any] = _split(text)
    except _REFUSED:
        readable, kept = blank_members(text, "event", "data") or (text, {})
    else:
        return found
    try:
        return {**_split(readable), **kept}
    except _REFUSED as error:
        raise BadLine(f"no JSON object: {error}") from None


def _values(members: dict[str, Any]) -> dict[str, Any]:
    try:
        return {name: _parse(value) for name, value in members.items()}
    except _REFUSED as error:
        raise BadLine(f"no JSON object: {error}") from None


def _record(members: dict[str, Any]) -> Record:
    return Record(
        key=as_bytes(members.get("key"), "key"),
        value=as_bytes(members.get("value"), "value"),
        headers=as_headers(members.get("headers")),
        topic=_checked(members, "topic", str),
        partition=_checked(members, "partition", int),
        offset=_checked(members, "offset", int),
        timestamp=_checked(members, "timestamp", int),
    )


def _checked(members: dict[str, Any], name: str, kind: type) -> Any:
    value = members.get(name)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise BadLine(f"{name} must be {'text' if kind is str else 'a whole number'} or null")
    return value


def as_bytes(value: Any, what: str) -> bytes | None:
    """Read what `written` writes, and ``{"hex": …}``; raises `BadLine`."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and len(value) == 1:
        [(kind, text)] = value.items()
        try:
            if kind == "base64":
                return base64.b64decode(text, validate=True)
            if kind == "hex":
                return bytes.fromhex(text)
        except (TypeError, ValueError, binascii.Error):
            raise BadLine(f"{what} is no {kind}") from None
    raise BadLine(f"{what} {_BYTES_RULE}")


def as_headers(value: Any) -> Headers:
    """Read headers: a list of [name, value], or an object; raises `BadLine`."""
    pairs = list(value.items()) if isinstance(value, dict) else [] if value is None else value
    if not isinstance(pairs, list):
        raise BadLine("headers must be a list of [name, value]")
    headers: Headers = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise BadLine("headers must be a list of [name, value], where the name is text")
        headers.append((pair[0], as_bytes(pair[1], f"header {pair[0]!r}")))
    return headers
