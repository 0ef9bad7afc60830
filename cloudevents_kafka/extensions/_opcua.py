"""OPC UA: what an event made of an OPC UA message has to look like (extension opcua).

Its type says that an event is one. Where a field of the message belongs only who makes the
event can tell; what an event shows of it is told here, and refuses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.codecs.json import decode_json
from cloudevents_kafka.codecs.payload import DataKind, implies_json, to_utf8
from cloudevents_kafka.errors import DataError, Problem
from cloudevents_kafka.event import Event, raw_parts

_DATA: Final = ("ua-keyframe", "ua-deltaframe", "ua-event")
_TYPES: Final = ("ua-metadata", *_DATA)
_ALL_HAVE: Final = ("subject", "time")
_DATA_HAS: Final = ("sequence", "traceparent", "recordedtime")
_JSON: Final = "application/json"
_ZIPPED: Final = "application/json+gzip"
_WITH_EVENT_ID: Final = re.compile(".+/.+")
_HEADERS: Final = ({"MessageId", "Messages"}, {"DataSetWriterId", "Payload"})  # of network and of dataset


def opc_ua_problems(event: Event) -> list[Problem]:
    """List what the extension demands of an OPC UA message, and an event of such a type does otherwise."""
    if event.type not in _TYPES:
        return []
    wanted = _ALL_HAVE + (_DATA_HAS if event.type in _DATA else ())
    rule = f"should be there in an OPC UA message of type {event.type}"
    lacking = [Problem(name, rule, "X-40") for name in wanted if name not in event]
    return lacking + [Problem(name, rule, "X-64") for name, rule, kept in _RULES if not kept(event)]


def _is_in_binary_mode(event: Event) -> bool:
    _, wire = raw_parts(event)
    return wire is None  # or it was made here, and has no mode yet


def _is_typed_json(event: Event) -> bool:
    content_type = event.datacontenttype
    return not _has_json(event) or (content_type is not None and media_type(content_type).essence == _JSON)


def _has_schema(event: Event) -> bool:
    content_type = event.datacontenttype
    if "dataschema" in event or event.payload is None or content_type is None or event.type not in _DATA:
        return True
    return implies_json(content_type) or media_type(content_type).essence == _ZIPPED


def _has_event_id(event: Event) -> bool:
    return event.type != "ua-event" or event.subject is None or bool(_WITH_EVENT_ID.fullmatch(event.subject))


def _is_one_dataset(event: Event) -> bool:
    data = _json_of(event) if event.type in _DATA else None
    if isinstance(data, dict):
        return not any(headers <= data.keys() for headers in _HEADERS)
    return not isinstance(data, list)


def _has_json(event: Event) -> bool:
    content_type = event.datacontenttype
    untyped = content_type is None and event.kind is not DataKind.JSON
    return event.payload is not None and implies_json(content_type) and not untyped


def _json_of(event: Event) -> Any:
    """Read data that is JSON, whatever reader the event has; None for what is none."""
    if not _has_json(event):
        return None
    try:
        return decode_json(to_utf8(event.payload or b"", event.datacontenttype))
    except (DataError, RecursionError):
        return None


_RULES: Final[tuple[tuple[str | None, str, Callable[[Event], bool]], ...]] = (
    (None, "an OPC UA message should go in binary mode", _is_in_binary_mode),
    ("datacontenttype", f"should be {_JSON} where the data of an OPC UA message is JSON", _is_typed_json),
    ("dataschema", "should be there where the data of an OPC UA message is not JSON", _has_schema),
    (
        "subject",
        "should end with a slash and the EventId in an OPC UA message of type ua-event",
        _has_event_id,
    ),
    ("data", "should be one dataset message of OPC UA, without headers", _is_one_dataset),
)
