"""Fuzz targets for the converters: any headers, values and texts, and the properties that hold for them.

The fuzzer's notation of a record is that of an HTTP message: lines ``name:value``, an empty line,
the value of the record. A name without a colon has a null value. Mutations of this notation are
usually records too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

from conformance import notation

from cloudevents_kafka import (
    DataError,
    Decoded,
    DecodeError,
    EncodeError,
    Event,
    InvalidEvent,
    Record,
    Undecodable,
    decode,
    sniff,
    to_record,
)
from cloudevents_kafka.attributes.media_type import media_type, python_codec
from cloudevents_kafka.attributes.timestamps import from_datetime, instant, is_timestamp, to_datetime
from cloudevents_kafka.attributes.types import AttributeType, canonical_text, is_string, parse
from cloudevents_kafka.binding import Mode
from cloudevents_kafka.cli.records.json_lines import BadLine, read_line, write_line
from cloudevents_kafka.cli.records.resolve import Overrides, resolve_line
from cloudevents_kafka.codecs.payload import DataKind, from_payload, to_payload
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.record import Headers
from tests.support import transcoding

VECTORS: Final = Path(__file__).parents[2] / "spec-conformance" / "vectors"
_MODES: Final = get_args(Mode)


def as_record(data: bytes) -> Record:
    """Return the record of an input; any bytes are one."""
    head, found, value = data.partition(b"\n\n")
    return Record(
        headers=[_header(line) for line in head.split(b"\n") if line], value=value if found else None
    )


def as_input(record: Record) -> bytes:
    """Return the input of a record, as far as the notation can express it."""
    head = b"\n".join(
        name.encode() if value is None else name.encode() + b":" + value for name, value in record.headers
    )
    return head if record.value is None else head + b"\n\n" + record.value


def _header(line: bytes) -> tuple[str, bytes | None]:
    name, found, value = line.partition(b":")
    return name.decode("utf-8", "replace"), value if found else None


# --- records -------------------------------------------------------------------------


def record(data: bytes) -> None:
    """Read any record strictly and leniently, and forward its event."""
    original = as_record(data)
    assert sniff(original.headers).mode in _MODES
    strict, lenient = decode(original), decode(original, lenient=True)
    for result in (strict, lenient):
        if isinstance(result, Undecodable):
            assert isinstance(result.error, DecodeError)
            assert str(result.error)
        else:
            _check_access(result.event)
            write_everywhere(result.event)
    if isinstance(strict, Decoded):
        assert not strict.tolerated
        again = to_record(strict.event, like=original)
        assert (again.value, again.headers) == (original.value, original.headers)
        _compare(strict, lenient, original.headers)
        assert strict.event == strict.event.replace()
        transcoding.check_forms(strict.event)
    elif isinstance(lenient, Decoded):
        assert lenient.tolerated


def _compare(strict: Decoded, lenient: Decoded | Undecodable, headers: Headers) -> None:
    """Lenient reading returns the event of strict reading, unless a header resembles one of the binding."""
    assert isinstance(lenient, Decoded)
    if not any(_resembles_binding(name) for name, _ in headers):
        assert lenient.event == strict.event
        assert not lenient.tolerated


def _resembles_binding(name: str) -> bool:
    folded = name.lower()
    return folded.startswith("ce-") or (
        name != folded and (folded.startswith("ce_") or folded == "content-type")
    )


def _check_access(event: Event) -> None:
    assert repr(event)
    assert all(name in event and event.text(name) is not None for name in event.attributes)
    with suppress(DataError):
        assert event.data is event.data


def write_everywhere(event: Event) -> None:
    """Write an event in every mode and format."""
    with suppress(EncodeError):
        to_record(event)
    for name in formats.names():
        with suppress(EncodeError):
            to_record(event, mode="structured", format=name)


# --- one format, one text, one payload, one line ------------------------------------------


def event_format(name: str, data: bytes) -> None:
    """Read any bytes in a format; an event that was read is written unchanged and in every other form."""
    found = formats.find(name)
    assert found is not None
    try:
        event = found.decode(data)
    except InvalidEvent:
        return
    assert found.encode(event) is data
    _check_access(event)
    transcoding.check_forms(event)


def texts(data: bytes) -> None:
    """Parse any text as every type; a valid text has one canonical form."""
    text = data.decode("utf-8", "surrogateescape")
    media = media_type(text)
    assert media.format is None or media.essence.endswith(media.format)
    with suppress(LookupError):
        assert "".encode(python_codec(media)) is not None
    is_string(text)
    if is_timestamp(text):
        assert instant(text)[0] == to_datetime(text)
        assert is_timestamp(from_datetime(to_datetime(text)))
    valid = set()
    for kind in AttributeType:
        with suppress(ValueError):
            assert parse(kind, canonical_text(parse(kind, text))) == parse(kind, text)
            valid.add(kind)
    assert AttributeType.URI_REFERENCE in valid or AttributeType.URI not in valid


def payload(data: bytes) -> None:
    """Decode any payload with any content type; a value is encoded again."""
    first, _, rest = data.partition(b"\n")
    content_type = first.decode("utf-8", "replace") or None
    for kind in (DataKind.BYTES, DataKind.JSON, DataKind.TEXT):
        try:
            value = from_payload(rest, kind, content_type)
        except DataError:
            continue
        with suppress(DataError):  # a text with a lone surrogate
            again, kind_again = to_payload(value, content_type)
            assert value is None or from_payload(again, kind_again, content_type) == value


def line(data: bytes) -> None:
    """Read a line of `produce`; the line of its record has the same record."""
    try:
        resolved = resolve_line(read_line(data), Overrides())
    except (BadLine, InvalidEvent, EncodeError):
        return
    result = decode(resolved, lenient=True)
    again = resolve_line(read_line(write_line(result)), Overrides())
    assert (again.key, again.value, again.headers) == (resolved.key, resolved.value, resolved.headers)


# --- constructed events ----------------------------------------------------------------


def event(data: bytes) -> None:
    """Construct an event from the members of any JSON object, and check what each form keeps."""
    try:
        members = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(members, dict):
        with suppress(InvalidEvent):
            transcoding.check_forms(Event(**members))


# --- first inputs -------------------------------------------------------------------------


def seeds(name: str) -> Iterator[bytes]:
    """Yield first inputs for a target, from the conformance vectors."""
    found = list(_records(_vectors()))
    if name == "record":
        yield from map(as_input, found)
    elif name == "line":
        yield from (write_line(decode(one, lenient=True)) for one in found)
    elif name == "event":
        yield from (JsonFormat().encode(one) for one in _events(found))
    elif name.startswith("format-"):
        form = name.removeprefix("format-")
        yield from (one.value for one in found if sniff(one.headers).format == form and one.value)
        for one in _events(found):
            with suppress(EncodeError):
                yield to_record(one, mode="structured", format=form).value or b""
    else:
        for one in _events(found):
            content_type = (one.datacontenttype or "").encode()
            yield content_type + b"\n" + (one.payload or b"") if name == "payload" else content_type
        yield from (b"2018-04-05T17:31:00.123Z", b"2016-12-31T23:59:60+05:30", b"urn:a%20b", b"-5", b"TQ==")


def _vectors() -> Iterator[Any]:
    for path in sorted(VECTORS.glob("**/*.json")):
        yield json.loads(path.read_text("utf-8"))


def _records(found: Any) -> Iterator[Record]:
    """Yield the records in vector files, at any depth."""
    if isinstance(found, dict) and {"key", "value", "headers"} <= found.keys():
        with suppress(KeyError, ValueError):  # a written record has other notations
            yield notation.as_record(notation.convert(found, notation.RecordNotation))
    elif isinstance(found, dict | list | Iterator):
        for inner in found.values() if isinstance(found, dict) else found:
            yield from _records(inner)


def _events(found: list[Record]) -> Iterator[Event]:
    for one in found:
        result = decode(one)
        if isinstance(result, Decoded):
            yield result.event


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    **{function.__name__: function for function in (record, texts, payload, line, event)},
    **{f"format-{name}": partial(event_format, name) for name in formats.names()},
}
