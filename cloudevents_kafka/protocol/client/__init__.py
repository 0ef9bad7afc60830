"""A Kafka client in pure Python: `Client` connects, and creates producers and consumers.

Read `_client` first, then from the wire up: `_connection` (frames), `_broker` (login and versions, by
`_sasl` and `_api_versions`), `_cluster` (metadata, leaders, retries); for producing `_producer`,
`_accumulator`, `_sender`; for consuming `_consumer`, `_buffer`, `_fetcher`, `_group`, `_offsets`.
"""

from __future__ import annotations

from cloudevents_kafka.protocol.client._api_versions import CLIENT_VERSIONS, VERSIONS_0_8, VERSIONS_0_9
from cloudevents_kafka.protocol.client._batches import (
    NO_PRODUCER_ID,
    ProducerBatch,
    QueuedRecord,
    check_headers,
)
from cloudevents_kafka.protocol.client._capture import CapturedFrame, parse_line, stream_trace
from cloudevents_kafka.protocol.client._client import Client
from cloudevents_kafka.protocol.client._consumer import Consumer
from cloudevents_kafka.protocol.client._message import (
    EARLIEST,
    LATEST,
    STORED,
    UNKNOWN,
    Message,
    TopicPartition,
)
from cloudevents_kafka.protocol.client._partitioners import at_random, by_key, round_robin
from cloudevents_kafka.protocol.client._producer import Producer
from cloudevents_kafka.protocol.client._retry import MAX_SECONDS, Deadline
from cloudevents_kafka.protocol.client._sasl import SCRAM_HASHES, ScramKeys
from cloudevents_kafka.protocol.client._security import AuthenticationFailed, Plain, Scram

__all__ = [
    "CLIENT_VERSIONS",
    "EARLIEST",
    "LATEST",
    "MAX_SECONDS",
    "NO_PRODUCER_ID",
    "SCRAM_HASHES",
    "STORED",
    "UNKNOWN",
    "VERSIONS_0_8",
    "VERSIONS_0_9",
    "AuthenticationFailed",
    "CapturedFrame",
    "Client",
    "Consumer",
    "Deadline",
    "Message",
    "Plain",
    "Producer",
    "ProducerBatch",
    "QueuedRecord",
    "Scram",
    "ScramKeys",
    "TopicPartition",
    "at_random",
    "by_key",
    "check_headers",
    "parse_line",
    "round_robin",
    "stream_trace",
]
