"""The formats of records: message sets (magic 0 and 1) and record batches (magic 2).

`Batches` decodes any mix of message sets and record batches; `encode_message_set` and `encode_batch` encode
records. Read `record`, then `_message_set` or `_record_batch` with `_batch_body`, then `_batches`.
`compression` limits the size of decompressed data, and `_unpacked` limits the memory for this data. `nesting`
limits the size of compressed message sets inside other compressed message sets. `checksum` computes CRC-32C.
"""

from cloudevents_kafka.protocol.records._batches import Batch, Batches
from cloudevents_kafka.protocol.records._message_set import MessageEntry, encode_message_set
from cloudevents_kafka.protocol.records._record_batch import RecordBatch, encode_batch
from cloudevents_kafka.protocol.records.compression import Codec
from cloudevents_kafka.protocol.records.record import ControlRecord, Record, TimestampType

__all__ = [
    "Batch",
    "Batches",
    "Codec",
    "ControlRecord",
    "MessageEntry",
    "Record",
    "RecordBatch",
    "TimestampType",
    "encode_batch",
    "encode_message_set",
]
