"""The ways that an event can go over Kafka."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.binding import ContentMode

Way = tuple[ContentMode, str | None]

WAYS: Final[tuple[Way, ...]] = (
    ("binary", None),
    *(("structured", name) for name in ("json", "avro", "avro-compact", "protobuf")),
)
"""The modes and formats that hold every event exactly."""
