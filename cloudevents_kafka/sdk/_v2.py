"""The functions of the SDK's version 2 module ``cloudevents.core.bindings.kafka``."""

# Annotations are the SDK's objects, so that the signatures are equal.

from cloudevents.core.base import BaseCloudEvent, EventFactory
from cloudevents.core.bindings import kafka
from cloudevents.core.formats.base import Format
from cloudevents.core.formats.json import JSONFormat

from cloudevents_kafka.binding import to_record
from cloudevents_kafka.sdk import _reading
from cloudevents_kafka.sdk._errors import raises_sdk_errors
from cloudevents_kafka.sdk._v2_reading import read
from cloudevents_kafka.sdk._writing import accepted, default_key, event_of, event_with, write_binary

KafkaMessage = kafka.KafkaMessage
"""The SDK's message: a dictionary ``headers``, a ``key``, and a ``value`` (None if there is no data).

Examples:
    >>> from cloudevents_kafka.sdk import KafkaMessage
    >>> KafkaMessage(headers={"content-type": b"application/cloudevents+json"}, key=None, value=b"{}").value
    b'{}'
"""

KeyMapper = kafka.KeyMapper
"""A function that receives an event of the SDK and returns the key of its message, or None.

Examples:
    >>> from cloudevents.core.v1.event import CloudEvent
    >>> from cloudevents_kafka import sdk
    >>> event = CloudEvent({"id": "1", "source": "/shop", "type": "order.placed", "subject": "order-17"})
    >>> sdk.to_binary_event(event, key_mapper=lambda event: event.get_subject()).key
    'order-17'
"""


@raises_sdk_errors
def to_binary(
    event: BaseCloudEvent, event_format: Format, key_mapper: KeyMapper | None = None
) -> KafkaMessage:
    """Return an event of the SDK as a message in binary mode.

    If ``event_format`` is the SDK's ``JSONFormat``, this library writes the data; any other format writes the
    data itself. The key is the result of ``key_mapper``; without ``key_mapper``, the key is the
    ``partitionkey``. Raises an `InvalidEvent` that is also a ``CloudEventValidationError`` if the event
    breaks a rule.

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
    """Return the SDK's event from a message in binary mode.

    If ``event_format`` is the SDK's ``JSONFormat``, this library reads the data; any other format reads the
    data itself. ``event_factory`` creates the event; the default is the SDK's ``CloudEvent``. If the event
    has no ``partitionkey``, the message's key becomes the event's ``partitionkey``; no other attribute is
    added. Raises a `DecodeError` that is also a ``CloudEventValidationError`` and a `ValueError`.

    Examples:
        >>> from cloudevents.core.formats.json import JSONFormat
        >>> from cloudevents_kafka.sdk import KafkaMessage, from_binary
        >>> headers = {"ce_specversion": b"1.0", "ce_id": b"1", "ce_source": b"/shop", "ce_type": b"t"}
        >>> event = from_binary(KafkaMessage(headers, key=b"customer-4", value=b"[1]"), JSONFormat())
        >>> event.get_data(), event.get_extension("partitionkey"), event.get_time()
        ([1], 'customer-4', None)
    """
    return read(kafka.from_binary, True, message, event_format, event_factory)


@raises_sdk_errors
def to_structured(
    event: BaseCloudEvent, event_format: Format, key_mapper: KeyMapper | None = None
) -> KafkaMessage:
    """Return an event of the SDK as a message in structured mode; see `to_binary` for the arguments.

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
    """Return the SDK's event in the value of a message; see `from_binary` for the arguments.

    If ``event_format`` is the SDK's ``JSONFormat``, this library reads the event, in the format that the
    content type names. A message without a content type can be read if its value is an event in JSON.

    Examples:
        >>> from cloudevents.core.formats.json import JSONFormat
        >>> from cloudevents_kafka.sdk import KafkaMessage, from_structured
        >>> value = b'{"specversion":"1.0","id":"1","source":"/shop","type":"t","data":[1]}'
        >>> headers = {"content-type": b"application/cloudevents+json"}
        >>> from_structured(KafkaMessage(headers, key=None, value=value), JSONFormat()).get_data()
        [1]
    """
    return read(kafka.from_structured, False, message, event_format, event_factory)


@raises_sdk_errors
def from_kafka(
    message: KafkaMessage, event_format: Format, event_factory: EventFactory | None = None
) -> BaseCloudEvent:
    """Return the SDK's event from a message in either mode; see `from_binary` for the arguments.

    The message is in structured mode if its content type names an event format, or if no header begins with
    ``ce_``.

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
    return read(kafka.from_kafka, None, message, event_format, event_factory)


def to_binary_event(
    event: BaseCloudEvent, event_format: Format | None = None, key_mapper: KeyMapper | None = None
) -> KafkaMessage:
    """Return the result of `to_binary`; the default format is the SDK's ``JSONFormat``.

    Examples:
        >>> from cloudevents.core.v1.event import CloudEvent
        >>> from cloudevents_kafka.sdk import to_binary_event
        >>> to_binary_event(CloudEvent({"id": "1", "source": "/shop", "type": "t"}, "hello")).value
        b'"hello"'
    """
    return to_binary(event, event_format or JSONFormat(), key_mapper)


def from_binary_event(message: KafkaMessage, event_format: Format | None = None) -> BaseCloudEvent:
    """Return the result of `from_binary`; the default format is the SDK's ``JSONFormat``.

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
    """Return the result of `to_structured`; the default format is the SDK's ``JSONFormat``.

    Examples:
        >>> from cloudevents.core.v1.event import CloudEvent
        >>> from cloudevents_kafka.sdk import to_structured_event
        >>> to_structured_event(CloudEvent({"id": "1", "source": "/shop", "type": "t"})).headers
        {'content-type': b'application/cloudevents+json'}
    """
    return to_structured(event, event_format or JSONFormat(), key_mapper)


def from_structured_event(message: KafkaMessage, event_format: Format | None = None) -> BaseCloudEvent:
    """Return the result of `from_structured`; the default format is the SDK's ``JSONFormat``.

    Examples:
        >>> from cloudevents.core.v1.event import CloudEvent
        >>> from cloudevents_kafka.sdk import from_structured_event, to_structured_event
        >>> event = CloudEvent({"id": "1", "source": "/shop", "type": "t"}, {"total": "9.50"})
        >>> from_structured_event(to_structured_event(event)).get_data()
        {'total': '9.50'}
    """
    return from_structured(message, event_format or JSONFormat())


def from_kafka_event(message: KafkaMessage, event_format: Format | None = None) -> BaseCloudEvent:
    """Return the result of `from_kafka`; the default format is the SDK's ``JSONFormat``.

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
    """Return a message; ``key_mapper`` is called last, so its changes to the event are not sent."""
    key = default_key(event.get_attributes()) if key_mapper is None else key_mapper(event)
    return KafkaMessage(headers=headers, key=key, value=value)  # type: ignore[arg-type]  # a tombstone
