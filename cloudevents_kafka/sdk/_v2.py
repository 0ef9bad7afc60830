"""The functions of the SDK's module ``cloudevents.core.bindings.kafka``: of version 2."""

# Annotations are the SDK's objects, so that the signatures are equal.

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from cloudevents.core.base import BaseCloudEvent, EventFactory
from cloudevents.core.bindings import kafka
from cloudevents.core.formats.base import Format
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v03.event import CloudEvent as OldCloudEvent
from cloudevents.core.v1.event import CloudEvent
from dateutil.parser import isoparse  # type: ignore[import-untyped]  # of the SDK

from cloudevents_kafka.attributes.python_values import check_values
from cloudevents_kafka.attributes.timestamps import is_timestamp, to_datetime
from cloudevents_kafka.binding import to_record
from cloudevents_kafka.codecs.payload import implies_json
from cloudevents_kafka.errors import BrokenEvent
from cloudevents_kafka.primitives.bounded import remember_text
from cloudevents_kafka.record import Record, to_bytes
from cloudevents_kafka.sdk import _reading
from cloudevents_kafka.sdk._errors import raises_sdk_errors
from cloudevents_kafka.sdk._writing import accepted, default_key, event_of, event_with, write_binary

KafkaMessage = kafka.KafkaMessage
"""The SDK's message: ``headers`` as a dictionary, ``key`` and ``value``; without data the value is None.

Examples:
    >>> from cloudevents_kafka.sdk import KafkaMessage
    >>> KafkaMessage(headers={"content-type": b"application/cloudevents+json"}, key=None, value=b"{}").value
    b'{}'
"""

KeyMapper = kafka.KeyMapper
"""A function from an event of the SDK to the key of its message, or None.

Examples:
    >>> from cloudevents.core.v1.event import CloudEvent
    >>> from cloudevents_kafka import sdk
    >>> event = CloudEvent({"id": "1", "source": "/shop", "type": "order.placed", "subject": "order-17"})
    >>> sdk.to_binary_event(event, key_mapper=lambda event: event.get_subject()).key
    'order-17'
"""


_Parts = tuple[dict[str, Any], Any]
_TEXTS: Final = ("id", "source", "type", "datacontenttype", "dataschema", "subject")
_is_name: Final = re.compile("[a-z0-9]+$").match  # as the SDK: it accepts a line break at the end
_names: Final[set[str]] = set()
"""Names of attributes that the SDK's class accepts."""
_IS_PLAIN = vars(CloudEvent({"source": "/", "type": "t"})).keys() == {"_attributes", "_data"}


@raises_sdk_errors
def to_binary(
    event: BaseCloudEvent, event_format: Format, key_mapper: KeyMapper | None = None
) -> KafkaMessage:
    """Return an event of the SDK as a message in binary mode.

    The SDK's ``JSONFormat`` stands for the writers of this library; any other ``event_format``
    writes the data. The key is that of ``key_mapper``, or ``partitionkey``. Raises an `InvalidEvent`
    that is also a ``CloudEventValidationError`` if the event breaks a rule.

    Examples:
        >>> from cloudevents.core.formats.json import JSONFormat
        >>> from cloudevents.core.v1.event import CloudEvent
        >>> from cloudevents_kafka.sdk import to_binary
        >>> event = CloudEvent({"id": "1", "source": "/shop", "type": "order.placed"}, {"total": "9.50"})
        >>> to_binary(event, JSONFormat(), lambda event: "customer-4").value
        b'{"total":"9.50"}'
    """
    attributes = event.get_attributes()
    if attributes.get("specversion") == _reading.OLD:
        return kafka.to_binary(event, event_format, key_mapper)
    if type(event_format) is JSONFormat:
        return _message(
            event, key_mapper, *write_binary(attributes, accepted(attributes), event.get_data(), False)
        )
    headers, data = write_binary(attributes, accepted(attributes), None, False)[0], event.get_data()
    value = event_format.write_data(data, attributes.get("datacontenttype"))
    return _message(event, key_mapper, headers, None if data is None and not value else value)


@raises_sdk_errors
def from_binary(
    message: KafkaMessage, event_format: Format, event_factory: EventFactory | None = None
) -> BaseCloudEvent:
    """Return the SDK's event of a message in binary mode.

    The SDK's ``JSONFormat`` stands for the readers of this library; any other ``event_format`` reads
    the data. ``event_factory`` makes the event, by default the SDK's ``CloudEvent``. No attribute
    is invented; the key is ``partitionkey`` if the event has none. Raises a `DecodeError` that is
    also a ``CloudEventValidationError`` and a `ValueError`.

    Examples:
        >>> from cloudevents.core.formats.json import JSONFormat
        >>> from cloudevents_kafka.sdk import KafkaMessage, from_binary
        >>> headers = {"ce_specversion": b"1.0", "ce_id": b"1", "ce_source": b"/shop", "ce_type": b"t"}
        >>> event = from_binary(KafkaMessage(headers, key=b"customer-4", value=b"[1]"), JSONFormat())
        >>> event.get_data(), event.get_extension("partitionkey"), event.get_time()
        ([1], 'customer-4', None)
    """
    return _read(kafka.from_binary, True, message, event_format, event_factory)


