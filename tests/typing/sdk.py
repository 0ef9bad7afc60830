"""Code that a type checker must accept or refuse; tests/test_typing.py runs mypy on it."""

from __future__ import annotations

from datetime import datetime
from typing import assert_type

from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings.http import to_binary
from cloudevents.core.bindings.kafka import to_structured
from cloudevents.core.formats.json import JSONFormat

from cloudevents_kafka import (
    BrokenData,
    Decoded,
    Event,
    Problem,
    Record,
    Undecodable,
    decode,
    from_record,
    to_record,
)


def takes_any_event(event: BaseCloudEvent) -> str:
    return event.get_id()


event = Event(
    id="1", source="/", type="t", time=datetime.now().astimezone(), data={"a": 1}, extension="x", count=5
)
takes_any_event(event)
as_base: BaseCloudEvent = event
written: bytes = JSONFormat().write(event)
to_binary(event, JSONFormat())
to_structured(event, JSONFormat())

record: Record = to_record(
    event, mode="structured", format="avro", key="k", headers={"a": None, "b": b"c", "d": "e"}
)
again: Event = from_record(record, lenient=True)
time: datetime | None = again.time
payload: bytes | None = again.payload
changed: Event = again.replace(subject="s", time=None, data=[1, 2])

result: Decoded | Undecodable = decode(record)
match result:
    case Decoded(event=found, tolerated=problems):
        identifier: str = found.id
        first: Problem | None = problems[0] if problems else None
    case Undecodable(error=BrokenData() as broken):
        assert_type(broken.event, Event)
    case Undecodable(error=error):
        reason: str = error.reason

Event(id=1, source="/", type="t")  # type: ignore[arg-type]  # an id is text
Event("1")  # type: ignore[call-arg]  # attributes go by name
event.id = "2"  # type: ignore[misc]  # events are read-only
Record(b"key")  # type: ignore[call-arg]  # so do a record's parts
to_record(event, mode="batch")  # type: ignore[arg-type]  # there are two modes
