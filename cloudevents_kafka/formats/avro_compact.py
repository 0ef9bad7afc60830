"""EXPERIMENTAL: the compact Avro event format, ``application/cloudevents+avro-compact``.

The document of the format is a working draft; a later version of this library may be unable to read events
that this version writes. A structured value is one datum of the record
``io.cloudevents.v1.avro.compact.CloudEvent``. The specversion is 1.0 and is not written. The field for data
is always written, as bytes or null, because the schema by mistake has a string as the default of this field
(AC-04).

If an event is changed and written again, a Timestamp loses its UTC offset. A Timestamp with digits below a
microsecond raises `EncodeError`. Data is always written as bytes, so a reader does not know whether the data
was JSON, a text or bytes. The types URI and URI-reference of attributes are lost, because the schema does not
have these types. For extensions that are not registered, the type Timestamp is also lost.
"""

from __future__ import annotations

import re
from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import find_extension, type_of
from cloudevents_kafka.attributes.timestamps import from_epoch, is_timestamp
from cloudevents_kafka.attributes.types import CORE, SPECVERSION, AttributeType, AttributeValue
from cloudevents_kafka.attributes.validation import find_repeats
from cloudevents_kafka.codecs.avro_binary import (
    MalformedDatum,
    read_attributes,
    read_boolean,
    read_bytes,
    read_datum,
    read_long,
    read_null,
    read_text,
    union_reader,
    write_bytes,
)
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats.base import BaseFormat, build_event, encode_epoch, malformed
from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.problems import EncodeError, Problem

_MILLION: Final = 10**6
_SINGLE_OBJECT: Final = b"\xc3\x01" + bytes.fromhex("ba27b92209f0ef56")
"""Avro's single-object header: a marker, followed by the schema's CRC-64-AVRO, lowest byte first."""
_FORM: Final = "datum of the schema io.cloudevents.v1.avro.compact.CloudEvent"
_OPTIONAL: Final = ("datacontenttype", "dataschema", "subject")
_NULL: Final = b"\x00"
_NUMBER: Final = re.compile("-?[0-9]{1,19}", re.ASCII)


class AvroCompactFormat(BaseFormat):
    """Experimental: the Avro format with the schema ``io.cloudevents.v1.avro.compact.CloudEvent``.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.formats.avro_compact import AvroCompactFormat
        >>> len(AvroCompactFormat().encode(Event(id="1", source="/shop", type="order.placed")))
        27
    """

    name = "avro-compact"

    def _encode(self, event: Event, attributes: dict[str, AttributeValue]) -> bytes:
        texts = {name: str(value).encode() for name, value in attributes.items() if name in CORE}
        if event.kind is DataKind.JSON:
            texts.setdefault("datacontenttype", b"application/json")  # this schema does not imply it
        extensions = {name: value for name, value in attributes.items() if name not in CORE}
        fields = [  # AC-01: without specversion
            *(write_bytes(texts[name]) for name in ("id", "source", "type")),
            *(b"\x02" + write_bytes(texts[name]) if name in texts else _NULL for name in _OPTIONAL),
            b"\x02" + _micros("time", str(attributes["time"])) if "time" in attributes else _NULL,
            zigzag.encode(len(extensions)) if extensions else b"",
            *(write_bytes(name.encode()) + _branch(name, value) for name, value in extensions.items()),
            b"\x00",
            # AC-04: always written, since the schema's default is a mistake
            b"\x02" if event.payload is None else b"\x00" + write_bytes(event.payload),
        ]
        return b"".join(fields)

    def _decode(self, value: bytes) -> Event:
        attributes, payload, problems, beyond = _read(value)
        wire = (self.name, value)
        return build_event(attributes, payload, DataKind.BYTES, wire, problems, received=beyond)


class JavaAvroCompactFormat(BaseFormat):
    """The format that the Java SDK writes as ``application/cloudevents+avrocompact``; read-only.

    A structured value consists of Avro's single-object header and one datum. If an event has no data, the
    Java SDK writes the schema's default, which is the four bytes ``null``; so these four bytes are read as no
    data.

    Examples:
        >>> from cloudevents_kafka.formats.avro_compact import JavaAvroCompactFormat
        >>> try:
        ...     JavaAvroCompactFormat().decode(b"17")
        ... except ValueError:
        ...     print("it has no single-object header")
        it has no single-object header
    """

    name = "avrocompact"

    def _encode(self, event: Event, attributes: dict[str, AttributeValue]) -> bytes:  # noqa: ARG002
        raise EncodeError(
            "application/cloudevents+avrocompact, the Java SDK's name for "
            "application/cloudevents+avro-compact, is read-only; use format='avro-compact', 'avro' or 'json'"
        )

    def _decode(self, value: bytes) -> Event:
        if not value.startswith(_SINGLE_OBJECT):
            raise malformed(_FORM, "it does not start with the schema's single-object header", "AC-01")
        attributes, payload, problems, beyond = _read(value[len(_SINGLE_OBJECT) :])
        payload = None if payload == b"null" else payload
        wire = (self.name, value)
        return build_event(attributes, payload, DataKind.BYTES, wire, problems, received=beyond)


