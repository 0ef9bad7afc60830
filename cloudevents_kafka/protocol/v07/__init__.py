"""Kafka 0.7: messages, a client for one broker, and what ZooKeeper stores about the cluster.

In Kafka 0.7, offsets are byte positions; keys, replicas and versions were added later. Read `messages`
(requests and responses), `frames`, `message_set`, `_connection` (the client), then `_znodes` (the nodes in
ZooKeeper), `partitions` (how clients share partitions) and `zookeeper`. The module `zookeeper` must be
imported explicitly. The module needs kazoo, which the extra ``protocol`` installs.
"""

from cloudevents_kafka.protocol.v07._connection import Connection
from cloudevents_kafka.protocol.v07.message_set import Entry, Message, MessageSet, encode
from cloudevents_kafka.protocol.v07.messages import EARLIEST, LATEST, ErrorCode, FetchRequest, PartitionError

__all__ = [
    "EARLIEST",
    "LATEST",
    "Connection",
    "Entry",
    "ErrorCode",
    "FetchRequest",
    "Message",
    "MessageSet",
    "PartitionError",
    "encode",
]