@raises_sdk_errors
def to_structured(
    event: BaseCloudEvent, event_format: Format, key_mapper: KeyMapper | None = None
) -> KafkaMessage:
    """Return an event of the SDK as a message in structured mode; the arguments are those of `to_binary`.

    Examples:
        >>> from cloudevents.core.formats.json import JSONFormat
        >>> from cloudevents.core.v1.event import CloudEvent
        >>> from cloudevents_kafka.sdk import to_structured
        >>> event = CloudEvent({"id": "1", "source": "/shop", "type": "order.placed", "partitionkey": "c-4"})
        >>> to_structured(event, JSONFormat()).key
        'c-4'
    """
    attributes = event.get_attributes()
    if attributes.get("specversion") == _reading.OLD:
        return kafka.to_structured(event, event_format, key_mapper)
    if type(event_format) is JSONFormat:
        record = to_record(event_of(event), mode="structured")
        return _message(event, key_mapper, dict(record.headers), record.value)  # type: ignore[arg-type]
    event_with(attributes, None)
    content_type = event_format.get_content_type().encode()
    return _message(event, key_mapper, {"content-type": content_type}, event_format.write(event))


@raises_sdk_errors
def from_structured(
    message: KafkaMessage, event_format: Format, event_factory: EventFactory | None = None
) -> BaseCloudEvent:
    """Return the SDK's event in the value of a message; the arguments are those of `from_binary`.

    The SDK's ``JSONFormat`` stands for each event format of this library, by the content type. A
    message without one is read if its value is a JSON event.

    Examples:
        >>> from cloudevents.core.formats.json import JSONFormat
        >>> from cloudevents_kafka.sdk import KafkaMessage, from_structured
        >>> value = b'{"specversion":"1.0","id":"1","source":"/shop","type":"t","data":[1]}'
        >>> headers = {"content-type": b"application/cloudevents+json"}
        >>> from_structured(KafkaMessage(headers, key=None, value=value), JSONFormat()).get_data()
        [1]
    """
    return _read(kafka.from_structured, False, message, event_format, event_factory)


@raises_sdk_errors
def from_kafka(
    message: KafkaMessage, event_format: Format, event_factory: EventFactory | None = None
) -> BaseCloudEvent:
    """Return the SDK's event of a message in either mode; the arguments are those of `from_binary`.

    It is in structured mode if its content type names an event format, or if no header begins
    with ``ce_``.

    Examples:
        >>> from cloudevents.core.formats.json import JSONFormat
        >>> from cloudevents_kafka.sdk import KafkaMessage, from_kafka
        >>> message = KafkaMessage({"ce_specversion": b"1.0", "ce_source": b"/shop"}, key=None, value=b"")
        >>> try:
        ...     from_kafka(message, JSONFormat())
        ... except ValueError as error:
        ...     print(type(error).__name__, [*error.errors])
        NotAnEvent ['id', 'type']
    """
    return _read(kafka.from_kafka, None, message, event_format, event_factory)


def to_binary_event(
    event: BaseCloudEvent, event_format: Format | None = None, key_mapper: KeyMapper | None = None
) -> KafkaMessage:
    """Return what `to_binary` returns, by default with the SDK's ``JSONFormat``.

    Examples:
        >>> from cloudevents.core.v1.event import CloudEvent
        >>> from cloudevents_kafka.sdk import to_binary_event
        >>> to_binary_event(CloudEvent({"id": "1", "source": "/shop", "type": "t"}, "hello")).value
        b'"hello"'
    """
    return to_binary(event, event_format or JSONFormat(), key_mapper)


def from_binary_event(message: KafkaMessage, event_format: Format | None = None) -> BaseCloudEvent:
    """Return what `from_binary` returns, by default with the SDK's ``JSONFormat``.

    Examples:
        >>> from cloudevents.core.v1.event import CloudEvent
        >>> from cloudevents_kafka.sdk import from_binary_event, to_binary_event
        >>> event = CloudEvent({"id": "1", "source": "/shop", "type": "t"}, "hello")
        >>> from_binary_event(to_binary_event(event)).get_data()
        'hello'
    """
    return from_binary(message, event_format or JSONFormat())


