"""Records as they travel and lie on disk: message sets (magic 0 and 1) and record batches (magic 2).

Reading: `Batches`, of any mix of them. Writing: `encode_message_set` and `encode_batch`.
"""

from __future__ import annotations

from cloudevents_kafka.protocol.records.batches import Batch, Batches
from cloudevents_kafka.protocol.records.compression import LIMIT, Codec
from cloudevents_kafka.protocol.records.control import ABORT, COMMIT, ControlRecord
from cloudevents_kafka.protocol.records.message_set import MessageEntry, encode_message_set
from cloudevents_kafka.protocol.records.record import Headers, Record, TimestampType
from cloudevents_kafka.protocol.records.record_batch import RecordBatch, encode_batch

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
    "Record",
    "RecordBatch",
    "TimestampType",
    "encode_batch",
    "encode_message_set",
]
