"""Kafka 0.7: its requests, messages and error codes, a client, and what it keeps in ZooKeeper.

Byte positions for offsets, no keys, no replicas, no versions. `zookeeper` needs kazoo (the extra
``protocol``) and is imported by its own name.
"""

from __future__ import annotations

from cloudevents_kafka.protocol.v07.connection import Connection
from cloudevents_kafka.protocol.v07.error_codes import ErrorCode, PartitionError
from cloudevents_kafka.protocol.v07.message_set import Entry, Message, MessageSet, encode, pack
from cloudevents_kafka.protocol.v07.messages import (
    ANY_PARTITION,
    EARLIEST,
    LATEST,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
    RequestType,
)

__all__ = [
    "ANY_PARTITION",
    "EARLIEST",
    "LATEST",
    "Connection",
    "Entry",
    "ErrorCode",
    "FetchRequest",
    "FetchResponse",
    "Message",
    "MessageSet",
    "MultiFetchRequest",
    "MultiFetchResponse",
    "MultiProduceRequest",
    "OffsetsRequest",
    "OffsetsResponse",
    "PartitionError",
    "ProduceRequest",
    "RequestType",
    "encode",
    "pack",
]
