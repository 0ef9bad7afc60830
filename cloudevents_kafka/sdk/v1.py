"""The functions of the SDK's module ``cloudevents.v1.kafka``, which is ``cloudevents.kafka`` in version 1."""

# Annotations are the SDK's objects, so that the signatures are equal.

from collections.abc import Callable
from typing import Any, Final, Type, overload  # noqa: UP035  # as the SDK

from cloudevents_kafka.attributes.types import canonical_text
from cloudevents_kafka.codecs.json import is_json
from cloudevents_kafka.codecs.payload import implies_json
from cloudevents_kafka.errors import CloudEventsKafkaError, EncodeError
from cloudevents_kafka.record import to_bytes
from cloudevents_kafka.sdk import _reading, _v1_reading
from cloudevents_kafka.sdk._errors import as_sdk_error, raises_sdk_errors
from cloudevents_kafka.sdk._installed import (
    AnyCloudEvent,
    MarshallerType,
    UnmarshallerType,
    http,
    kafka,
    kafka_exceptions,
)
from cloudevents_kafka.sdk._writing import (
    accepted,
    default_key,
    event_with,
    json_of,
    text_headers,
    write_binary,
)

KafkaMessage = kafka.KafkaMessage
"""The SDK's message: a dictionary ``headers``, a ``key``, and a ``value`` (None if there is no data).

Examples:
    >>> from cloudevents_kafka.sdk.v1 import KafkaMessage
    >>> KafkaMessage(headers={"content-type": b"application/cloudevents+json"}, key=None, value=b"{}").value
    b'{}'
"""

KeyMapper = kafka.KeyMapper  # type: ignore[type-arg]
"""A function that receives an event of the SDK and returns the key of its message, or None.

Examples:
    >>> from cloudevents.v1.http import CloudEvent
    >>> from cloudevents_kafka.sdk import v1
    >>> event = CloudEvent({"id": "1", "source": "/shop", "type": "order.placed", "subject": "order-17"})
    >>> v1.to_binary(event, key_mapper=lambda event: event["subject"]).key
    'order-17'
"""


class KeyMapperError(EncodeError, kafka_exceptions.KeyMapperError):
    """The function that returns the key raised an exception, which is the cause of this error.

    Examples:
        >>> from cloudevents.v1.http import CloudEvent
        >>> from cloudevents_kafka.sdk import v1
        >>> event = CloudEvent({"source": "/shop", "type": "t"})
        >>> try:
        ...     v1.to_binary(event, key_mapper=lambda event: event["key"])
        ... except v1.KeyMapperError as error:
        ...     print(error)
        key_mapper raised KeyError
    """


_create: Final = tuple.__new__  # what KafkaMessage(…) calls, in half the time
_BYTES: Final = (bytes, bytearray, memoryview)
_TEXT_OR_BYTES: Final = (*_BYTES, str, type(None))
_Marshaller = MarshallerType | None  # type: ignore[type-arg]  # as the SDK
_Unmarshaller = UnmarshallerType | None  # type: ignore[type-arg]


def to_binary(
    event: AnyCloudEvent, data_marshaller: _Marshaller = None, key_mapper: KeyMapper | None = None
) -> KafkaMessage:
    """Return an event of the SDK as a message in binary mode.

    ``data_marshaller`` returns the data as text or bytes. By default, bytes are written unchanged. A text is
    written as a JSON string or as plain text, depending on the content type. Values that are neither text nor
    bytes are written as JSON. The key is the result of ``key_mapper``; without ``key_mapper``, the key is the
    ``partitionkey``. Raises errors of this library that are also the SDK's errors ``DataMarshallerError``,
    ``InvalidRequiredFields`` or ``KeyMapperError``.

    Examples:
        >>> from cloudevents.v1.http import CloudEvent
        >>> from cloudevents_kafka.sdk.v1 import to_binary
        >>> event = CloudEvent({"source": "/shop", "type": "t", "partitionkey": "c-4"}, {"total": "9.50"})
        >>> message = to_binary(event)
        >>> message.key, message.headers["ce_partitionkey"], message.value
        ('c-4', b'c-4', b'{"total":"9.50"}')
    """
    try:  # not by `raises_sdk_errors`: its additional call takes as long as a fast marshaller
        attributes = event.get_attributes()
        if data_marshaller is not None and (headers := text_headers(attributes)):
            key = attributes.get("partitionkey") if key_mapper is None else _map_key(key_mapper, event)
            value = _marshal(data_marshaller, event.get_data())
            if type(value) is str:
                value = value.encode()
            if type(value) is bytes:
                return _create(KafkaMessage, (headers, key, value))
            values, data = accepted(attributes), _bytes_of(value)
        else:
            values = accepted(attributes)
            if values is None and attributes.get("specversion") == _reading.OLD:
                return kafka.to_binary(event, data_marshaller, key_mapper)
            key = default_key(attributes) if key_mapper is None else _map_key(key_mapper, event)
            data = event.get_data()
            if data_marshaller is not None:
                data = _bytes_of(_marshal(data_marshaller, data))
        headers, value = write_binary(attributes, values, data, True)
        return KafkaMessage(headers, key, value)  # type: ignore[arg-type]  # a tombstone
    except CloudEventsKafkaError as error:
        raise as_sdk_error(error) from error.__cause__