# --- writing -------------------------------------------------------------------


def _branch(name: str, value: AttributeValue) -> bytes:
    """Return the value of an extension, encoded as a branch of the schema's union (AC-02)."""
    if isinstance(value, bool):
        return b"\x00\x01" if value else b"\x00\x00"
    if isinstance(value, int):
        return b"\x02" + zigzag.encode(value)
    if isinstance(value, bytes):
        return b"\x08" + write_bytes(value)
    if type_of(name) is AttributeType.TIMESTAMP and is_timestamp(value):
        return b"\x04" + _micros(name, value)
    return b"\x06" + write_bytes(value.encode())


def _micros(name: str, text: str) -> bytes:
    if _NUMBER.fullmatch(text):  # left out by lenient reading: the microseconds that a reader has received
        return zigzag.encode(int(text))
    seconds, nanos = encode_epoch(name, text, "compact Avro", "(AC-02, Avro compact format 2.1)", 1000)
    return zigzag.encode(seconds * _MILLION + nanos // 1000)


# --- reading -------------------------------------------------------------------


class _Time(str):
    """The text of a Timestamp; a plain str would later be read as a String."""

    __slots__ = ()


class _Beyond(str):
    """The microseconds since the epoch of a Timestamp that is not in the years 1 to 9999."""

    __slots__ = ()


def _read_time(datum: bytes, at: int, _: int) -> tuple[_Time | _Beyond, int]:
    micros, at = read_long(datum, at)
    seconds, rest = divmod(micros, _MILLION)
    try:
        return _Time(from_epoch(seconds, rest * 1000)), at
    except ValueError:
        return _Beyond(micros), at


_text_or_null: Final = union_reader(read_null, read_text)
_time_or_null: Final = union_reader(read_null, _read_time)
_extension: Final = union_reader(read_boolean, read_long, _read_time, read_text, read_bytes)
_bytes_or_null: Final = union_reader(read_bytes, read_null)


def _read_fields(datum: bytes) -> tuple[tuple[dict[str, Any], list[tuple[str, Any]], bytes | None], int]:
    attributes: dict[str, Any] = {"specversion": SPECVERSION}  # AC-01: not in the datum
    at = 0
    for name in ("id", "source", "type"):
        attributes[name], at = read_text(datum, at)
    for name in _OPTIONAL:
        attributes[name], at = _text_or_null(datum, at, 0)
    attributes["time"], at = _time_or_null(datum, at, 0)
    extensions, at = read_attributes(datum, at, _extension)
    data, at = _bytes_or_null(datum, at, 0)
    return ({name: value for name, value in attributes.items() if value is not None}, extensions, data), at


def _read(value: bytes) -> tuple[dict[str, Any], bytes | None, list[Problem], dict[str, str]]:
    """Return the attributes, the payload, the problems of attributes, and the Timestamps that break a rule.

    Raises `InvalidEvent` for a malformed datum.
    """
    try:
        attributes, extensions, payload = read_datum(value, _read_fields)
    except MalformedDatum as error:
        raise malformed(_FORM, error, "AC-01") from None
    problems: dict[str, Problem] = {}
    beyond: dict[str, str] = {}
    time = attributes.pop("time", None)
    if type(time) is _Beyond:
        problems["time"], beyond["time"] = _beyond("time", time), str(time)
    elif time is not None:
        attributes["time"] = str(time)
    for name, extension in extensions:
        if name in CORE:
            problems[name] = Problem(name, "must not be an extension", "AC-01")
        elif type(extension) in {_Time, _Beyond} and _has_another_type(name):
            problems[name] = Problem(name, "must not be a timestamp", "AC-02")
        elif type(extension) is _Beyond:
            problems[name], beyond[name] = _beyond(name, extension), str(extension)
        else:
            attributes[name] = str(extension) if type(extension) is _Time else extension
    repeats = find_repeats(name for name, _ in extensions)
    return attributes, payload, [*repeats, *problems.values()], beyond


def _beyond(name: str, micros: str) -> Problem:
    rule = "must be in the years 1 to 9999, in microseconds since the epoch"
    return Problem(name, rule, "AC-02", micros)


def _has_another_type(name: str) -> bool:
    known = find_extension(name)
    return known is not None and known.type is not AttributeType.TIMESTAMP
