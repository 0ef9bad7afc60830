"""An SDK's event as an `Event`, with data that the SDK writes in one way or another."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from cloudevents_kafka.attributes.types import canonical_text
from cloudevents_kafka.codecs.json import encode_json
from cloudevents_kafka.codecs.payload import implies_json
from cloudevents_kafka.codecs.registry import find
from cloudevents_kafka.errors import DataError, InvalidEvent, Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.sdk._reading import key_text


def event_of(event: Any) -> Event:
    """Return an event of the SDK. Raises `InvalidEvent` if it breaks a rule.

    A ``partitionkey`` of bytes, which reading makes of a key that is not text, is a key and not an
    attribute. Data other than text and bytes is JSON for any content type without a codec.
    """
    attributes = event.get_attributes()
    if type(attributes.get("partitionkey")) is not bytes:
        try:
            return Event.of(event)
        except InvalidEvent:
            pass  # its data may be the reason
    return event_with(attributes, event.get_data())


def event_with(attributes: Mapping[str, Any], data: Any) -> Event:
    """Return the event of attributes and other data, as `event_of` does."""
    changed = dict(attributes)
    if isinstance(key := changed.get("partitionkey"), bytes):
        changed["partitionkey"] = key_text(key)
    content_type = changed.get("datacontenttype")
    is_value = not isinstance(data, str | bytes | bytearray | memoryview | None)
    if is_value and isinstance(content_type, str) and not implies_json(content_type):
        data = data if find(content_type, changed) else json_of(data)
    return Event.of(SimpleNamespace(get_attributes=lambda: changed, get_data=lambda: data))


def json_of(data: Any) -> bytes:
    """Return data as JSON. Raises `InvalidEvent` if JSON cannot express it."""
    try:
        return encode_json(data)
    except DataError as error:
        raise InvalidEvent([Problem("data", str(error), "J-10")]) from error


def default_key(attributes: Mapping[str, Any]) -> str | bytes | None:
    """Return the SDK's default key, ``partitionkey``: a text or bytes as they are."""
    key = attributes.get("partitionkey")
    return key if key is None or isinstance(key, str | bytes) else canonical_text(key)
