"""Recommendations for events that carry OPC UA messages (extension opcua).

The type of an event says that it carries one. Only its producer knows the fields of the message,
so this module checks what the event itself shows. No event is refused for it.
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

_DATA_TYPES: Final = ("ua-keyframe", "ua-deltaframe", "ua-event")
_TYPES: Final = ("ua-metadata", *_DATA_TYPES)
_REQUIRED: Final = ("subject", "time")
_REQUIRED_WITH_DATA: Final = ("sequence", "traceparent", "recordedtime")
_JSON: Final = "application/json"
_GZIPPED_JSON: Final = "application/json+gzip"
_WITH_EVENT_ID: Final = re.compile(".+/.+")
_HEADERS: Final = (
    {"MessageId", "Messages"},
    {"DataSetWriterId", "Payload"},
)  # of network and dataset messages


def opc_ua_problems(event: Event) -> list[Problem]:
    """Return the recommendations that an event with an OPC UA message does not follow."""
    if event.type not in _TYPES:
        return []
    names = _REQUIRED + (_REQUIRED_WITH_DATA if event.type in _DATA_TYPES else ())
    rule = f"should be present in an OPC UA message of type {event.type}"
    missing = [Problem(name, rule, "X-40") for name in names if name not in event]
    return missing + [Problem(name, rule, "X-64") for name, rule, follows in _RULES if not follows(event)]


def _is_in_binary_mode(event: Event) -> bool:
    _, wire = raw_parts(event)
    return wire is None  # an event that was not read from a record has no mode yet


def _is_typed_json(event: Event) -> bool:
    content_type = event.datacontenttype
    return not _has_json(event) or (content_type is not None and media_type(content_type).essence == _JSON)


def _has_schema(event: Event) -> bool:
    content_type = event.datacontenttype
    if (
        "dataschema" in event
        or event.payload is None
        or content_type is None
        or event.type not in _DATA_TYPES
    ):
        return True
    return implies_json(content_type) or media_type(content_type).essence == _GZIPPED_JSON


def _has_event_id(event: Event) -> bool:
    return event.type != "ua-event" or event.subject is None or bool(_WITH_EVENT_ID.fullmatch(event.subject))


def _is_one_dataset(event: Event) -> bool:
    data = _json_of(event) if event.type in _DATA_TYPES else None
    if isinstance(data, dict):
        return not any(headers <= data.keys() for headers in _HEADERS)
    return not isinstance(data, list)


def _has_json(event: Event) -> bool:
    content_type = event.datacontenttype
    untyped = content_type is None and event.kind is not DataKind.JSON
    return event.payload is not None and implies_json(content_type) and not untyped


def _json_of(event: Event) -> Any:
    """Return the data as JSON, whatever reader the event has, or None if it is not JSON."""
    if not _has_json(event):
        return None
    try:
        return decode_json(to_utf8(event.payload or b"", event.datacontenttype))
    except (DataError, RecursionError):
        return None


_RULES: Final[tuple[tuple[str | None, str, Callable[[Event], bool]], ...]] = (
    (None, "should be in binary mode for an OPC UA message", _is_in_binary_mode),
    ("datacontenttype", f"should be {_JSON} if the data of an OPC UA message is JSON", _is_typed_json),
    ("dataschema", "should be present if the data of an OPC UA message is not JSON", _has_schema),
    (
        "subject",
        "should end with a slash and the EventId in an OPC UA message of type ua-event",
        _has_event_id,
    ),
    ("data", "should be one OPC UA dataset message without headers", _is_one_dataset),
)
