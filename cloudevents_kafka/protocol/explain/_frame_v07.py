"""Frames of Kafka 0.7 explained, where an answer does not tell what it answers."""

from __future__ import annotations

import struct
import zlib
from types import MappingProxyType
from typing import Final

from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Unsupported
from cloudevents_kafka.protocol.explain._field import Cursor, Explained
from cloudevents_kafka.protocol.explain._frame import best_reading, tell_end, tell_structure
from cloudevents_kafka.protocol.explain._records import fixed, flags_of, told_checksum, unpacked
from cloudevents_kafka.protocol.schema import INT8, INT32, Structure
from cloudevents_kafka.protocol.v07 import REQUESTS, RESPONSES, FetchResponse, RequestHeader, RequestType
from cloudevents_kafka.protocol.v07.error_codes import ErrorCode

_LENGTH: Final = 4
_DEEPEST: Final = 8
_CUT: Final = "a cut message: brokers cut where the bytes asked for end"


def explain_request_07(data: bytes, *, sized: bool | None = None) -> Explained:
    """Explain a request's frame of Kafka 0.7, with or without its length in front."""
    return best_reading(data, _request, sized)


def explain_response_07(data: bytes, key: int, *, sized: bool | None = None) -> Explained:
    """Explain a response's frame of Kafka 0.7 to that type of request, with or without its length."""
    return best_reading(data, lambda cursor: _response(cursor, key), sized)


def _request(cursor: Cursor) -> Explained:
    key = None
    try:
        tell_structure(cursor, RequestHeader, 0, "header.")
        key = cursor.into.fields[-1].value
        if key not in REQUESTS:
            known = ", ".join(f"{type.value} {type.name}" for type in RequestType)
            raise Unsupported(f"request type {key}: Kafka 0.7 has {known}")
        _tell(cursor, REQUESTS[key])
        tell_end(cursor, REQUESTS[key].__name__)
    except ProtocolError as error:
        cursor.break_off(error, "")
    return _explained(cursor, "request", key)


def _response(cursor: Cursor, key: int) -> Explained:
    try:
        if key not in RESPONSES:
            raise Unsupported(f"{_name(key)}: Kafka 0.7 answers FETCH, MULTIFETCH and OFFSETS alone")
        _tell(cursor, RESPONSES[key])
        tell_end(cursor, RESPONSES[key].__name__)
    except ProtocolError as error:
        cursor.break_off(error, "")
    return _explained(cursor, "response", key)


def _explained(cursor: Cursor, kind: str, key: int | None) -> Explained:
    api = "unknown" if key is None else _name(key)
    into, known = cursor.into, key in REQUESTS
    return Explained(kind, api, key, None, len(cursor.data), into.fields, into.problems, known)


def _name(key: int) -> str:
    return RequestType(key).name if key in REQUESTS else f"request type {key}"


def _tell(cursor: Cursor, structure: type[Structure], prefix: str = "") -> None:
    tell_structure(cursor, structure, 0, prefix, inside=_INSIDE, codes=ErrorCode)


def _responses(cursor: Cursor, path: str) -> None:
    """Tell of the answers in that to a multi-fetch, each with its length."""
    number = 0
    while cursor.at < cursor.end:
        where = f"{path}[{number}]"
        try:
            size = fixed(cursor, f"{where}.size", INT32)
            part = cursor.part(cursor.check(max(size, 0), where))
            _tell(part, FetchResponse, f"{where}.")
            cursor.at = part.end
        except ProtocolError as error:
            cursor.break_off(error, where)
        number += 1


def _messages(cursor: Cursor, path: str, depth: int = 0) -> None:
    """Tell of a stretch of the log."""
    number = 0
    while cursor.at < cursor.end:
        where = f"{path}[{number}]"
        left = cursor.end - cursor.at - _LENGTH
        length = struct.unpack_from(">i", cursor.data, cursor.at)[0] if left >= 0 else 0
        if left < max(length, 0):
            cursor.tell(where, cursor.end, "cut", cursor.end - cursor.at, _CUT)
            return
        part = cursor.part(cursor.at + _LENGTH + max(length, 0))
        try:
            _message(part, where, depth)
        except ProtocolError as error:
            part.break_off(error, where)
        cursor.at = part.end
        number += 1


def _message(cursor: Cursor, path: str, depth: int) -> None:
    fixed(cursor, f"{path}.length", INT32)
    at = cursor.at
    magic = fixed(cursor, f"{path}.magic", INT8)
    if magic not in {0, 1}:
        raise Malformed(f"magic {magic} is not known; Kafka 0.7 has 0 and 1", at=at, path=path)
    codec = flags_of(cursor, f"{path}.attributes", INT8, 0) & 3 if magic else 0
    told_checksum(cursor, f"{path}.crc", zlib.crc32(cursor.data[cursor.at + 4 : cursor.end]))
    payload = cursor.data[cursor.at : cursor.end]
    cursor.tell(f"{path}.payload", cursor.end, "rest", payload, "a compressed set" if codec else "")
    if not codec:
        return
    if depth == _DEEPEST:
        raise Malformed(f"sets are nested more than {_DEEPEST} deep", at=cursor.at, path=path)
    _messages(unpacked(cursor, f"{path}.payload", payload, codec), f"{path}.messages", depth + 1)


_INSIDE: Final = MappingProxyType({"messages": _messages, "responses": _responses})
