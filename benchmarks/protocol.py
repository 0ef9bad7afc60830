"""The Kafka protocol compared with that of kafka-python: record batches and metadata, in one process.

Records have a key, 200 bytes of value and 4 headers, like CloudEvents in binary mode.
Checksums are excluded: neither side checks them, and both use the same CRC-32C for
encoding, because kafka-python would compute it in Python.
"""

from __future__ import annotations

import argparse
import sys

from _timing import row, time_by_turns

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.messages.topics import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from cloudevents_kafka.protocol.records import Batches, Codec, Record, encode_batch, encode_message_set
from cloudevents_kafka.protocol.records.checksum import crc32c

try:
    import kafka
    from kafka.protocol.metadata import MetadataResponse as TheirMetadata
    from kafka.record import default_records, legacy_records, memory_records
except ImportError:
    kafka = None

COUNT = 2000
HEADERS = [
    ("ce_specversion", b"1.0"),
    ("ce_id", b"a89b3c1d-4d7b-4d9e-9d8a-0123456789ab"),
    ("ce_source", b"/plants/1/lines/4"),
    ("ce_type", b"com.example.order.created"),
]
RECORDS = [Record(b"sensor-12", b"v" * 200, HEADERS, 1_700_000_000_000 + 3 * i) for i in range(COUNT)]
WITHOUT_HEADERS = [Record(r.key, r.value, [], r.timestamp) for r in RECORDS]


def decoded(data):
    return list(Batches(data, check_crc=False).records())


def their_decoded(data):
    return [record for batch in memory_records.MemoryRecords(data) for record in batch]


def their_batch(codec=0):
    builder = default_records.DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 30)
    for number, record in enumerate(RECORDS):
        builder.append(number, record.timestamp, record.key, record.value, record.headers)
    return builder.build()


def their_message_set():
    builder = legacy_records.LegacyRecordBatchBuilder(1, 0, 1 << 30)
    for number, record in enumerate(WITHOUT_HEADERS):
        builder.append(number, record.timestamp, record.key, record.value)
    return builder.build()


def scanned(data):
    return [batch.last_offset for batch in Batches(data)]


def their_scanned(data):
    return [batch.last_offset for batch in memory_records.MemoryRecords(data)]


def counted(data):
    return sum(batch.count for batch in Batches(data))


def their_counted(data):
    return sum(1 for batch in memory_records.MemoryRecords(data) for _ in batch)


def metadata():
    """Return the answer of two brokers about one topic of 100 partitions with two replicas."""
    partitions = [
        MetadataResponsePartition(
            error_code=0,
            partition_index=number,
            leader_id=1 + number % 2,
            leader_epoch=3,
            replica_nodes=[1, 2],
            isr_nodes=[1, 2],
        )
        for number in range(100)
    ]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=i, host="localhost", port=9092) for i in (1, 2)],
        topics=[MetadataResponseTopic(error_code=0, name="topic", partitions=partitions)],
        controller_id=1,
    )


def metadata_pairs():
    ours = metadata()
    data = compiler.encode(ours, 9)
    theirs = TheirMetadata[9].decode(data)
    assert theirs.encode() == data
    return [
        (
            "MetadataResponse v9, 100 partitions, decode",
            lambda: frames.decode_body(MetadataResponse, 9, data),
            lambda: TheirMetadata[9].decode(data),
            2,
        ),
        ("the same, encode", lambda: compiler.encode(ours, 9), theirs.encode, None),
    ]


def pairs():
    batch, messages = encode_batch(RECORDS), encode_message_set(WITHOUT_HEADERS)
    packed = encode_batch(RECORDS, Codec.GZIP)
    many = encode_batch(RECORDS[:4]) * COUNT
    assert their_batch() == batch[:12] + b"\0\0\0\0" + batch[16:]  # kafka-python leaves the leader epoch at 0
    assert bytes(their_message_set()) == messages
    for data in (batch, messages, packed):
        ours = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in decoded(data)]
        assert ours == [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in their_decoded(data)]
    assert scanned(many) == their_scanned(many)
    return [
        ("record batch, decode", lambda: decoded(batch), lambda: their_decoded(batch), 1.8),
        ("record batch, counted", lambda: counted(batch), lambda: their_counted(batch), 10),
        ("record batch, encode", lambda: encode_batch(RECORDS), their_batch, 1.5),
        ("record batch, gzip, decode", lambda: decoded(packed), lambda: their_decoded(packed), None),
        ("message set, decode", lambda: decoded(messages), lambda: their_decoded(messages), None),
        ("message set, encode", lambda: encode_message_set(WITHOUT_HEADERS), their_message_set, None),
        ("frame scan, batches of 4 records", lambda: scanned(many), lambda: their_scanned(many), None),
        *metadata_pairs(),
    ]


def main() -> None:
    """Print a row for each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--calls", type=int, default=4)
    options = parser.parse_args()
    if kafka is None:
        print("skipped: kafka-python is not installed; pip install kafka-python")
        return
    default_records.calc_crc32c = lambda view: crc32c(bytes(view))
    print(f"kafka-python {kafka.__version__}, Python {sys.version.split()[0]}; {COUNT} records per call")
    print(f"medians of {options.rounds} rounds")
    print(f"{'':<44} {'ours':>11} {'theirs':>11} {'ratio':>7}")
    for name, own, other, target in pairs():
        timings = time_by_turns(own, other, rounds=options.rounds, calls=options.calls)
        print(row(name, *timings, target), flush=True)


if __name__ == "__main__":
    main()
