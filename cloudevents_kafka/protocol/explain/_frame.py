"""The fields of a frame (size, header, message, and the records in it), and of the frames of a capture."""

from __future__ import annotations

import struct
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import ApiKey, api_name
from cloudevents_kafka.protocol.client import CapturedFrame
from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.error_codes import BrokerErrorCode, ErrorCode
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated, Unsupported
from cloudevents_kafka.protocol.explain._field import MAX_FIELDS, Cursor, Explained, Findings, describe_value
from cloudevents_kafka.protocol.explain._records import explain_records
from cloudevents_kafka.protocol.layout import layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import RequestHeader, ResponseHeader
from cloudevents_kafka.protocol.schema import Structure

_SIZE: Final = 4

Read = Callable[[Cursor], Explained]
"""Explains a frame from the cursor, which is after the size."""

Inside = Callable[[Cursor, str], None]
"""Explains the content of a field, from the cursor to its end; called with the field's path."""


def explain_request(data: bytes, *, sized: bool | None = None, max_fields: int = MAX_FIELDS) -> Explained:
    """Return the explanation of a request; ``sized`` is whether it starts with its size (None: detect)."""
    return best_reading(data, _request, sized, max_fields)


def explain_response(
    data: bytes, key: int, version: int, *, sized: bool | None = None, max_fields: int = MAX_FIELDS
) -> Explained:
    """Return the explanation of the response to an API and version; ``sized`` as for requests.

    A response to ApiVersions may be of version 0, which a broker uses if it does not support the version
    (KIP-511).
    """
    found = best_reading(data, lambda cursor: _response(cursor, key, version), sized, max_fields)
    if found.problems and key == ApiKey.API_VERSIONS and version:
        other = best_reading(data, lambda cursor: _response(cursor, key, 0), sized, max_fields)
        return found if other.problems else other
    return found


def best_reading(
    data: bytes,
    read: Read,
    sized: bool | None = None,  # noqa: FBT001
    max_fields: int = MAX_FIELDS,
) -> Explained:
    """Return the explanation of a frame with or without its size.

    If ``sized`` is None, a size that matches the data is one. Otherwise both readings are tried, and the
    first without problems is returned, or the one that covers more bytes.
    """
    if sized is None and len(data) >= _SIZE and struct.unpack_from(">i", data)[0] == len(data) - _SIZE:
        sized = True
    readings: list[Explained] = []
    for with_size in (False, True) if sized is None else (sized,):
        cursor = Cursor(Findings(max_fields), data, 0, len(data))
        readings.append(_sized(cursor, read) if with_size else read(cursor))
        if not readings[-1].problems:
            return readings[-1]
    # A small size or id starts with zeros, which look like API key 0.
    return max(readings, key=lambda found: (found.known, bool(found.key), found.read))


def _sized(cursor: Cursor, read: Read) -> Explained:
    data, end = cursor.data, cursor.end
    if end < _SIZE:
        return read(cursor)
    (size,) = struct.unpack_from(">i", data)
    cursor.add_field("size", _SIZE, "int32", size)
    if size != end - _SIZE:
        cursor.add_problem(f"the size must be {end - _SIZE:,}, got {size:,}", "size", 0)
    stop = min(end, _SIZE + size) if size >= 0 else end
    found = read(cursor.part(stop))
    if stop < end:
        cursor.at = stop
        cursor.stop(Malformed(f"the frame must end here, got {end - stop:,} more bytes"), "")
    return found


def _request(cursor: Cursor) -> Explained:
    key = version = None
    api, declared = "unknown", False
    try:
        cursor.check(4, "header")
        key, version = struct.unpack_from(">hh", cursor.data, cursor.at)
        api = api_name(key)
        known = APIS.get(key)
        declared = known is not None and version in known.versions
        # An unsupported request has the client id, too: all headers but the first have it.
        header = frames.request_header(key, version) if declared or version == 0 else 1
        explain_structure(cursor, RequestHeader, header, "header.")
        if known is None or not declared:
            raise Unsupported(frames.unsupported(key, version))
        explain_structure(cursor, known.request, version)
        check_end(cursor, known.request.__name__)
    except ProtocolError as error:
        cursor.stop(error, "")
    return cursor.explained("request", api, key, version, known=declared)


