"""The functions of the SDK's module ``cloudevents.v1.kafka``: of version 1, ``cloudevents.kafka``."""

# Annotations are the SDK's objects, so that the signatures are equal.

from collections.abc import Callable, Mapping
from typing import Any, Final, Type, overload  # noqa: UP035  # as the SDK

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.python_values import check_values
from cloudevents_kafka.attributes.types import canonical_text
from cloudevents_kafka.codecs.json import is_json
from cloudevents_kafka.codecs.payload import implies_json
from cloudevents_kafka.errors import BrokenData, BrokenEvent, DataError, EncodeError, Problem
from cloudevents_kafka.primitives.bounded import remember_text
from cloudevents_kafka.record import to_bytes
from cloudevents_kafka.sdk import _reading
from cloudevents_kafka.sdk._errors import raises_sdk_errors
from cloudevents_kafka.sdk._installed import (
    AnyCloudEvent,
    MarshallerType,
    UnmarshallerType,
    http,
    kafka,
    kafka_exceptions,
)
from cloudevents_kafka.sdk._writing import accepted, default_key, event_with, json_of, write_binary

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


class KeyMapperError(EncodeError, kafka_exceptions.KeyMapperError):
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


_IS_PLAIN: Final = vars(http.CloudEvent({"source": "/", "type": "t"})).keys() == {"_attributes", "data"}
_new: Final = object.__new__
_folded: Final[set[str]] = set()
"""Names of members that have no capital letter."""
_BYTES: Final = (bytes, bytearray, memoryview)
_TEXT_OR_BYTES: Final = (*_BYTES, str, type(None))
_DATA = {"data", "data_base64"}
_Marshaller = MarshallerType | None  # type: ignore[type-arg]  # as the SDK
_Unmarshaller = UnmarshallerType | None  # type: ignore[type-arg]


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
    values = accepted(attributes)
    if values is None and attributes.get("specversion") == _reading.OLD:
        return kafka.to_binary(event, data_marshaller, key_mapper)
    key = _key(event, attributes, key_mapper)
    data = event.get_data()
    if data_marshaller is not None:
        data = _bytes_of(_marshal(data_marshaller, data))
    headers, value = write_binary(attributes, values, data, True)
    return KafkaMessage(headers, key, value)  # type: ignore[arg-type]  # a tombstone


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
    headers = _reading.headers_of(message)
    attributes: dict[str, Any] | None = _reading.texts_in(headers)
    if attributes is None or not _is_binary_event(attributes):
        event = _reading.read_binary(_reading.record_of(message))
        if event is None:
            return kafka.from_binary(message, event_type, data_unmarshaller)
        attributes = _reading.texts_of(event)
    value = to_bytes(message.value)
    if value is None or data_unmarshaller is None:
        data = _default_data(value, attributes, message)
    else:
        data = _unmarshal(data_unmarshaller, value, attributes, message)
    return _create(event_type, attributes, data, message)


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
    envelope = accepted(attributes)
    if envelope is None:
        if attributes.get("specversion") == _reading.OLD:
            return kafka.to_structured(event, data_marshaller, envelope_marshaller, key_mapper)
        envelope = _reading.members_of(event_with(attributes, None))
    key = _key(event, attributes, key_mapper)
    data = event.get_data()
    if data_marshaller is not None:
        data = _marshal(data_marshaller, data)
    if not (isinstance(data, _TEXT_OR_BYTES) or implies_json(envelope.get("datacontenttype"))):
        data = json_of(data)  # J-16: it must be a text
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
    content_type = _reading.content_type_in(_reading.headers_of(message))
    if envelope_unmarshaller is None:
        found = _read_value(message, content_type)
    else:
        found = _open(envelope_unmarshaller, message)
    if found is None:
        return kafka.from_structured(message, event_type, data_unmarshaller, envelope_unmarshaller)
    members, data = found
    if data is not None and data_unmarshaller is not None:
        data = _unmarshal(data_unmarshaller, data, members, message)
    if content_type and not _reading.names_format(content_type):
        members.setdefault("datacontenttype", content_type)
    return _create(event_type, members, data, message)


