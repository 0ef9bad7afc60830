"""Events as columns have them, and the records that `encode_events` must write for them."""

from __future__ import annotations

from typing import Any

from cloudevents_kafka import Decoded, EncodeError, Event, InvalidEvent, Record, decode, to_record
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.event import raw_parts, unchecked_event

Written = tuple[list[tuple[str, bytes | None]], bytes | None]


def in_columns(event: Event) -> Event:
    """Return an event as columns have it: in the order of columns, without its received bytes."""
    attributes, _ = raw_parts(event)
    core = {name: attributes[name] for name in ORDER if name in attributes}
    own = {name: attributes[name] for name in sorted(attributes) if name not in CORE}
    return unchecked_event({**core, **own}, event.payload, event.kind)


ORDER = ("specversion", "id", "source", "type", "datacontenttype", "dataschema", "subject", "time")


def written(record: Record, **options: Any) -> Written | None:
    """Return headers and value for the event of a record; None if it is not an event, or is refused."""
    decoded = decode(record)
    if not isinstance(decoded, Decoded):
        return None
    try:
        made = to_record(in_columns(decoded.event), **options)
    except (InvalidEvent, EncodeError):
        return None
    return made.headers, made.value
