"""Cases of events over HTTP: the binding of the official SDK reads and writes the library's events."""

from __future__ import annotations

import json

from msgspec import UNSET

from cloudevents_kafka.conformance._assertions import (
    CaseFailed,
    check_value,
    require,
    require_equal,
    same_json,
    texts,
)
from cloudevents_kafka.conformance._vectors import HttpCase
from cloudevents_kafka.conformance.notation import BodyObject, as_bytes, as_event
from cloudevents_kafka.event import Event


def run_http(case: HttpCase) -> None:
    """Read a message as the expected event and write it as the same message, or refuse it."""
    from cloudevents.core.bindings import http  # slow to import
    from cloudevents.core.exceptions import BaseCloudEventException
    from cloudevents.core.formats.json import JSONFormat

    message, json_format = case.message, JSONFormat()
    try:
        found = Event.of(http.from_http(http.HTTPMessage(message.headers, _body(message.body)), json_format))
    except (BaseCloudEventException, ValueError) as error:
        require(case.refused, f"must be read: {error}")
        return
    if case.refused or case.event is None:
        raise CaseFailed(f"must be refused, but was read as {found}")
    event = as_event(case.event)
    require_equal(texts(found), texts(event), "the event")
    require(same_json(found.data, event.data), f"the data must be {event.data!r}, not {found.data!r}")
    write = http.to_binary if case.mode == "binary" else http.to_structured
    written = write(event, json_format)
    headers = {name.lower(): text for name, text in written.headers.items()}
    require_equal(headers, message.headers, "the headers")
    check_value(written.body, message.body)


def _body(notation: str | BodyObject) -> bytes:
    if isinstance(notation, BodyObject) and notation.json is not UNSET:
        return json.dumps(notation.json).encode()
    return as_bytes(notation) or b""
