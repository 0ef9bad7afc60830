"""The functions of the SDK's module ``cloudevents.v1.kafka``: of version 1, ``cloudevents.kafka``."""

# Annotations are the SDK's objects, so that the signatures are equal.

from collections.abc import Callable
from typing import Any, Type, overload  # noqa: UP035  # as the SDK

from cloudevents.v1 import http, kafka
from cloudevents.v1.abstract import AnyCloudEvent
from cloudevents.v1.kafka import exceptions
from cloudevents.v1.sdk import types
from msgspec import Raw

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.python_values import check_values
from cloudevents_kafka.attributes.types import canonical_text, parse_binary
from cloudevents_kafka.binding import to_record
from cloudevents_kafka.codecs.json import decode_json, is_json
from cloudevents_kafka.codecs.payload import implies_json, to_utf8
from cloudevents_kafka.errors import BrokenData, BrokenEvent, DataError, EncodeError, Problem
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.record import Record, to_bytes
from cloudevents_kafka.sdk import _reading
from cloudevents_kafka.sdk._errors import raises_sdk_errors
from cloudevents_kafka.sdk._writing import default_key, event_of, event_with, json_of

KafkaMessage = kafka.KafkaMessage
"""The SDK's message: ``headers`` as a dictionary, ``key`` and ``value``; without data the value is None.

Examples:
    >>> from cloudevents_kafka.sdk.v1 import KafkaMessage
    >>> KafkaMessage(headers={"content-type": b"application/cloudevents+json"}, key=None, value=b"{}").value
    b'{}'
"""

KeyMapper = kafka.KeyMapper  # type: ignore[type-arg]
"""A function from an event of the SDK to the key of its message, or None.

Examples:
    >>> from cloudevents.v1.http import CloudEvent
    >>> from cloudevents_kafka.sdk import v1
    >>> event = CloudEvent({"id": "1", "source": "/shop", "type": "order.placed", "subject": "order-17"})
    >>> v1.to_binary(event, key_mapper=lambda event: event["subject"]).key
    'order-17'
"""


