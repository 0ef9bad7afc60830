"""The Python SDK 2.x behind the line protocol of ../lines.py."""

from __future__ import annotations

import base64
import json
import sys
from datetime import datetime
from typing import Any

from cloudevents.core.bindings.kafka import (
    KafkaMessage,
    from_kafka_event,
    to_binary_event,
    to_structured_event,
)
from cloudevents.core.v1.event import CloudEvent


def decode(record: dict[str, Any]) -> dict[str, Any]:
    headers = {name: octets(value) for name, value in record["headers"]}
    return describe(from_kafka_event(KafkaMessage(headers, octets(record["key"]), octets(record["value"]))))


def describe(event: Any) -> dict[str, Any]:
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


def encode(task: dict[str, Any]) -> dict[str, Any]:
    """Write with the user's key where there is one."""
    data = task["event"]["data"]
    attributes = {name: native(kind, text) for name, kind, text in task["event"]["attributes"]}
    event = CloudEvent(attributes, None if data is None else value_of(data))
    write = to_binary_event if task["mode"] == "binary" else to_structured_event
    message = write(event, key_mapper=None if task["key"] is None else lambda _: octets(task["key"]))
    headers = [(name, digits(value)) for name, value in message.headers.items()]
    return {"key": digits(message.key), "value": digits(message.value), "headers": headers}


def native(kind: str, text: str) -> Any:
    if kind == "Boolean":
        return text == "true"
    if kind == "Integer":
        return int(text)
    if kind == "Timestamp":
        return datetime.fromisoformat(text.upper())
    return base64.b64decode(text) if kind == "Binary" else text


def value_of(data: dict[str, str]) -> Any:
    raw = bytes.fromhex(data["hex"])
    return json.loads(raw) if data["kind"] == "json" else raw.decode() if data["kind"] == "text" else raw


def octets(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def digits(value: str | bytes | None) -> str | None:
    return None if value is None else as_bytes(value).hex()


def solve(task: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"event": decode(task["record"])} if task["op"] == "decode" else {"record": encode(task)}
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is its answer
        return {"error": f"{type(error).__name__}: {error}"}


for line in sys.stdin:
    print(json.dumps(solve(json.loads(line))), flush=True)
