"""The fields of a frame of Kafka 0.7; responses of Kafka 0.7 do not contain the request type."""

from __future__ import annotations

import struct
import zlib
from functools import partial
from types import MappingProxyType
from typing import Final

from cloudevents_kafka.protocol.errors import Malformed, Unsupported
from cloudevents_kafka.protocol.explain._cursor import Cursor
from cloudevents_kafka.protocol.explain._field import ExplainedFrame, Problem
from cloudevents_kafka.protocol.explain._frame import explain_frame, explain_message, explain_structure
from cloudevents_kafka.protocol.schema import INT8, INT32, Structure
from cloudevents_kafka.protocol.v07 import ErrorCode
from cloudevents_kafka.protocol.v07.frames import not_ascii, unknown_request_type
from cloudevents_kafka.protocol.v07.messages import (
    REQUESTS,
    RESPONSES,
    FetchResponse,
    RequestHeader,
    RequestType,
)

_LENGTH: Final = 4
_PARTIAL: Final = "a partial message: brokers cut a message set at the requested size"


def explain_request_07(data: bytes, *, sized: bool | None = None) -> ExplainedFrame:
    """Return the explanation of a request of Kafka 0.7; for ``sized``, see `explain_request`.

    Examples:
        >>> from cloudevents_kafka.protocol.explain import explain_request_07
        >>> from cloudevents_kafka.protocol.v07 import FetchRequest, frames
        >>> request = FetchRequest(topic="orders", partition=0, offset=7, max_size=1000)
        >>> explain_request_07(frames.encode_request(request)).value("offset")
        7
    """
    return explain_frame("request", data, _request, sized)


def explain_response_07(data: bytes, key: int, *, sized: bool | None = None) -> ExplainedFrame:
    """Return the explanation of Kafka 0.7's response to a request of the type ``key``.

    Examples:
        >>> from cloudevents_kafka.protocol.explain import explain_response_07
        >>> explain_response_07(bytes.fromhex("000000020001"), key=1).value("error_code")
        1
    """
    return explain_frame("response", data, partial(_response, key=key), sized)


def _request(cursor: Cursor) -> None:
    explain_structure(cursor, RequestHeader, 0, "header.")
    key = cursor.frame.fields[-1].value
    _set_type(cursor.frame, key)
    if key not in REQUESTS:
        raise Unsupported(unknown_request_type(key))
    _explain(cursor, REQUESTS[key])
    for field in cursor.frame.fields:
        if field.path.rpartition(".")[2] == "topic" and not (field.value or "").isascii():
            cursor.frame.problems.append(Problem(field.at, field.path, not_ascii(field.value)))


def _response(cursor: Cursor, key: int) -> None:
    _set_type(cursor.frame, key)
    if key not in RESPONSES:
        raise Unsupported(
            f"the request must have a response (FETCH, MULTIFETCH or OFFSETS), got {cursor.frame.api}"
        )
    _explain(cursor, RESPONSES[key])


def _set_type(frame: ExplainedFrame, key: int) -> None:
    frame.key, frame.known = key, key in REQUESTS
    frame.api = RequestType(key).name if frame.known else f"request type {key}"


def _explain(cursor: Cursor, structure: type[Structure], prefix: str = "") -> None:
    explain_message(cursor, structure, 0, prefix=prefix, contents=_CONTENTS, codes=ErrorCode)


def _responses(cursor: Cursor, path: str) -> None:
    """Explain the parts of a multi-fetch response, each of which begins with its length."""
    number = 0
    while cursor.at < cursor.end:
        where = f"{path}[{number}]"
        with cursor.stop_on_error(where):
            size = cursor.add_integer(f"{where}.size", INT32)
            part = cursor.part(cursor.check(max(size, 0), where))
            _explain(part, FetchResponse, f"{where}.")
            cursor.at = part.end
        number += 1


def _messages(cursor: Cursor, path: str, depth: int = 0) -> None:
    """Explain a message set."""
    number = 0
    while cursor.at < cursor.end:
        where = f"{path}[{number}]"
        if cursor.frame.is_cut:
            cursor.skip(where)
            return
        left = cursor.end - cursor.at - _LENGTH
        length = struct.unpack_from(">i", cursor.data, cursor.at)[0] if left >= 0 else 0
        if left < max(length, 0):
            cursor.add_field(where, cursor.end, "partial", cursor.end - cursor.at, _PARTIAL)
            return
        part = cursor.part(cursor.at + _LENGTH + max(length, 0))
        with part.stop_on_error(where):
            _message(part, where, depth)
        cursor.at = part.end
        number += 1


def _message(cursor: Cursor, path: str, depth: int) -> None:
    cursor.add_integer(f"{path}.length", INT32)
    at = cursor.at
    magic = cursor.add_integer(f"{path}.magic", INT8)
    if magic not in {0, 1}:
        raise Malformed(f"the magic must be 0 or 1 in Kafka 0.7, got {magic}", at=at, path=path)
    codec = cursor.add_integer(f"{path}.attributes", INT8, magic=0) & 3 if magic else 0
    cursor.add_checksum(f"{path}.crc", zlib.crc32(cursor.data[cursor.at + 4 : cursor.end]))
    payload = cursor.data[cursor.at : cursor.end]
    cursor.add_field(f"{path}.payload", cursor.end, "rest", payload, "a compressed set" if codec else "")
    if codec:
        inner = cursor.decompress(f"{path}.payload", payload, codec, depth)
        _messages(inner, f"{path}.messages", depth + 1)


_CONTENTS: Final = MappingProxyType({"messages": _messages, "responses": _responses})
