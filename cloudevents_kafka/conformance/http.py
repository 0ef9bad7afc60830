"""Cases of events over HTTP: the official SDK's binding takes the library's events, and gives them back."""

from __future__ import annotations

import json
from typing import Any

from cloudevents_kafka.conformance.assertions import judge_value, need, same, same_json
from cloudevents_kafka.conformance.dataset import Case
from cloudevents_kafka.conformance.notation import as_bytes, as_event
from cloudevents_kafka.event import Event


def run_http(case: Case) -> None:
    """Read a message and write its event: the same event, and the same message; or it is refused."""
    from cloudevents.core.bindings import http  # slow to load, and for few cases
    from cloudevents.core.exceptions import BaseCloudEventException
    from cloudevents.core.formats.json import JSONFormat

    message, form = case["message"], JSONFormat()
    try:
        found = Event.of(http.from_http(http.HTTPMessage(message["headers"], _body(message["body"])), form))
    except (BaseCloudEventException, ValueError) as error:
        need(case.get("refused"), f"must be read: {error}")
        return
    need(not case.get("refused"), f"must be refused, but gave {found}")
    event = as_event(case["event"])
    same({name: found.text(name) for name in found}, {name: event.text(name) for name in event}, "the event")
    need(same_json(found.data, event.data), f"the data must be {event.data!r}, not {found.data!r}")
    write = http.to_binary if case["mode"] == "binary" else http.to_structured
    written = write(event, form)
    same({name.lower(): text for name, text in written.headers.items()}, message["headers"], "the headers")
    judge_value(written.body, message["body"])


def _body(notation: Any) -> bytes:
    if isinstance(notation, dict) and "json" in notation:
        return json.dumps(notation["json"]).encode()
    return as_bytes(notation) or b""
