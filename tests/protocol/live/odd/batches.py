"""Odd records: record batches and message sets whose fields are changed after they are encoded."""

from __future__ import annotations

import struct
import zlib

from cloudevents_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from cloudevents_kafka.protocol.records import Codec, Record, encode_batch, encode_message_set
from cloudevents_kafka.protocol.records.checksum import crc32c

# The index and format of each field of a batch.
FIELDS = {
    "base_offset": (0, ">q"),
    "size": (8, ">i"),
    "leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "crc": (17, ">I"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp": (27, ">q"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "count": (57, ">i"),
}


def batch(*values, codec=Codec.NONE, key=None, headers=(), timestamp=None, **more):
    """Return a record batch."""
    records = [Record(key, value, list(headers), timestamp) for value in values or (b"v",)]
    return encode_batch(records, codec, **more)


def numbered(sequence, count=1, *, producer_id=4242, epoch=0, **more):
    """Return a batch of an idempotent producer."""
    values = [b"%d" % n for n in range(count)]
    return batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **more)


def changed(data, **fields):
    """Return a batch with other fields; its checksum is right, unless ``crc`` is set."""
    data = bytearray(data)
    for name, value in fields.items():
        at, form = FIELDS[name]
        struct.pack_into(form, data, at, value)
    if "crc" not in fields:
        struct.pack_into(">I", data, FIELDS["crc"][0], crc32c(bytes(data[21:])))
    return bytes(data)


def with_body(data, body):
    """Return a batch with other bytes as its records."""
    data = data[:61] + body
    return changed(data, size=len(data) - 12)


def messages(*values, magic=0, codec=Codec.NONE, key=None, timestamp=None):
    """Return a message set."""
    records = [Record(key, value, [], timestamp if magic else None) for value in values or (b"v",)]
    return encode_message_set(records, magic, codec)


def message_changed(data, at, form, value, *, crc=True):
    """Return a set of one message with another field, and a right checksum unless ``crc`` is false."""
    data = bytearray(data)
    struct.pack_into(form, data, at, value)
    if crc:
        struct.pack_into(">I", data, 12, zlib.crc32(bytes(data[16:])))
    return bytes(data)


def produce(topic, *rows, acks=1, timeout_ms=1000, topic_id=None, **more):
    """Return a request of (partition, records) of one topic, or of records of partition 0."""
    parts = [row if isinstance(row, tuple) else (0, row) for row in rows]
    data = [PartitionProduceData(index=number, records=records) for number, records in parts]
    by_id = {} if topic_id is None else {"topic_id": topic_id}
    one = TopicProduceData(name=topic, partition_data=data, **by_id)
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[one], **more)
