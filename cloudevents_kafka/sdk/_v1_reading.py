"""Read a message as an event of the SDK's version 1."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.python_values import check_values
from cloudevents_kafka.codecs.json import decode_json
from cloudevents_kafka.codecs.payload import implies_json
from cloudevents_kafka.errors import BrokenData, BrokenEvent, DataError, Problem
from cloudevents_kafka.primitives.bounded import remember_text
from cloudevents_kafka.sdk import _reading
from cloudevents_kafka.sdk._installed import AnyCloudEvent, http, kafka

KafkaMessage = kafka.KafkaMessage
_IS_PLAIN: Final = vars(http.CloudEvent({"source": "/", "type": "t"})).keys() == {"_attributes", "data"}
_new: Final = object.__new__
_folded: Final[set[str]] = set()
"""A cache of the names of JSON members that are in lower case already."""
_DATA = {"data", "data_base64"}


def is_binary_event(attributes: dict[str, Any]) -> bool:
    """Return whether the texts of headers describe an event in binary mode."""
    return _reading.is_complete(attributes) and not _reading.names_format(attributes.get("datacontenttype"))


def read_value(message: KafkaMessage, content_type: str | None) -> tuple[dict[str, Any], Any] | None:
    """Return the attributes and the data in a message's value; None if the event's specversion is 0.3."""
    members = _reading.members_in(message.value) if _reading.is_for_json(content_type) else None
    if members is not None:
        members = members if _folded.issuperset(members) else _fold(members)
        if _reading.is_complete(members) and (found := _reading.split(members)):
            return found
    record = _reading.record_of(message)
    event = _reading.read_structured(record, content_type)
    return None if event is None else (_reading.members_of(event), _reading.structured_data(event, record))


def _fold(members: dict[str, Any]) -> dict[str, Any]:
    """Return members with names in lower case; cache each name that is already in lower case."""
    for name in members:
        if name == name.lower():
            remember_text(_folded, name)
    return {name.lower(): member for name, member in members.items()}


def call(function: Callable[[Any], Any], value: Any, error_of: Callable[[str], Exception]) -> Any:
    """Return the result of a user's function; convert its exception to an error that names the exception."""
    try:
        return function(value)
    except Exception as error:
        raise error_of(f"raised {type(error).__name__}") from error


def unmarshal(
    unmarshaller: Callable[[Any], Any], value: Any, attributes: dict[str, Any], message: KafkaMessage
) -> Any:
    """Return the data that a user's function reads. Raises `BrokenData` if the function raises an error."""
    reason = "data_unmarshaller "
    return call(unmarshaller, value, lambda what: _broken_data(reason + what, attributes, message))


def _broken_data(reason: str, attributes: dict[str, Any], message: KafkaMessage) -> BrokenData:
    record = _reading.record_of(message)
    return BrokenData(f"broken data: {reason}", record, _reading.event_for_errors(record, attributes))


def default_data(payload: bytes | None, attributes: dict[str, Any], message: KafkaMessage) -> Any:
    """Return the data in a message's value, as version 1 of the SDK reads data.

    If the value is JSON, the data is the JSON value. If not, the data is a text or bytes, but a JSON content
    type raises `BrokenData`.
    """
    if not payload:
        return payload
    content_type = attributes.get("datacontenttype")
    try:
        return _reading.json_value(payload, content_type if implies_json(content_type) else None)
    except DataError as error:
        text = _reading.in_utf8(payload)
        if text is not None:
            with suppress(DataError):
                return decode_json(text)
        if content_type is not None and implies_json(content_type):
            raise _broken_data(str(error), attributes, message) from error
    is_text = media_type(str(content_type)).is_text
    return _reading.text_or_bytes(payload, content_type) if is_text else payload


def open_envelope(
    unmarshaller: Callable[[Any], Any], message: KafkaMessage
) -> tuple[dict[str, Any], Any] | None:
    """Return the attributes and data that a user's function reads; None if the specversion is 0.3."""

    def error_of(what: str) -> BrokenEvent:
        rule = f"the value must be an event, but envelope_unmarshaller {what}"
        return BrokenEvent([Problem(None, rule, "J-01")], _reading.record_of(message))

    members = call(lambda value: dict(unmarshaller(value)), message.value, error_of)
    members = {name: member for name, member in members.items() if member is not None}
    if members.get("specversion") == _reading.OLD:
        return None
    found = _reading.split(members.copy())
    if found is not None and _reading.is_complete(found[0]):
        return found
    _, problems = check_values({name: members[name] for name in members.keys() - _DATA})
    if found is None:
        problems.append(Problem("data_base64", "must be a string of base64 with padding", "J-14"))
    raise BrokenEvent(problems, _reading.record_of(message))


def create(
    event_type: type[AnyCloudEvent] | None, attributes: dict[str, Any], data: Any, message: KafkaMessage
) -> http.CloudEvent | AnyCloudEvent:
    """Return an SDK event with these attributes and the message's key, without adding a time."""
    if message.key is not None and "partitionkey" not in attributes:
        attributes["partitionkey"] = message.key
    if event_type is not None and event_type is not http.CloudEvent:
        return event_type.create(attributes, data)
    if _IS_PLAIN:
        event = _new(http.CloudEvent)
        vars(event).update(_attributes=attributes, data=data)
        return event
    event = http.CloudEvent.create(attributes, data)
    if "time" not in attributes:
        del event["time"]
    return event