class KeyMapperError(EncodeError, exceptions.KeyMapperError):
    """The function for the key raised an error, which is the cause.

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


_BYTES = bytes | bytearray | memoryview
_DATA = {"data", "data_base64"}
_Marshaller = types.MarshallerType | None  # type: ignore[type-arg]  # as the SDK
_Unmarshaller = types.UnmarshallerType | None  # type: ignore[type-arg]


@raises_sdk_errors
def to_binary(
    event: AnyCloudEvent, data_marshaller: _Marshaller = None, key_mapper: KeyMapper | None = None
) -> KafkaMessage:
    """Return an event of the SDK as a message in binary mode.

    ``data_marshaller`` returns the data as text or bytes; by default bytes are written as they are,
    a text as its content type asks for, and other values as JSON. The key is that of
    ``key_mapper``, or ``partitionkey``. Raises errors of this library that are also
    the SDK's ``DataMarshallerError``, ``InvalidRequiredFields`` or ``KeyMapperError``.

    Examples:
        >>> from cloudevents.v1.http import CloudEvent
        >>> from cloudevents_kafka.sdk.v1 import to_binary
        >>> event = CloudEvent({"source": "/shop", "type": "t", "partitionkey": "c-4"}, {"total": "9.50"})
        >>> message = to_binary(event)
        >>> message.key, message.headers["ce_partitionkey"], message.value
        ('c-4', b'c-4', b'{"total":"9.50"}')
    """
    attributes = event.get_attributes()
    if attributes.get("specversion") == _reading.OLD:
        return kafka.to_binary(event, data_marshaller, key_mapper)
    key = _key(event, key_mapper)
    data = event.get_data()
    if data_marshaller is not None:
        ours = event_with(attributes, _bytes_of(_marshal(data_marshaller, data)))
    elif isinstance(data, str) and implies_json(attributes.get("datacontenttype")):
        ours = event_with(attributes, Raw(json_of(data)))  # version 1 writes any text as a JSON string
    else:
        ours = event_of(event)
    record = to_record(ours)
    return KafkaMessage(dict(record.headers), key, record.value)  # type: ignore[arg-type]  # a tombstone


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
    """Return the SDK's event of a message in binary mode.

    ``data_unmarshaller`` reads the value, if there is one; by default it is JSON, or, for another
    content type, a text or bytes if it is not. ``event_type`` is the class of the event. No
    attribute is invented; the key is ``partitionkey`` if the event has none. Raises
    a `DecodeError` that is also the SDK's ``MissingRequiredFields`` and ``DataUnmarshallerError``.

    Examples:
        >>> from cloudevents_kafka.sdk.v1 import KafkaMessage, from_binary
        >>> headers = {"ce_specversion": b"1.0", "ce_id": b"1", "ce_source": b"/shop", "ce_type": b"t"}
        >>> event = from_binary(KafkaMessage(headers, key="customer-4", value=b"[1]"))
        >>> event.data, event["partitionkey"], event.get("time")
        ([1], 'customer-4', None)
    """
    record = _reading.record_of(message)
    event, _ = _reading.read(record, is_binary=True)
    if event is None:
        return kafka.from_binary(message, event_type, data_unmarshaller)
    if event.payload is None or data_unmarshaller is None:
        data = _default_data(event, record)
    else:
        data = _unmarshal(data_unmarshaller, event.payload, event, record)
    return _create(event_type, _reading.texts_of(event), data, message)


@raises_sdk_errors
def to_structured(
    event: AnyCloudEvent,
    data_marshaller: _Marshaller = None,
    envelope_marshaller: _Marshaller = None,
    key_mapper: KeyMapper | None = None,
) -> KafkaMessage:
    """Return an event of the SDK as a message in structured mode.

    Data that is bytes, or of which ``data_marshaller`` makes bytes, is the member ``data_base64``.
    ``envelope_marshaller`` gets the dictionary of all members and writes it, by default as JSON. The
    content type is that of the JSON event format if the value is JSON, else there is none. Errors
    and the key are those of `to_binary`.

    Examples:
        >>> from cloudevents.v1.http import CloudEvent
        >>> from cloudevents_kafka.sdk.v1 import to_structured
        >>> to_structured(CloudEvent({"id": "1", "source": "/shop", "type": "t"}, [1])).headers
        {'content-type': b'application/cloudevents+json'}
    """
    attributes = event.get_attributes()
    if attributes.get("specversion") == _reading.OLD:
        return kafka.to_structured(event, data_marshaller, envelope_marshaller, key_mapper)
    key = _key(event, key_mapper)
    envelope = _reading.members_of(event_with(attributes, None))
    data = event.get_data()
    if data_marshaller is not None:
        data = _marshal(data_marshaller, data)
    if not (isinstance(data, _BYTES | str | None) or implies_json(envelope.get("datacontenttype"))):
        data = json_of(data)  # J-16: it must be a text
    if isinstance(data, _BYTES):
        envelope["data_base64"] = canonical_text(bytes(data))
    elif data is not None:
        envelope["data"] = data
    value = _bytes_of(_marshal(envelope_marshaller, envelope) if envelope_marshaller else json_of(envelope))
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

    ``envelope_unmarshaller`` returns a dictionary of the members; by default the value is read in the event
    format that the content type names, and as a JSON event if it names none. ``data_unmarshaller``
    gets the member ``data``, or the bytes of ``data_base64``. Headers are not attributes, but the content
    type of a record that version 1 wrote is ``datacontenttype``. Errors, ``event_type`` and
    the key are those of `from_binary`.

    Examples:
        >>> from cloudevents_kafka.sdk.v1 import KafkaMessage, from_structured
        >>> value = b'{"specversion":"1.0","id":"1","source":"/shop","type":"t","data":[1]}'
        >>> event = from_structured(KafkaMessage({"content-type": b"application/json"}, None, value))
        >>> event["datacontenttype"], event.data
        ('application/json', [1])
    """
    record = _reading.record_of(message)
    if envelope_unmarshaller is None:
        event, _ = _reading.read(record, is_binary=False, folds_names=True)
        if event is None:
            return kafka.from_structured(message, event_type, data_unmarshaller)
        members, data = _reading.members_of(event), _reading.structured_data(event, record)
        has_data = event.payload is not None
    else:
        envelope = _open(envelope_unmarshaller, message, record)
        if envelope.get("specversion") == _reading.OLD:
            return kafka.from_structured(message, event_type, data_unmarshaller, envelope_unmarshaller)
        event, members, data = _checked(envelope, record)
        has_data = not _DATA.isdisjoint(envelope)
    if has_data and data_unmarshaller is not None:
        data = _unmarshal(data_unmarshaller, data, event, record)
    if not _reading.names_format(record) and (content_type := _reading.content_type_of(record)):
        members.setdefault("datacontenttype", content_type)
    return _create(event_type, members, data, message)


