"""Explanations of a frame's fields (size, header, message and records), and of all frames of a capture."""

from __future__ import annotations

import struct
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import ApiKey, api_name
from cloudevents_kafka.protocol.client import CapturedFrame
from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.error_codes import BrokerErrorCode, ErrorCode
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unsupported
from cloudevents_kafka.protocol.explain._cursor import Cursor
from cloudevents_kafka.protocol.explain._field import MAX_FIELDS, ExplainedFrame, describe_value
from cloudevents_kafka.protocol.explain._records import explain_records
from cloudevents_kafka.protocol.layout import layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import RequestHeader, ResponseHeader
from cloudevents_kafka.protocol.schema import Structure

_SIZE: Final = 4

Read = Callable[[Cursor], None]
"""A function that explains a frame; it is called with a cursor that is after the frame's size."""

ReadContent = Callable[[Cursor, str], None]
"""A function that explains the content of a field; it is called with a cursor and the field's path."""


def explain_request(
    data: bytes, *, sized: bool | None = None, max_fields: int = MAX_FIELDS
) -> ExplainedFrame:
    """Return the explanation of a request; ``sized`` says whether the data begins with the frame's size.

    If ``sized`` is None, the function detects whether the data begins with the frame's size.

    Examples:
        >>> from cloudevents_kafka.protocol.explain import explain_request
        >>> frame = explain_request(bytes.fromhex("0000000a00120000000000070000"))
        >>> [(field.path, field.value) for field in frame.fields[:2]]
        [('size', 10), ('header.request_api_key', 18)]
    """
    return explain_frame("request", data, _request, sized, max_fields)


def explain_response(
    data: bytes, key: int, version: int, *, sized: bool | None = None, max_fields: int = MAX_FIELDS
) -> ExplainedFrame:
    """Return the explanation of a response of an API and version; for ``sized``, see `explain_request`.

    Examples:
        >>> from cloudevents_kafka.protocol.explain import explain_response
        >>> frame = explain_response(bytes.fromhex("0000000a00000007000000000000"), key=18, version=0)
        >>> frame.value("header.correlation_id")
        7
    """
    found = explain_frame("response", data, partial(_response, key=key, version=version), sized, max_fields)
    if found.problems and key == ApiKey.API_VERSIONS and version:
        # KIP-511: a broker without the version answers in version 0.
        other = explain_response(data, key, 0, sized=sized, max_fields=max_fields)
        return found if other.problems else other
    return found


def explain_frame(
    kind: str,
    data: bytes,
    read: Read,
    sized: bool | None = None,  # noqa: FBT001
    max_fields: int = MAX_FIELDS,
) -> ExplainedFrame:
    """Return the explanation of a frame; the data may begin with the frame's size.

    If ``sized`` is None, and the first 4 bytes are the number of the following bytes, these 4 bytes are the
    frame's size. If ``sized`` is None, and the first 4 bytes are another number, the frame is explained
    twice: first without a size, and then with a size. The first explanation without problems is returned. If
    both explanations have problems, an explanation with a supported API is preferred, then an explanation
    with an API key other than 0, then the explanation that covers more bytes.
    """
    if sized is None and len(data) >= _SIZE and struct.unpack_from(">i", data)[0] == len(data) - _SIZE:
        sized = True
    readings: list[ExplainedFrame] = []
    for with_size in (False, True) if sized is None else (sized,):
        frame = ExplainedFrame(kind, len(data), max_fields)
        _read(Cursor(frame, data, 0, len(data)), read, sized=with_size and len(data) >= _SIZE)
        if not frame.problems:
            return frame
        readings.append(frame)
    # A small size or id starts with zeros, which look like API key 0.
    return max(readings, key=lambda found: (found.known, bool(found.key), found.read))


def _read(cursor: Cursor, read: Read, *, sized: bool) -> None:
    end = stop = cursor.end
    if sized:
        (size,) = struct.unpack_from(">i", cursor.data)
        cursor.add_field("size", _SIZE, "int32", size)
        if size != end - _SIZE:
            # S0-F1: "the size of the subsequent request or response message"
            cursor.add_problem(f"the size must be {end - _SIZE:,}, got {size:,}", "size", 0)
        stop = min(end, _SIZE + size) if size >= 0 else end
    part = cursor.part(stop)
    with part.stop_on_error(""):
        read(part)
    if stop < end:
        cursor.at = stop
        cursor.stop(Malformed(f"the frame must end here, got {end - stop:,} more bytes"), "")


def _request(cursor: Cursor) -> None:
    cursor.check(4, "header")
    key, version = struct.unpack_from(">hh", cursor.data, cursor.at)
    known = _set_api(cursor.frame, key, version)
    # An unsupported request has the client id, too: all versions of the header except 0 have the client id.
    header = frames.request_header(key, version) if known or version == 0 else 1
    explain_structure(cursor, RequestHeader, header, "header.")
    if not known:
        raise Unsupported(frames.unsupported(key, version))
    explain_message(cursor, APIS[key].request, version)