@overload
def from_binary(
    message: KafkaMessage, event_type: None = None, data_unmarshaller: _Unmarshaller = None
) -> http.CloudEvent: ...


@overload
def from_binary(
    message: KafkaMessage, event_type: type[AnyCloudEvent], data_unmarshaller: _Unmarshaller = None
) -> AnyCloudEvent: ...


@raises_sdk_errors
def from_binary(
    message: KafkaMessage,
    event_type: Type[AnyCloudEvent] | None = None,  # noqa: UP006
    data_unmarshaller: _Unmarshaller = None,
) -> http.CloudEvent | AnyCloudEvent:
    """Return the SDK's event from a message in binary mode.

    ``data_unmarshaller`` reads the data from the message's value, if the message has a value. By default, the
    value is read as JSON. If the value is not JSON, and the content type is not a JSON type, the value is
    read as text or bytes. ``event_type`` is the class of the event. If the event has no ``partitionkey``, the
    message's key becomes the event's ``partitionkey``; no other attribute is added. Raises a `DecodeError`
    that is also the SDK's ``MissingRequiredFields`` and ``DataUnmarshallerError``.

    Examples:
        >>> from cloudevents_kafka.sdk.v1 import KafkaMessage, from_binary
        >>> headers = {"ce_specversion": b"1.0", "ce_id": b"1", "ce_source": b"/shop", "ce_type": b"t"}
        >>> event = from_binary(KafkaMessage(headers, key="customer-4", value=b"[1]"))
        >>> event.data, event["partitionkey"], event.get("time")
        ([1], 'customer-4', None)
    """
    headers = _reading.headers_of(message)
    attributes: dict[str, Any] | None = _reading.texts_in(headers)
    if attributes is None or not _v1_reading.is_binary_event(attributes):
        event = _reading.read_binary(_reading.record_of(message))
        if event is None:
            return kafka.from_binary(message, event_type, data_unmarshaller)
        attributes = _reading.texts_of(event)
    value = to_bytes(message.value)
    if value is None or data_unmarshaller is None:
        data = _v1_reading.default_data(value, attributes, message)
    else:
        data = _v1_reading.unmarshal(data_unmarshaller, value, attributes, message)
    return _v1_reading.create(event_type, attributes, data, message)


