"""The Kafka protocol: a client that produces and consumes, for brokers from 0.8 to 4.x, and a codec.

`Client` is the entry point; `EventProducer` and `EventConsumer` accept the client's producers and consumers.
The package does not depend on CloudEvents. Read `schema` (how messages are declared), `layout` (the fields of
one version), `messages` (the declarations), `codec` (messages to bytes and back), `frames` (size and header),
`records` (message sets and record batches), then `client`. All these modules use `errors`, `error_codes`,
`api_keys` and `varint`. `explain` describes frames byte by byte; `v07` is the protocol of Kafka 0.7, which
differs from all later protocols.
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
