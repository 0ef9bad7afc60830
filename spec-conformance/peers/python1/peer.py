"""The Python SDK 1.x behind the line protocol of ../lines.py."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

from cloudevents.http import CloudEvent
from cloudevents.kafka import KafkaMessage, from_binary, from_structured, to_binary, to_structured


def same(value: Any) -> Any:
    return value


def is_json(content_type: str | None) -> bool:
    return content_type is None or "json" in content_type.lower()


def decode(record: dict[str, Any]) -> dict[str, Any]:
    """Read by content type, for this SDK has no sniffer; only JSON and no type get its JSON reader."""
    headers = {name: octets(value) for name, value in record["headers"]}
    message = KafkaMessage(headers, octets(record["key"]), octets(record["value"]))
    content_type = (headers.get("content-type") or b"application/json").decode()
    if content_type.lower().startswith("application/cloudevents"):
        return describe(from_structured(message))
    return describe(from_binary(message, data_unmarshaller=None if is_json(content_type) else same))


def describe(event: CloudEvent) -> dict[str, Any]:
    attributes = [
        (name, *typed(value)) for name, value in event.get_attributes().items() if value is not None
    ]
    return {"attributes": attributes, "data": content(event.get_data())}


def typed(value: Any) -> tuple[str, str]:
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
    """Write with the user's key where there is one, and with the SDK's JSON writer for JSON only."""
    data = task["event"]["data"]
    attributes = {name: native(kind, text) for name, kind, text in task["event"]["attributes"]}
    event = CloudEvent(attributes, None if data is None else value_of(data))
    raw = data is not None and data["kind"] != "json"
    mapper = None if task["key"] is None else lambda _: octets(task["key"])
    if task["mode"] == "binary":
        message = to_binary(event, data_marshaller=same if raw else None, key_mapper=mapper)
    else:
        message = to_structured(event, key_mapper=mapper)
    headers = [(name, digits(value)) for name, value in message.headers.items()]
    return {"key": digits(message.key), "value": digits(message.value), "headers": headers}


def native(kind: str, text: str) -> Any:
    if kind == "Boolean":
        return text == "true"
    if kind == "Integer":
        return int(text)
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
