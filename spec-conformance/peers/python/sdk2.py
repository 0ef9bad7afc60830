"""The Python SDK 2.x."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cloudevents.core.bindings.kafka import (
    KafkaMessage,
    from_kafka_event,
    to_binary_event,
    to_structured_event,
)
from cloudevents.core.v1.event import CloudEvent
from notation import described, native, octets, value_of, written


def decode(record: dict[str, Any]) -> dict[str, Any]:
    headers = {name: octets(value) for name, value in record["headers"]}
    return described(from_kafka_event(KafkaMessage(headers, octets(record["key"]), octets(record["value"]))))


def encode(task: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the user's key, if there is one."""
    attributes = {
        name: datetime.fromisoformat(text.upper()) if kind == "Timestamp" else native(kind, text)
        for name, kind, text in task["event"]["attributes"]
    }
    event = CloudEvent(attributes, value_of(task["event"]["data"]))
    write = to_binary_event if task["mode"] == "binary" else to_structured_event
    return written(write(event, key_mapper=None if task["key"] is None else lambda _: octets(task["key"])))
