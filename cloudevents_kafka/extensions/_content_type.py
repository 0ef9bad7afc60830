"""The default content type of JSON data, for an event without a content type."""

from __future__ import annotations

from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.event import Event


def with_content_type(event: Event) -> Event:
    """Return the event; if it has JSON data without a content type, add ``application/json``."""
    # "SHOULD be set explicitly to the implied `datacontenttype`"
    if event.kind is not DataKind.JSON or event.datacontenttype is not None:
        return event
    return event.replace(datacontenttype="application/json")
