"""The Protobuf event format, ``application/cloudevents+protobuf``.

A structured value is one message ``io.cloudevents.v1.CloudEvent``. The document of the format and the
declaration of the message have different field names and numbers; the declaration is used. To write messages,
the package protobuf is needed, which the extra ``protobuf`` installs. To read messages, this package is not
needed.

If the data is a Protobuf message, the payload of the event is the serialized ``google.protobuf.Any``
(`DataKind.PROTO`), as in the Java SDK. ``Any.FromString(event.data)`` decodes the payload. Text data that has
a JSON content type is read as JSON, because the Java SDK writes JSON as text data. If such text is not valid
JSON, the data is read as bytes.

If an event is changed and written again, three parts of the event that was read are lost:

* the UTC offset of a Timestamp. The instant stays the same. `EncodeError` is raised for an instant, such as a
  leap second, that seconds and nanoseconds cannot express. A text that lenient reading has accepted as the
  value of an extension of the type Timestamp is written as a String;
* the types URI, URI-reference and Timestamp of unregistered extensions: such values are read as text, and
  written as a String;
* unknown fields, which Protobuf ignores.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import current, type_of
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.timestamps import is_timestamp
from cloudevents_kafka.attributes.types import CORE, REQUIRED, AttributeType, AttributeValue
from cloudevents_kafka.attributes.validation import native_type
from cloudevents_kafka.codecs.json import decode_json, encode_json
from cloudevents_kafka.codecs.payload import DataKind, encode_text, json_in_utf8, to_utf8
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats import protobuf_decoder
from cloudevents_kafka.formats._protobuf_reader import NAME, read, read_data
from cloudevents_kafka.formats._protobuf_scanner import read_valid
from cloudevents_kafka.formats.base import BaseFormat, encode_epoch
from cloudevents_kafka.formats.protobuf_decoder import ATTR_FIELDS
from cloudevents_kafka.problems import DataError, EncodeError

_TYPED: Final = frozenset((*REQUIRED, *(name for name in CORE if type_of(name) is not AttributeType.STRING)))


class ProtobufFormat(BaseFormat):
    """The Protobuf format with the official message ``io.cloudevents.v1.CloudEvent``.

    Examples:
        >>> from cloudevents_kafka.formats.protobuf import ProtobufFormat
        >>> ProtobufFormat().decode(bytes.fromhex("0a013112022f731a03312e30220174"))
        Event(id='1', source='/s', type='t')
    """

    name = NAME

    def _encode(self, event: Event, attributes: dict[str, AttributeValue]) -> bytes:
        message = _message_class()()
        # P-01: each required attribute has its own field; all other attributes are in the map.
        message.id = attributes.get("id", "")
        message.source = attributes.get("source", "")
        message.spec_version = attributes.get("specversion", "")
        message.type = attributes.get("type", "")
        entries, not_texts = message.attributes, current.table.constrained
        for name, value in attributes.items():
            if name not in _TYPED and name not in not_texts and type(value) is str:
                entries[name].ce_string = value
            elif name == "time" and type(value) is str:
                _write_time(entries[name].ce_timestamp, name, value)
            elif name not in REQUIRED:
                _write_attribute(entries[name], name, value)
        if event.payload is not None:
            _write_data(message, event, event.payload)
        return bytes(message.SerializeToString(deterministic=True))

    def _decode(self, value: bytes) -> Event:
        return read_valid(value) or read(value)

    def read_data(self, value: bytes, content_type: str | None) -> tuple[bytes | None, DataKind] | None:
        """Return the data in a message, read with another content type; None if there is no data."""
        _, _, data = protobuf_decoder.read(value)
        return read_data(data, content_type) if data else None


@cache
def _message_class() -> Any:
    try:
        from cloudevents_kafka.formats.protobuf_schema import CloudEvent
    except ImportError as error:
        if not str(error.name).startswith("google"):
            raise
        from cloudevents_kafka.primitives.installing import pip_install

        raise EncodeError(
            "writing the Protobuf format needs the package protobuf, version 5 or later; "
            f"{pip_install('protobuf')}"
        ) from None
    return CloudEvent


def _write_attribute(attr: Any, name: str, value: AttributeValue) -> None:
    if not isinstance(value, str):
        setattr(attr, ATTR_FIELDS[native_type(value)], value)
        return
    attribute_type = type_of(name)
    if attribute_type is AttributeType.TIMESTAMP and is_timestamp(value):
        _write_time(attr.ce_timestamp, name, value)
    elif attribute_type is AttributeType.URI:
        attr.ce_uri = value
    elif attribute_type is AttributeType.URI_REFERENCE:
        attr.ce_uri_ref = value
    else:
        attr.ce_string = value


def _write_time(timestamp: Any, name: str, text: str) -> None:
    timestamp.seconds, timestamp.nanos = encode_epoch(name, text, "Protobuf", "(P-02, Protobuf format 2.1)")


def _write_data(message: Any, event: Event, payload: bytes) -> None:
    # P-03: bytes are binary_data, a message is proto_data, text is text_data.
    if event.kind is DataKind.BYTES:
        message.binary_data = payload
    elif event.kind is DataKind.PROTO:
        message.proto_data = payload
    else:
        message.text_data = _text_of(message, event, payload)


def _text_of(message: Any, event: Event, payload: bytes) -> str:
    content_type = event.datacontenttype
    if content_type is None and event.kind is DataKind.TEXT:  # lenient reading left its content type out
        return payload.decode()
    if content_type is None:
        string = _string_of(payload)
        if string is not None:
            return string
        message.attributes["datacontenttype"].ce_string = "application/json"  # not implied here
    media = None if content_type is None else media_type(content_type)
    if media is None or (media.utf8 and not media.ascii):
        return payload.decode()
    try:
        if event.kind is not DataKind.JSON:
            return to_utf8(payload, content_type).decode()
        text = json_in_utf8(payload, content_type).decode()
        encode_text(text, content_type)  # as a reader does
    except DataError as error:
        raise EncodeError(str(error)) from None
    return text


def _string_of(payload: bytes) -> str | None:
    """Return the text of a JSON string if encoding the text yields the same JSON again, else None."""
    if not payload.startswith(b'"'):
        return None
    try:
        text: str = decode_json(payload)
    except DataError:  # a lone surrogate, which has no UTF-8
        return None
    return text if encode_json(text) == payload else None
