"""The Kafka protocol: a client for brokers of Kafka 0.8 to 4.x, and the encoding of the protocol's messages.

The most important class is `Client`, which creates producers and consumers. An `EventProducer` or
`EventConsumer` may use the producers and consumers of a `Client`. The package `protocol` does not use
CloudEvents. Read the modules of the package in the following order: `schema` (how messages are declared),
`layout` (the fields of one version), `messages` (the declarations), `codec` (encodes and decodes messages),
`frames` (size and header), `records` (message sets and record batches), and `client`. All these modules use
`errors`, `error_codes`, `api_keys` and `varint`. The module `explain` describes a frame of the protocol byte
by byte. `v07` implements the protocol of Kafka 0.7. The protocol of Kafka 0.7 differs from the protocol of
all later versions.
"""

from cloudevents_kafka.protocol.client import (
    EARLIEST,
    LATEST,
    STORED,
    UNKNOWN,
    AuthenticationFailed,
    Client,
    Consumer,
    Message,
    OAuthBearer,
    Plain,
    Producer,
    Scram,
    TopicPartition,
    at_random,
    by_key,
    round_robin,
)
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
    "OAuthBearer",
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