def _response(cursor: Cursor, key: int, version: int) -> None:
    known = _set_api(cursor.frame, key, version)
    header = frames.response_header(APIS[key].response, version) if known else 0
    explain_structure(cursor, ResponseHeader, header, "header.")
    if not known:
        raise Unsupported(frames.unsupported(key, version))
    explain_message(cursor, APIS[key].response, version)


def _set_api(frame: ExplainedFrame, key: int, version: int) -> bool:
    frame.key, frame.version, frame.api = key, version, api_name(key)
    frame.known = key in APIS and version in APIS[key].versions
    return frame.known


def explain_structure(
    cursor: Cursor,
    structure: type[Structure],
    version: int,
    prefix: str = "",
    *,
    contents: Mapping[str, ReadContent] = MappingProxyType({"records": explain_records}),
    codes: type[BrokerErrorCode] = ErrorCode,
) -> None:
    """Add the fields of a structure.

    ``contents`` maps names of fields to functions that explain the content of these fields. Raises the errors
    of `interpreter.decode`.
    """

    def visit(path: str, at: int, end: int, type: str, value: Any) -> None:
        name = path.rpartition(".")[2]
        if name in contents and isinstance(value, bytes):
            if at < (begin := end - len(value)):
                cursor.add_field(path, begin, type, len(value), "bytes")
            contents[name](cursor.part(end), path)
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


def explain_message(cursor: Cursor, structure: type[Structure], version: int, **options: Any) -> None:
    """Explain a structure as `explain_structure` does; raise `Malformed` if bytes follow the structure."""
    explain_structure(cursor, structure, version, **options)
    if cursor.at < cursor.end:
        rule = frames.trailing_bytes(cursor.end - cursor.at)
        raise Malformed(rule, at=cursor.at, path=structure.__name__)


_MAX_WAITING: Final = 100  # requests with the same id, one for each connection to a broker


class CaptureExplainer:
    """Explains the frames of a capture, one after another.

    A client may have several connections to a broker, and each connection has its own correlation ids. A
    capture does not name the connections. If several unanswered requests have the same correlation id, a
    response is assigned to the oldest of these requests for which the response can be decoded.

    Examples:
        >>> from pathlib import Path
        >>> from cloudevents_kafka.protocol import Client
        >>> from cloudevents_kafka.protocol.client import parse_line
        >>> from cloudevents_kafka.protocol.explain import CaptureExplainer
        >>> with Client("localhost:9092", trace="traffic.jsonl") as client:
        ...     partitions = client.partitions("orders")
        >>> explainer = CaptureExplainer()
        >>> lines = Path("traffic.jsonl").read_text().splitlines()
        >>> [explainer.explain(parse_line(line, "")).api for line in lines][:3]
        ['ApiVersions', 'ApiVersions', 'Metadata']
    """

    def __init__(self) -> None:
        """Create an explainer that has not received a request yet."""
        self._waiting: Final[dict[tuple[str, int], deque[tuple[int, int]]]] = defaultdict(
            lambda: deque(maxlen=_MAX_WAITING)
        )

    def explain(self, frame: CapturedFrame) -> ExplainedFrame:
        """Return the explanation of the next frame."""
        if frame.direction == "sent":
            return self._request(frame)
        number = int.from_bytes(frame.data[4:8], "big", signed=True)
        waiting = self._waiting.get((frame.broker, number))
        if not waiting:
            return explain_frame("response", frame.data, _unpaired, sized=True)
        readings = [
            (request, explain_response(frame.data, *request, sized=True))
            for request in dict.fromkeys(waiting)
        ]
        request, found = next((r for r in readings if not r[1].problems), readings[0])
        waiting.remove(request)
        if not waiting:
            del self._waiting[frame.broker, number]
        return found

    def _request(self, frame: CapturedFrame) -> ExplainedFrame:
        found = explain_request(frame.data, sized=True)
        number = found.value("header.correlation_id")
        # S0-A6: with 0 "the server will not send any response"
        unanswered = found.key == ApiKey.PRODUCE and found.value("acks") == 0
        if number is not None and found.key is not None and found.version is not None and not unanswered:
            self._waiting[frame.broker, number].append((found.key, found.version))
        return found


def _unpaired(cursor: Cursor) -> None:
    explain_structure(cursor, ResponseHeader, 0, "header.")
    number = cursor.frame.fields[-1].value
    raise Unsupported(
        f"a request with the correlation id {number} is missing from the capture; "
        "decode the frame alone, with --response, --api and --version"
    )
