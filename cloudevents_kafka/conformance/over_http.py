"""Cases of events over HTTP: the official SDK's binding takes the library's events, and gives them back."""

from __future__ import annotations

import json
from typing import Any, Final

from cloudevents.core.bindings import http
from cloudevents.core.exceptions import BaseCloudEventException
from cloudevents.core.formats.json import JSONFormat

from cloudevents_kafka.conformance.judging import judge_value, need, same, same_json
from cloudevents_kafka.conformance.library import Case
from cloudevents_kafka.conformance.notation import as_bytes, as_event
from cloudevents_kafka.event import Event

_JSON: Final = JSONFormat()
_WRITERS: Final = {"binary": http.to_binary, "structured": http.to_structured}


def run_http(case: Case) -> None:
    """Read a message and write its event: the same event, and the same message; or it is refused."""
    message = case["message"]
    try:
        found = Event.of(http.from_http(http.HTTPMessage(message["headers"], _body(message["body"])), _JSON))
    except (BaseCloudEventException, ValueError) as error:
        need(case.get("refused"), f"must be read: {error}")
        return
    need(not case.get("refused"), f"must be refused, but gave {found}")
    event = as_event(case["event"])
    same({name: found.text(name) for name in found}, {name: event.text(name) for name in event}, "the event")
    need(same_json(found.data, event.data), f"the data must be {event.data!r}, not {found.data!r}")
    written = _WRITERS[case["mode"]](event, _JSON)
    same({name.lower(): text for name, text in written.headers.items()}, message["headers"], "the headers")
    judge_value(written.body, message["body"])


def _body(notation: Any) -> bytes:
    if isinstance(notation, dict) and "json" in notation:
        return json.dumps(notation["json"]).encode()
    return as_bytes(notation) or b""