def _call(function: Callable[[Any], Any], value: Any, error_of: Callable[[str], Exception]) -> Any:
    """Return the result of a user's function; for any exception raise an error that has its name."""
    try:
        return function(value)
    except Exception as error:
        raise error_of(f"raised {type(error).__name__}") from error


def _key(event: Any, key_mapper: Callable[[Any], Any] | None) -> Any:
    if key_mapper is None:
        return default_key(event.get_attributes())
    return _call(key_mapper, event, lambda what: KeyMapperError(f"key_mapper {what}"))


def _marshal(marshaller: Callable[[Any], Any], value: Any) -> Any:
    return _call(marshaller, value, lambda what: EncodeError(f"a marshaller {what}"))


def _unmarshal(unmarshaller: Callable[[Any], Any], value: Any, event: Event, record: Record) -> Any:
    reason = "broken data: data_unmarshaller "
    return _call(unmarshaller, value, lambda what: BrokenData(reason + what, record, event))


def _bytes_of(written: Any) -> Any:
    """Return what a marshaller has written, a text as UTF-8."""
    return written.encode() if isinstance(written, str) else written


def _default_data(event: Event, record: Record) -> Any:
    """Return the data of a value as version 1 reads it, JSON, else what the content type says."""
    payload, content_type = event.payload, event.datacontenttype
    if not payload:
        return payload
    try:
        return decode_json(to_utf8(payload, content_type) if implies_json(content_type) else payload)
    except DataError as error:
        if content_type is not None and implies_json(content_type):
            raise BrokenData(f"broken data: {error}", record, event) from error
    is_text = media_type(str(content_type)).is_text
    return _reading.text_or_bytes(payload, content_type) if is_text else payload


def _open(unmarshaller: Callable[[Any], Any], message: KafkaMessage, record: Record) -> dict[str, Any]:
    """Return the members of a value, without nulls, that a user's function reads."""

    def error_of(what: str) -> BrokenEvent:
        rule = f"the value must be an event, but reading it by envelope_unmarshaller {what}"
        return BrokenEvent([Problem(None, rule, "J-01")], record)

    members = _call(lambda value: dict(unmarshaller(value)), message.value, error_of)
    return {name: member for name, member in members.items() if member is not None}


def _checked(members: dict[str, Any], record: Record) -> tuple[Event, dict[str, Any], Any]:
    """Return an event with the attributes of members, these attributes, and the data."""
    attributes = {name: member for name, member in members.items() if name not in _DATA}
    values, problems = check_values(attributes)
    data = members.get("data")
    if "data_base64" in members:
        try:
            data = parse_binary(members["data_base64"])
        except (TypeError, ValueError):
            problems.append(Problem("data_base64", "must be a string of base64 with padding", "J-14"))
    if problems:
        raise BrokenEvent(problems, record)
    return unchecked_event(values, None), attributes, data


def _create(
    event_type: type[AnyCloudEvent] | None, attributes: dict[str, Any], data: Any, message: KafkaMessage
) -> http.CloudEvent | AnyCloudEvent:
    """Return an event of the SDK with these attributes, the message's key, and no time that it invents."""
    if (key := message.key) and "partitionkey" not in attributes:
        attributes["partitionkey"] = key if _reading.key_text(key) else to_bytes(key)
    if event_type is not None and event_type is not http.CloudEvent:
        return event_type.create(attributes, data)
    event = http.CloudEvent.create(attributes, data)
    if "time" not in attributes:
        del event["time"]
    return event
