"""Read a message as an event of the SDK's version 2."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from cloudevents.core.base import BaseCloudEvent, EventFactory
from cloudevents.core.bindings import kafka
from cloudevents.core.bindings.kafka import KafkaMessage
from cloudevents.core.formats.base import Format
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v03.event import CloudEvent as OldCloudEvent
from cloudevents.core.v1.event import CloudEvent
from dateutil.parser import isoparse  # type: ignore[import-untyped]  # of the SDK

from cloudevents_kafka.attributes.python_values import check_values
from cloudevents_kafka.attributes.timestamps import is_timestamp, to_datetime
from cloudevents_kafka.codecs.payload import implies_json
from cloudevents_kafka.errors import BrokenEvent
from cloudevents_kafka.primitives.bounded import remember_text
from cloudevents_kafka.record import Record, to_bytes
from cloudevents_kafka.sdk import _reading

_Parts = tuple[dict[str, Any], Any]
_TEXTS: Final = ("id", "source", "type", "datacontenttype", "dataschema", "subject")
_is_name: Final = re.compile("[a-z0-9]+$").match  # as the SDK: it accepts a line break at the end
_names: Final[set[str]] = set()
"""Known names of attributes that the SDK's event class accepts."""
_IS_PLAIN = vars(CloudEvent({"source": "/", "type": "t"})).keys() == {"_attributes", "_data"}


def read(
    of_sdk: Callable[..., BaseCloudEvent],
    is_binary: bool | None,  # noqa: FBT001
    message: KafkaMessage,
    event_format: Format,
    event_factory: EventFactory | None,
) -> BaseCloudEvent:
    """Return the event of a message; the SDK's function ``of_sdk`` reads events with specversion 0.3."""
    headers = _reading.headers_of(message)
    content_type = _reading.content_type_in(headers)
    if is_binary is None:
        is_binary = _reading.in_binary_mode(headers, content_type)
    is_json = type(event_format) is JSONFormat
    if not (is_binary or is_json):
        return _read_by(event_format, message, event_factory)
    found = _read_binary(message, content_type) if is_binary else _read_structured(message, content_type)
    if found is None:
        return of_sdk(message, event_format, event_factory)
    attributes, data = found
    if is_binary:
        value, content_type = to_bytes(message.value), attributes.get("datacontenttype")
        if is_json:
            data = _reading.binary_data(value, content_type)
        elif value is not None:
            data = event_format.read_data(value, content_type)
    return _sdk_event(attributes, data, message, event_factory)


def _read_binary(message: KafkaMessage, content_type: str | None) -> _Parts | None:
    """Return the attributes in a message's headers, with None as data; return None for specversion 0.3."""
    texts = _reading.texts_in(_reading.headers_of(message))
    if texts is not None and _accept(texts) and not _reading.names_format(content_type):
        return texts, None
    event = _reading.read_binary(_reading.record_of(message))
    return None if event is None else (_reading.texts_of(event), None)


def _read_structured(message: KafkaMessage, content_type: str | None) -> _Parts | None:
    """Return the attributes and the data in a message's value; None if the specversion is 0.3."""
    members = _reading.members_in(message.value) if _reading.is_for_json(content_type) else None
    if members is not None and (found := _reading.split(members)) is not None and _accept(found[0]):
        if not (_reading.names_format(content_type) or implies_json(content_type)):
            found[0].setdefault("datacontenttype", content_type)  # of a record that version 1 wrote
        return found
    record = _reading.record_of(message)
    event = _reading.read_structured(record, content_type)
    return None if event is None else (_reading.members_of(event), _reading.structured_data(event, record))


def _read_by(
    event_format: Format, message: KafkaMessage, event_factory: EventFactory | None
) -> BaseCloudEvent:
    """Return the event that a user's format reads; the format itself checks the attributes."""
    is_old = False

    def make(attributes: dict[str, Any], data: Any = None) -> BaseCloudEvent:
        nonlocal is_old
        is_old = attributes.get("specversion") == _reading.OLD
        if is_old:
            return (event_factory or OldCloudEvent)(attributes, data)
        if not _accept(attributes) and (problems := check_values(attributes)[1]):
            raise BrokenEvent(problems, Record.of(message))
        return _sdk_event(attributes, data, message, event_factory)

    event = event_format.read(make, message.value)
    return kafka.from_structured(message, event_format, event_factory) if is_old else event


def _accept(attributes: dict[str, Any]) -> bool:
    """Return whether the SDK's class accepts the attributes; replace the text of ``time`` by a datetime."""
    if not (_reading.is_complete(attributes) and _have_texts(attributes)):
        return False
    try:
        if "time" in attributes:
            attributes["time"] = _to_time(attributes["time"])
    except (TypeError, ValueError, OverflowError):
        return False
    if _names.issuperset(attributes):
        return True
    for name in attributes:
        if name == "data" or not _is_name(name):
            return False
        remember_text(_names, name)
    return True


def _have_texts(attributes: dict[str, Any]) -> bool:
    """Return whether all attributes that must be texts are non-empty texts."""
    for name in _TEXTS:
        if name in attributes:
            value = attributes[name]
            if not (value and isinstance(value, str)):
                return False
    return True


def _to_time(value: Any) -> datetime:
    """Return a time with a UTC offset, parsed as in the SDK.

    Raises `TypeError` or `ValueError` for other values.
    """
    if isinstance(value, str):
        value = to_datetime(value) if is_timestamp(value) else isoparse(value)
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError("a time must have an offset")
    return value


def _sdk_event(
    attributes: dict[str, Any], data: Any, message: KafkaMessage, event_factory: EventFactory | None
) -> BaseCloudEvent:
    """Return an SDK event with these attributes and with the message's key as ``partitionkey``.

    By default, the event is created without the SDK's constructor, which would check the attributes again,
    and add a time that was not sent.
    """
    time, key = attributes.get("time"), message.key
    if isinstance(time, str):
        attributes["time"] = to_datetime(time)
    if key is not None:
        given = attributes.get("partitionkey")
        if given is None or given == str(key):  # the SDK writes a key of bytes as ``str(key)``, too
            attributes["partitionkey"] = _key(key)
    if _IS_PLAIN and event_factory in (None, CloudEvent):
        event: BaseCloudEvent = object.__new__(CloudEvent)
        vars(event).update(_attributes=attributes, _data=data)
        return event
    event = (event_factory or CloudEvent)(attributes, data)
    if time is None and type(event) is CloudEvent:
        event.get_attributes().pop("time", None)
    return event


def _key(key: str | bytes) -> str | bytes:
    """Return a key decoded as UTF-8, as in the SDK; return a key that is not UTF-8 unchanged."""
    try:
        return key.decode() if isinstance(key, bytes) else key
    except UnicodeDecodeError:
        return key
