"""The Kafka protocol: a codec, and a client to produce and fetch, from 0.8 to today's brokers.

`Client` is the way in. Beneath it, `frames` encodes and decodes requests and responses as
`messages` declares them, and `records` what is in a partition. `v07` is Kafka 0.7, which
is another protocol. This room knows nothing of events; `EventProducer` and
`EventConsumer` take its producers and consumers as they take confluent-kafka's.
"""

from __future__ import annotations

from cloudevents_kafka.protocol.client.client import Client
from cloudevents_kafka.protocol.client.consumer import STORED, UNKNOWN, Consumer, TopicPartition
from cloudevents_kafka.protocol.client.message import Message
from cloudevents_kafka.protocol.client.offsets import EARLIEST, LATEST
from cloudevents_kafka.protocol.client.partitioners import at_random, by_key, round_robin
from cloudevents_kafka.protocol.client.producer import Producer
from cloudevents_kafka.protocol.client.security import AuthenticationFailed, Plain, Scram
from cloudevents_kafka.protocol.errors import (
    BrokerError,
    ClientError,
    Corrupt,
    DeadlineExceeded,
    Disconnected,
    Malformed,
    ProtocolError,
    Truncated,
    Unencodable,
    Unsupported,
)

__all__ = [
    "EARLIEST",
    "LATEST",
    "STORED",
    "UNKNOWN",
    "AuthenticationFailed",
    "BrokerError",
    "Client",
    "ClientError",
    "Consumer",
    "Corrupt",
    "DeadlineExceeded",
    "Disconnected",
    "Malformed",
    "Message",
    "Plain",
    "Producer",
    "ProtocolError",
    "Scram",
    "TopicPartition",
    "Truncated",
    "Unencodable",
    "Unsupported",
    "at_random",
    "by_key",
    "round_robin",
]