def _response(cursor: Cursor, key: int, version: int) -> Explained:
    known = APIS.get(key)
    declared = known is not None and version in known.versions
    try:
        if known is None or not declared:
            explain_structure(cursor, ResponseHeader, 0, "header.")
            raise Unsupported(frames.unsupported(key, version))
        header = frames.response_header(known.response, version)
        explain_structure(cursor, ResponseHeader, header, "header.")
        explain_structure(cursor, known.response, version)
        check_end(cursor, known.response.__name__)
    except ProtocolError as error:
        cursor.stop(error, "")
    return cursor.explained("response", api_name(key), key, version, known=declared)


def explain_structure(
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
                cursor.add_field(path, begin, type, len(value), "bytes")
            inside[name](cursor.part(end), path)
            cursor.at = end
            return
        cursor.add_field(prefix + path, end, type, value, describe_value(name, value, codes))

    data = cursor.data if cursor.end == len(cursor.data) else cursor.data[: cursor.end]
    try:
        interpreter.decode(layout_of(structure, version), data, cursor.at, visit)
    except Malformed as error:
        raise Malformed(error.rule, at=error.at, path=prefix + error.path) from None
    except Truncated as error:
        raise Truncated(error.missing, at=error.at, path=prefix + error.path) from None


def check_end(cursor: Cursor, path: str) -> None:
    """Raise `Malformed` if bytes follow the last field."""
    if cursor.at < cursor.end:
        raise Malformed(frames.trailing_bytes(cursor.end - cursor.at), at=cursor.at, path=path)


_MAX_WAITING: Final = 100  # requests with one id, one for each connection to a broker


class CaptureExplainer:
    """Explains the frames of a capture in their order.

    A client may have several connections to a broker, each with its own correlation ids, which the capture
    does not distinguish. If several requests with an id wait, the response belongs to the oldest request
    that it can be decoded for.
    """

    def __init__(self) -> None:
        """Start without waiting requests."""
        self._waiting: Final[dict[tuple[str, int], deque[tuple[int, int]]]] = defaultdict(
            lambda: deque(maxlen=_MAX_WAITING)
        )

    def explain(self, frame: CapturedFrame) -> Explained:
        """Return the explanation of the next frame."""
        if frame.direction == "sent":
            return self._request(frame)
        number = int.from_bytes(frame.data[4:8], "big", signed=True)
        waiting = self._waiting.get((frame.broker, number))
        if not waiting:
            return _unpaired(frame.data)
        readings = [
            (request, explain_response(frame.data, *request, sized=True))
            for request in dict.fromkeys(waiting)
        ]
        request, found = next((r for r in readings if not r[1].problems), readings[0])
        waiting.remove(request)
        if not waiting:
            del self._waiting[frame.broker, number]
        return found

    def _request(self, frame: CapturedFrame) -> Explained:
        found = explain_request(frame.data, sized=True)
        number = found.value("header.correlation_id")
        unanswered = found.key == ApiKey.PRODUCE and found.value("acks") == 0
        if number is not None and found.key is not None and found.version is not None and not unanswered:
            self._waiting[frame.broker, number].append((found.key, found.version))
        return found


def _unpaired(data: bytes) -> Explained:
    def read(cursor: Cursor) -> Explained:
        try:
            explain_structure(cursor, ResponseHeader, 0, "header.")
            number = cursor.findings.fields[-1].value
            raise Unsupported(
                f"a request with the correlation id {number} is missing from the capture; "
                "decode the frame alone, with --response, --api and --version"
            )
        except ProtocolError as error:
            cursor.stop(error, "")
        return cursor.explained("response", "unknown", None, None, known=False)

    return best_reading(data, read, sized=True)
