"""The Python SDK 1.x: the runner chooses its functions by content type, because it has no sniffer."""

from __future__ import annotations

from typing import Any

from cloudevents.http import CloudEvent
from cloudevents.kafka import KafkaMessage, from_binary, from_structured, to_binary, to_structured
from notation import described, native, octets, value_of, written


def same(value: Any) -> Any:
    return value


def is_json(content_type: str | None) -> bool:
    return content_type is None or "json" in content_type.lower()


def decode(record: dict[str, Any]) -> dict[str, Any]:
    """Return an event read by content type, with the JSON reader of the SDK for JSON and no type."""
    headers = {name: octets(value) for name, value in record["headers"]}
    message = KafkaMessage(headers, octets(record["key"]), octets(record["value"]))
    content_type = (headers.get("content-type") or b"application/json").decode()
    if content_type.lower().startswith("application/cloudevents"):
        return described(from_structured(message))
    return described(from_binary(message, data_unmarshaller=None if is_json(content_type) else same))


def encode(task: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the user's key, written with the JSON writer of the SDK for JSON only."""
    data = task["event"]["data"]
    attributes = {name: native(kind, text) for name, kind, text in task["event"]["attributes"]}
    event = CloudEvent(attributes, value_of(data))
    raw = data is not None and data["kind"] != "json"
    mapper = None if task["key"] is None else lambda _: octets(task["key"])
    if task["mode"] == "binary":
        return written(to_binary(event, data_marshaller=same if raw else None, key_mapper=mapper))
    return written(to_structured(event, key_mapper=mapper))
