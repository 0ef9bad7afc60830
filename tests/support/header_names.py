"""Records with header names that no client writes, in batches as they stand on the wire."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from cloudevents_kafka.protocol import Client
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from cloudevents_kafka.protocol.records import Record, encode_batch

BAD_NAME = "ce_\udcff"  # the bytes ce_\xff
_SECONDS = 30.0
_NEW = (3, 6)  # UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER: the topic was created just now


def event_record(number: int, *names: str) -> Record:
    """Return the record of an event that has these headers, too."""
    headers: list[tuple[str, bytes | None]] = [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"%d" % number),
        ("ce_source", b"/shop"),
        ("ce_type", b"order.placed"),
    ]
    headers[2:2] = [(name, b"x") for name in names]
    return Record(b"key-%d" % number, b"value-%d" % number, headers, 1_700_000_000_000)


def records_with_bad(count: int, bad: Collection[int]) -> list[Record]:
    """Return records of which those with these numbers have a header name that is not UTF-8."""
    return [event_record(number, *[BAD_NAME] * (number in bad)) for number in range(count)]


def write_batches(servers: str, topic: str, batches: Iterable[Sequence[Record]], partition: int = 0) -> None:
    """Append batches of records to a partition."""
    with Client(servers) as client:
        cluster, deadline = client._cluster, Deadline(_SECONDS)
        broker = cluster.broker(cluster.leader(topic, partition, deadline, create=True), deadline)
        for records in batches:
            data = PartitionProduceData(index=partition, records=encode_batch(records))
            request = ProduceRequest(
                acks=-1, timeout_ms=9_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
            )
            code = None
            while code in (None, *_NEW):
                deadline.check("the leader of a new partition")
                [answer] = broker.request(request, deadline).responses[0].partition_responses
                code = answer.error_code
            assert code == 0
