"""Message sets, inside of Produce and Fetch: guide, "Message sets". Versions are magic bytes.

A set is entries to its end, with no count in front, and may end within one. What reads
and writes them fast, and unpacks compressed ones, is `records`; this is their layout.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from cloudevents_kafka.protocol.schema.message import MessageSpec, Structure, wire
from cloudevents_kafka.protocol.schema.types import Bytes, Int8, Int32, Int64


class MessageOfSet(Structure, kw_only=True):
    """A message: ``crc`` is over all behind it, the two lowest bits of ``attributes`` are the codec."""

    crc: Int32
    magic_byte: Int8
    attributes: Int8
    timestamp: Annotated[Int64, wire("1+")] = -1
    key: Annotated[Bytes | None, wire(nullable="0+")]
    value: Annotated[Bytes | None, wire(nullable="0+")]


class MessageSetEntry(Structure, kw_only=True):
    """A message with its offset, and its size in bytes."""

    spec: ClassVar = MessageSpec.of("MessageSet", -1, "data", versions="0-1", guide="MessageSet")

    offset: Int64
    message_size: Int32
    content: Annotated[MessageOfSet, wire(guide="Message")]
