"""The notation of the line protocol for both SDKs: attributes, data, headers."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import Any


def described(event: Any) -> dict[str, Any]:
    attributes = [
        (name, *typed(value)) for name, value in event.get_attributes().items() if value is not None
    ]
    return {"attributes": attributes, "data": content(event.get_data())}


def typed(value: Any) -> tuple[str, str]:
    if isinstance(value, datetime):
        return "Timestamp", value.isoformat()
    if isinstance(value, bytes):
        return "Binary", base64.b64encode(value).decode()
    if isinstance(value, bool):
        return "Boolean", str(value).lower()
    return ("Integer" if isinstance(value, int) else "String"), str(value)


def content(data: Any) -> dict[str, str] | None:
    if data is None:
        return None
    if isinstance(data, bytes | str):
        return {"kind": "text" if isinstance(data, str) else "bytes", "hex": as_bytes(data).hex()}
    return {"kind": "json", "hex": json.dumps(data).encode().hex()}


def native(kind: str, text: str) -> Any:
    if kind == "Null":
        return None
    if kind == "Boolean":
        return text == "true"
    if kind == "Integer":
        return int(text)
    return base64.b64decode(text) if kind == "Binary" else text


def value_of(data: dict[str, str] | None) -> Any:
    if data is None:
        return None
    raw = bytes.fromhex(data["hex"])
    return json.loads(raw) if data["kind"] == "json" else raw.decode() if data["kind"] == "text" else raw


def written(message: Any) -> dict[str, Any]:
    headers = [(name, digits(value)) for name, value in message.headers.items()]
    return {"key": digits(message.key), "value": digits(message.value), "headers": headers}


def octets(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def digits(value: str | bytes | None) -> str | None:
    return None if value is None else as_bytes(value).hex()


def as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