def to_structured_event(
    event: BaseCloudEvent, event_format: Format | None = None, key_mapper: KeyMapper | None = None
) -> KafkaMessage:
    """Return what `to_structured` returns, by default with the SDK's ``JSONFormat``.

    Examples:
        >>> from cloudevents.core.v1.event import CloudEvent
        >>> from cloudevents_kafka.sdk import to_structured_event
        >>> to_structured_event(CloudEvent({"id": "1", "source": "/shop", "type": "t"})).headers
        {'content-type': b'application/cloudevents+json'}
    """
    return to_structured(event, event_format or JSONFormat(), key_mapper)


def from_structured_event(message: KafkaMessage, event_format: Format | None = None) -> BaseCloudEvent:
    """Return what `from_structured` returns, by default with the SDK's ``JSONFormat``.

    Examples:
        >>> from cloudevents.core.v1.event import CloudEvent
        >>> from cloudevents_kafka.sdk import from_structured_event, to_structured_event
        >>> event = CloudEvent({"id": "1", "source": "/shop", "type": "t"}, {"total": "9.50"})
        >>> from_structured_event(to_structured_event(event)).get_data()
        {'total': '9.50'}
    """
    return from_structured(message, event_format or JSONFormat())


def from_kafka_event(message: KafkaMessage, event_format: Format | None = None) -> BaseCloudEvent:
    """Return what `from_kafka` returns, by default with the SDK's ``JSONFormat``.

    Examples:
        >>> from cloudevents.core.v1.event import CloudEvent
        >>> from cloudevents_kafka.sdk import from_kafka_event, to_binary_event
        >>> event = CloudEvent({"id": "1", "source": "/shop", "type": "t"}, {"total": "9.50"})
        >>> from_kafka_event(to_binary_event(event)).get_data()
        {'total': '9.50'}
    """
    return from_kafka(message, event_format or JSONFormat())


def _message(
    event: BaseCloudEvent, key_mapper: KeyMapper | None, headers: dict[str, bytes], value: bytes | None
) -> KafkaMessage:
    """Return a message; the mapper is called last, so a change that it makes of the event is not written."""
    key = default_key(event.get_attributes()) if key_mapper is None else key_mapper(event)
    return KafkaMessage(headers=headers, key=key, value=value)  # type: ignore[arg-type]  # a tombstone


def _read(
    of_sdk: Callable[..., BaseCloudEvent],
    is_binary: bool | None,  # noqa: FBT001
    message: KafkaMessage,
    event_format: Format,
    event_factory: EventFactory | None,
) -> BaseCloudEvent:
    """Return the event that a function of the SDK returns."""
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
    """Return the attributes in the headers of a message and None; None for an event of 0.3."""
    texts = _reading.texts_in(_reading.headers_of(message))
    if texts is not None and _accept(texts) and not _reading.names_format(content_type):
        return texts, None
    event = _reading.read_binary(_reading.record_of(message))
    return None if event is None else (_reading.texts_of(event), None)


def _read_structured(message: KafkaMessage, content_type: str | None) -> _Parts | None:
    """Return the attributes and the data in the value of a message; None for an event of 0.3."""
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
    """Return the event that a format of the user reads, whose attributes are checked as it makes it."""
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
    """Return whether the SDK's class accepts attributes; the text of ``time`` becomes a datetime."""
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
    """Return whether all attributes that must be texts are texts, and not empty."""
    for name in _TEXTS:
        if name in attributes:
            value = attributes[name]
            if not (value and isinstance(value, str)):
                return False
    return True


def _to_time(value: Any) -> datetime:
    """Return a time with an offset, as the SDK reads it. Raises `TypeError` or `ValueError` for others."""
    if isinstance(value, str):
        value = to_datetime(value) if is_timestamp(value) else isoparse(value)
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError("a time must have an offset")
    return value


def _sdk_event(
    attributes: dict[str, Any], data: Any, message: KafkaMessage, event_factory: EventFactory | None
) -> BaseCloudEvent:
    """Return an event of the SDK with these attributes and the message's key as ``partitionkey``.

    The class of the SDK would check them again, and invent a time.
    """
    time, key = attributes.get("time"), message.key
    if isinstance(time, str):
        attributes["time"] = to_datetime(time)
    if key is not None:
        given = attributes.get("partitionkey")
        if given is None or given == str(key):  # the SDK writes a key of bytes as its Python text, too
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
    """Return a key as a text, as the SDK does, or unchanged if it is not UTF-8."""
    try:
        return key.decode() if isinstance(key, bytes) else key
    except UnicodeDecodeError:
        return key