@raises_sdk_errors
def to_structured(
    event: AnyCloudEvent,
    data_marshaller: _Marshaller = None,
    envelope_marshaller: _Marshaller = None,
    key_mapper: KeyMapper | None = None,
) -> KafkaMessage:
    """Return an event of the SDK as a message in structured mode.

    Bytes, including bytes that ``data_marshaller`` returns, become the member ``data_base64``.
    ``envelope_marshaller`` receives the dictionary of all members and returns the value; by default, the
    value is JSON. If the value is JSON, the content type is the media type of the JSON event format;
    otherwise, the message has no content type. The errors and the key are the same as in `to_binary`.

    Examples:
        >>> from cloudevents.v1.http import CloudEvent
        >>> from cloudevents_kafka.sdk.v1 import to_structured
        >>> to_structured(CloudEvent({"id": "1", "source": "/shop", "type": "t"}, [1])).headers
        {'content-type': b'application/cloudevents+json'}
    """
    attributes = event.get_attributes()
    envelope = accepted(attributes)
    if envelope is None:
        if attributes.get("specversion") == _reading.OLD:
            return kafka.to_structured(event, data_marshaller, envelope_marshaller, key_mapper)
        envelope = _reading.members_of(event_with(attributes, None))
    key = default_key(attributes) if key_mapper is None else _map_key(key_mapper, event)
    data = event.get_data()
    if data_marshaller is not None:
        data = _marshal(data_marshaller, data)
    if not (isinstance(data, _TEXT_OR_BYTES) or implies_json(envelope.get("datacontenttype"))):
        data = json_of(data)  # J-16: the member must be a text
    if isinstance(data, _BYTES):
        envelope["data_base64"] = canonical_text(bytes(data))
    elif data is not None:
        envelope["data"] = data
    if envelope_marshaller is None:
        return KafkaMessage({"content-type": _reading.JSON_EVENT}, key, json_of(envelope))
    members = {name: canonical_text(one) if type(one) is bytes else one for name, one in envelope.items()}
    value = _bytes_of(_marshal(envelope_marshaller, members))
    headers = {"content-type": _reading.JSON_EVENT} if type(value) is bytes and is_json(value) else {}
    return KafkaMessage(headers, key, value)


@overload
def from_structured(
    message: KafkaMessage,
    event_type: None = None,
    data_unmarshaller: _Unmarshaller = None,
    envelope_unmarshaller: _Unmarshaller = None,
) -> http.CloudEvent: ...


@overload
def from_structured(
    message: KafkaMessage,
    event_type: type[AnyCloudEvent],
    data_unmarshaller: _Unmarshaller = None,
    envelope_unmarshaller: _Unmarshaller = None,
) -> AnyCloudEvent: ...


@raises_sdk_errors
def from_structured(
    message: KafkaMessage,
    event_type: Type[AnyCloudEvent] | None = None,  # noqa: UP006
    data_unmarshaller: _Unmarshaller = None,
    envelope_unmarshaller: _Unmarshaller = None,
) -> http.CloudEvent | AnyCloudEvent:
    """Return the SDK's event in the value of a message.

    ``envelope_unmarshaller`` receives the value and returns a dictionary of the members. By default, the
    value is read in the event format that the content type names. If the content type does not name an event
    format, the value is read as a JSON event. ``data_unmarshaller`` receives the member ``data``, or the
    bytes in ``data_base64``. Headers are not read as attributes, with one exception: a content type that does
    not name an event format is read as ``datacontenttype``. Version 1 of the SDK writes records with such a
    content type. The errors, ``event_type`` and the key are the same as in `from_binary`.

    Examples:
        >>> from cloudevents_kafka.sdk.v1 import KafkaMessage, from_structured
        >>> value = b'{"specversion":"1.0","id":"1","source":"/shop","type":"t","data":[1]}'
        >>> event = from_structured(KafkaMessage({"content-type": b"application/json"}, None, value))
        >>> event["datacontenttype"], event.data
        ('application/json', [1])
    """
    content_type = _reading.content_type_in(_reading.headers_of(message))
    if envelope_unmarshaller is None:
        found = _v1_reading.read_value(message, content_type)
    else:
        found = _v1_reading.open_envelope(envelope_unmarshaller, message)
    if found is None:
        return kafka.from_structured(message, event_type, data_unmarshaller, envelope_unmarshaller)
    members, data = found
    if data is not None and data_unmarshaller is not None:
        data = _v1_reading.unmarshal(data_unmarshaller, data, members, message)
    if not (content_type is None or _reading.names_format(content_type)):
        members.setdefault("datacontenttype", content_type)
    return _v1_reading.create(event_type, members, data, message)


def _map_key(key_mapper: Callable[[Any], Any], event: Any) -> Any:
    return _v1_reading.call(key_mapper, event, lambda what: KeyMapperError(f"key_mapper {what}"))


def _marshal(marshaller: Callable[[Any], Any], value: Any) -> Any:
    try:  # not by `call`: its two additional calls take as long as a fast marshaller
        return marshaller(value)
    except Exception as error:
        raise EncodeError(f"a marshaller raised {type(error).__name__}") from error


def _bytes_of(written: Any) -> Any:
    """Return the result of a marshaller as bytes; a text is encoded as UTF-8."""
    return written.encode() if isinstance(written, str) else written