def _is_binary_event(attributes: dict[str, Any]) -> bool:
    """Return whether the texts of headers are those of an event, in binary mode."""
    return _reading.is_complete(attributes) and not _reading.names_format(attributes.get("datacontenttype"))


def _read_value(message: KafkaMessage, content_type: str | None) -> tuple[dict[str, Any], Any] | None:
    """Return the attributes and the data in the value of a message; None for an event of 0.3."""
    members = _reading.members_in(message.value) if _reading.is_for_json(content_type) else None
    if members is not None:
        members = members if _folded.issuperset(members) else _fold(members)
        if _reading.is_complete(members) and (found := _reading.split(members)):
            return found
    record = _reading.record_of(message)
    event = _reading.read_structured(record, content_type)
    return None if event is None else (_reading.members_of(event), _reading.structured_data(event, record))


def _fold(members: dict[str, Any]) -> dict[str, Any]:
    """Return members by names in lower case, and cache the names that are so."""
    for name in members:
        if name == name.lower():
            remember_text(_folded, name)
    return {name.lower(): member for name, member in members.items()}


def _call(function: Callable[[Any], Any], value: Any, error_of: Callable[[str], Exception]) -> Any:
    """Return the result of a user's function; for any exception raise an error that has its name."""
    try:
        return function(value)
    except Exception as error:
        raise error_of(f"raised {type(error).__name__}") from error


def _key(event: Any, attributes: Mapping[str, Any], key_mapper: Callable[[Any], Any] | None) -> Any:
    if key_mapper is None:
        return default_key(attributes)
    return _call(key_mapper, event, lambda what: KeyMapperError(f"key_mapper {what}"))


def _marshal(marshaller: Callable[[Any], Any], value: Any) -> Any:
    try:  # as `_call`, whose two more calls take as long as a fast marshaller
        return marshaller(value)
    except Exception as error:
        raise EncodeError(f"a marshaller raised {type(error).__name__}") from error


def _bytes_of(written: Any) -> Any:
    """Return what a marshaller has written, a text as UTF-8."""
    return written.encode() if isinstance(written, str) else written


def _unmarshal(
    unmarshaller: Callable[[Any], Any], value: Any, attributes: dict[str, Any], message: KafkaMessage
) -> Any:
    reason = "data_unmarshaller "
    return _call(unmarshaller, value, lambda what: _broken_data(reason + what, attributes, message))


def _broken_data(reason: str, attributes: dict[str, Any], message: KafkaMessage) -> BrokenData:
    record = _reading.record_of(message)
    return BrokenData(f"broken data: {reason}", record, _reading.event_for_errors(record, attributes))


def _default_data(payload: bytes | None, attributes: dict[str, Any], message: KafkaMessage) -> Any:
    """Return the data of a value as version 1 reads it, JSON, else what the content type says."""
    if not payload:
        return payload
    content_type = attributes.get("datacontenttype")
    try:
        return _reading.json_value(payload, content_type if implies_json(content_type) else None)
    except DataError as error:
        if content_type is not None and implies_json(content_type):
            raise _broken_data(str(error), attributes, message) from error
    is_text = media_type(str(content_type)).is_text
    return _reading.text_or_bytes(payload, content_type) if is_text else payload


def _open(unmarshaller: Callable[[Any], Any], message: KafkaMessage) -> tuple[dict[str, Any], Any] | None:
    """Return the attributes and the data that a user's function reads; None for an event of 0.3."""

    def error_of(what: str) -> BrokenEvent:
        rule = f"the value must be an event, but reading it by envelope_unmarshaller {what}"
        return BrokenEvent([Problem(None, rule, "J-01")], _reading.record_of(message))

    members = _call(lambda value: dict(unmarshaller(value)), message.value, error_of)
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


def _create(
    event_type: type[AnyCloudEvent] | None, attributes: dict[str, Any], data: Any, message: KafkaMessage
) -> http.CloudEvent | AnyCloudEvent:
    """Return an event of the SDK with these attributes, the message's key, and no time that it invents."""
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
