"""Kafka 0.7: messages, a client for one broker, and the cluster in ZooKeeper.

Offsets are byte positions; keys, replicas and versions came later. Read `_messages` (requests and
responses), `frames`, `_message_set`, `_connection` (the client), then `_znodes` (the nodes in ZooKeeper),
`partitions` (how clients share partitions) and `zookeeper` (needs kazoo, of the extra ``protocol``; import
it by name).
"""

from __future__ import annotations

from cloudevents_kafka.protocol.v07._connection import Connection
from cloudevents_kafka.protocol.v07._message_set import Entry, Message, MessageSet, encode, pack
from cloudevents_kafka.protocol.v07._messages import (
    ANY_PARTITION,
    EARLIEST,
    LATEST,
    REQUESTS,
    RESPONSES,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    PartitionError,
    ProduceRequest,
    RequestHeader,
    RequestType,
)

__all__ = [
    "ANY_PARTITION",
    "EARLIEST",
    "LATEST",
    "REQUESTS",
    "RESPONSES",
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
    "RequestHeader",
    "RequestType",
    "encode",
    "pack",
]
