"""A frame explained: size, header, message, and the records in it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import api_name
from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.error_codes import BrokerErrorCode, ErrorCode
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated, Unsupported
from cloudevents_kafka.protocol.explain._field import MOST_FIELDS, Collected, Cursor, Explained
from cloudevents_kafka.protocol.explain._meanings import note
from cloudevents_kafka.protocol.explain._records import explain_records
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.headers import RequestHeader, ResponseHeader
from cloudevents_kafka.protocol.schema import Structure, layout_of

_SIZE: Final = 4
_API_VERSIONS: Final = 18

Read = Callable[[Cursor], Explained]
"""Reads a frame from behind its size on."""

Inside = Callable[[Cursor, str], None]
"""Tells of what is in some bytes, up to the cursor's end, by the path of the field that has them."""


def explain_request(data: bytes, *, sized: bool | None = None, most: int = MOST_FIELDS) -> Explained:
    """Explain a request's frame, with or without its size in front; it is found out which, if not said."""
    return best_reading(data, _request, sized, most)


def explain_response(
    data: bytes, key: int, version: int, *, sized: bool | None = None, most: int = MOST_FIELDS
) -> Explained:
    """Explain the frame of an answer to that API's request of that version, with or without its size.

    Brokers that do not know the version of an ApiVersions request answer in version 0.
    """
    found = best_reading(data, lambda cursor: _response(cursor, key, version), sized, most)
    if found.problems and key == _API_VERSIONS and version:
        other = best_reading(data, lambda cursor: _response(cursor, key, 0), sized, most)
        return found if other.problems else other
    return found


def best_reading(data: bytes, read: Read, sized: bool | None = None, most: int = MOST_FIELDS) -> Explained:  # noqa: FBT001
    """Read a frame with its size in front or without.

    Where it is not said which, a size that fits is believed; else both are tried, and the one
    without problems is taken, or the one that makes sense for longer.
    """
    if sized is None and len(data) >= _SIZE and struct.unpack_from(">i", data)[0] == len(data) - _SIZE:
        sized = True
    readings: list[Explained] = []
    for with_size in (False, True) if sized is None else (sized,):
        cursor = Cursor(Collected(most), data, 0, len(data))
        readings.append(_sized(cursor, read) if with_size else read(cursor))
        if not readings[-1].problems:
            return readings[-1]
    # What begins with zeros, as a small size or id does, is read as key 0 too easily.
    return max(readings, key=lambda found: (found.known, bool(found.key), found.read))


def _sized(cursor: Cursor, read: Read) -> Explained:
    data, end = cursor.data, cursor.end
    if end < _SIZE:
        return read(cursor)
    (size,) = struct.unpack_from(">i", data)
    cursor.tell("size", _SIZE, "int32", size)
    if size != end - _SIZE:
        cursor.flag(f"the size says {size:,} bytes, {end - _SIZE:,} follow it", "size", 0)
    stop = min(end, _SIZE + size) if size >= 0 else end
    found = read(cursor.part(stop))
    if stop < end:
        cursor.at = stop
        cursor.break_off(Malformed(f"{end - stop:,} bytes follow the frame"), "")
    return found


def _request(cursor: Cursor) -> Explained:
    into = cursor.into
    key = version = None
    api, declared = "unknown", False
    try:
        cursor.check(4, "header")
        key, version = struct.unpack_from(">hh", cursor.data, cursor.at)
        api = api_name(key)
        known = APIS.get(key)
        declared = known is not None and version in known.versions
        # Of what is not declared, the client id is read still: it stands there in all later headers.
        header = frames.request_header(key, version) if declared or version == 0 else 1
        tell_structure(cursor, RequestHeader, header, "header.")
        if known is None or not declared:
            raise Unsupported(_undeclared(key, version))
        tell_structure(cursor, known.request, version)
        tell_end(cursor, known.request.__name__)
    except ProtocolError as error:
        cursor.break_off(error, "")
    return Explained("request", api, key, version, len(cursor.data), into.fields, into.problems, declared)


def _response(cursor: Cursor, key: int, version: int) -> Explained:
    into = cursor.into
    known = APIS.get(key)
    declared = known is not None and version in known.versions
    try:
        if known is None or not declared:
            tell_structure(cursor, ResponseHeader, 0, "header.")
            raise Unsupported(_undeclared(key, version))
        header = frames.response_header(known.response, version)
        tell_structure(cursor, ResponseHeader, header, "header.")
        tell_structure(cursor, known.response, version)
        tell_end(cursor, known.response.__name__)
    except ProtocolError as error:
        cursor.break_off(error, "")
    return Explained(
        "response", api_name(key), key, version, len(cursor.data), into.fields, into.problems, declared
    )


def tell_structure(
    cursor: Cursor,
    structure: type[Structure],
    version: int,
    prefix: str = "",
    *,
    inside: Mapping[str, Inside] = MappingProxyType({"records": explain_records}),
    codes: type[BrokerErrorCode] = ErrorCode,
) -> None:
    """Add the fields of a structure, and those ``inside`` them by field name; raise as `interpreter`."""

    def visit(path: str, at: int, end: int, type: str, value: Any) -> None:
        name = path.rpartition(".")[2]
        if name in inside and isinstance(value, bytes):
            if at < (begin := end - len(value)):
                cursor.tell(path, begin, type, len(value), "bytes")
            inside[name](cursor.part(end), path)
            cursor.at = end
            return
        cursor.tell(prefix + path, end, type, value, note(name, value, codes))

    data = cursor.data if cursor.end == len(cursor.data) else cursor.data[: cursor.end]
    try:
        interpreter.decode(layout_of(structure, version), data, cursor.at, visit)
    except Malformed as error:
        raise Malformed(error.rule, at=error.at, path=prefix + error.path) from None
    except Truncated as error:
        raise Truncated(error.missing, at=error.at, path=prefix + error.path) from None


def tell_end(cursor: Cursor, path: str) -> None:
    """Raise `Malformed` where bytes are left over."""
    if cursor.at < cursor.end:
        raise Malformed(f"{cursor.end - cursor.at:,} bytes are left over", at=cursor.at, path=path)


def _undeclared(key: int, version: int) -> str:
    known = APIS.get(key)
    if known is None:
        return f"{api_name(key)} (key {key}) is an API that this library does not read"
    return f"{known.name} is read in the versions {known.versions}, not {version}"
