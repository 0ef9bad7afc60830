"""Records in their formats: message sets (magic 0 and 1) and record batches (magic 2).

`Batches` decodes any mix of both; `encode_message_set` and `encode_batch` encode. Read `_record`, then
`_message_set` or `_record_batch` with `_batch_body`, then `_batches`. `_compression` bounds the size of
decompressed data, `_unpacked` the memory for it, `_nesting` the size of compressed sets in others;
`_checksum` is CRC-32C.
"""

from __future__ import annotations

from cloudevents_kafka.protocol.records._batches import Batch, Batches
from cloudevents_kafka.protocol.records._checksum import crc32c
from cloudevents_kafka.protocol.records._compression import LIMIT, Codec, compress, decompress
from cloudevents_kafka.protocol.records._message_set import MessageEntry, encode_message_set
from cloudevents_kafka.protocol.records._nesting import Nesting
from cloudevents_kafka.protocol.records._record import (
    ABORT,
    COMMIT,
    ControlRecord,
    Headers,
    Record,
    TimestampType,
)
from cloudevents_kafka.protocol.records._record_batch import RecordBatch, encode_batch

__all__ = [
    "ABORT",
    "COMMIT",
    "LIMIT",
    "Batch",
    "Batches",
    "Codec",
    "ControlRecord",
    "Headers",
    "MessageEntry",
    "Nesting",
    "Record",
    "RecordBatch",
    "TimestampType",
    "compress",
    "crc32c",
    "decompress",
    "encode_batch",
    "encode_message_set",
]
