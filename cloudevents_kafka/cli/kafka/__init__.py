"""confluent-kafka for the commands: settings, a session with a cluster, reading and sending.

Read `_settings` first, then `_session`, then `_reader` and `_sender`. The
package loads no client: confluent-kafka is imported when a client is created.
"""

from cloudevents_kafka.cli.kafka._reader import (
    Position,
    PositionType,
    RangeReader,
    ReadRequest,
    check_partitions,
    resolve_offset,
)
from cloudevents_kafka.cli.kafka._sender import Sender
from cloudevents_kafka.cli.kafka._session import (
    BrokerSession,
    create_consumer,
    create_producer,
)
from cloudevents_kafka.cli.kafka._settings import (
    Settings,
    config_option,
    kafka_options,
    load_settings,
    pop_settings,
    timeout_option,
)

__all__ = [
    "BrokerSession",
    "Position",
    "PositionType",
    "RangeReader",
    "ReadRequest",
    "Sender",
    "Settings",
    "check_partitions",
    "config_option",
    "create_consumer",
    "create_producer",
    "kafka_options",
    "load_settings",
    "pop_settings",
    "resolve_offset",
    "timeout_option",
]
