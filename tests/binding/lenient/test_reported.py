"""What lenient reading makes of the records of public reports."""

from __future__ import annotations

from typing import Any

from cloudevents_kafka import Decoded, Record, Undecodable, decode, to_record
from cloudevents_kafka.errors import LeftOut
from cloudevents_kafka.event import raw_parts, unchecked_event
from tests.support.cases import each
from tests.support.reported_records import REPORTED


@each(("record", "more", "left_out"), [row[1:] for row in REPORTED], ids=[row[0] for row in REPORTED])
def test_reported_record(
    record: Record, more: dict[str, Any] | None, left_out: dict[str, str | bytes]
) -> None:
    """The event has what it can hold, the rest is reported whole, and the record goes on as it came."""
    item = decode(record, lenient=True)
    if more is None:
        assert isinstance(item, Undecodable)
        return
    assert isinstance(item, Decoded), item
    required = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    assert dict(item.event.attributes) == required | more
    assert {one.attribute: one.value for one in item.tolerated if isinstance(one, LeftOut)} == left_out
    again = to_record(item.event, like=record)
    assert (again.value, again.headers) == (record.value, record.headers)
    attributes = {**raw_parts(item.event)[0], "type": "changed"}
    changed = unchecked_event(attributes, item.event.payload, item.event.kind)
    found = decode(to_record(changed, like=record), lenient=True)
    assert isinstance(found, Decoded)
    assert found.event == changed
    assert (found.mode, found.format) == (item.mode, item.format)
