"""The function of the page writes to topics at least once; headers say what number and record each has."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from cloudevents_kafka import Decoded, Event, Record, decode, to_record
from cloudevents_kafka.spark import EventBatch, EventPipeline, PipelineOptions
from cloudevents_kafka.spark.pipeline import PipelineFailed, Summary
from tests.spark.pages import DOCS, spark_blocks
from tests.spark.pipeline.lake import Broker, Lake

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

PAGE = DOCS / "how-to" / "each_batch.md"
TRACE = ("traceparent", b"00-1")
OLD = ("pipeline-batch", b"77")
BAD = Record(
    key=b"k2",
    value=b"{",
    headers=[
        ("ce_specversion", b"1.0"),
        ("ce_id", b""),
        ("ce_source", b"/"),
        ("ce_type", b"t"),
        ("n", None),
        OLD,
    ],
)
TYPES = ("shop.order.paid", "shop.visit", "shop.order.test")


def send(lake: Lake) -> list[Record]:
    """Send events of some types, one in Avro, one with a null value, and a record that is not an event."""
    records = []
    for number, type_ in enumerate(TYPES):
        event = Event(id=str(number), source="/s", type=type_, data={"n": number}, partitionkey="p")
        record = to_record(event, mode=("binary", "structured")[number % 2])
        headers = [*record.headers, TRACE, OLD, ("n", None)]
        records.append(Record(key=b"k1", value=record.value, headers=headers))
    records.append(to_record(Event(id="a", source="/s", type="avro"), mode="structured", format="avro"))
    records.append(to_record(Event(id="b", source="/s", type="empty"), mode="binary"))
    records.append(BAD)
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    for record in records:
        producer.produce(lake.topic, key=record.key, value=record.value, headers=list(record.headers))
    assert producer.flush(30) == 0
    return records


def received(broker: Broker, *topics: str) -> list[Message]:
    """Return the records of topics that the broker has made by itself."""
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "tests",
        "enable.partition.eof": True,
    }
    consumer, found = Consumer(settings), []
    try:
        known = consumer.list_topics().topics
        ends = [TopicPartition(topic, number, 0) for topic in topics for number in known[topic].partitions]
        consumer.assign(ends)
        left = len(ends)
        while left:
            message = consumer.poll(10)
            assert message is not None
            if message.error():
                left -= 1
            else:
                found.append(message)
    finally:
        consumer.close()
    return found


def split(message: Message) -> tuple[Record, dict[str, bytes]]:
    """Return the record without the headers of the pipeline, and the last of these."""
    headers = message.headers() or []
    own = {name: value for name, value in headers if name.startswith("pipeline-")}
    record = Record(key=message.key(), value=message.value(), headers=headers)
    return record, own


def attributes(event: Event) -> dict[str, str | None]:
    return {name: event.text(name) for name in ("id", "source", "type", *event.extensions)}


class Killed(Exception):
    """Raised where the process is killed."""


class Function:
    """The function of the page, for topics of its own."""

    def __init__(self, lake: Lake, *, dies: bool = False) -> None:
        self.topics = {name: f"{lake.topic}-{name}" for name in ("orders-clean", "orders-clean_quarantine")}
        code = spark_blocks(PAGE)[0].replace("localhost:9092", lake.broker.bootstrap_servers)
        for name, topic in self.topics.items():
            code = code.replace(f'"{name}"', f'"{topic}"')
        found: dict[str, Any] = {}
        exec(compile(code, PAGE, "exec"), found)
        self._dies, self._write = dies, found["write"]

    def __call__(self, batch: EventBatch) -> None:
        self._write(batch)
        if self._dies:
            raise Killed


def run(lake: Lake, function: Function) -> Summary:
    options = PipelineOptions(
        bootstrap_servers=lake.broker.bootstrap_servers, topics=(lake.topic,), out=str(lake.out), once=True
    )
    return EventPipeline(options, spark=lake.spark, each_batch=function).run()


def test_topics(lake: Lake) -> None:
    """Events are in a topic with key and headers, other records in another, with why.

    After a kill a batch is written again under its number, and a reader can drop what it has twice.
    """
    sent = send(lake)
    with pytest.raises(PipelineFailed):
        run(lake, Function(lake, dies=True))
    function = Function(lake)
    summary = run(lake, function)
    assert summary.recovered == 0
    assert (summary.total.events, summary.total.quarantined) == (5, 1)
    events, others = (received(lake.broker, topic) for topic in function.topics.values())
    places: Counter[bytes] = Counter()
    for message in events:
        record, own = split(message)
        assert own.keys() == {"pipeline-batch", "pipeline-topic", "pipeline-partition", "pipeline-offset"}
        assert (own["pipeline-batch"], own["pipeline-topic"]) == (b"0", lake.topic.encode())
        places[own["pipeline-offset"]] += 1
        source = sent[int(own["pipeline-offset"])]
        item, expected = decode(record), decode(source)
        assert isinstance(item, Decoded)
        assert isinstance(expected, Decoded)
        assert item.event.payload == expected.event.payload
        assert attributes(item.event) == attributes(expected.event)
        assert record.key == source.key
        foreign = [(name, value) for name, value in record.headers if name in {"traceparent", "n"}]
        assert foreign == [pair for pair in source.headers if pair[0] in {"traceparent", "n"}]
    for message in others:
        record, own = split(message)
        assert (record.key, record.value) == (BAD.key, BAD.value)
        assert record.headers[: len(BAD.headers)] == BAD.headers
        places[own["pipeline-offset"]] += 1
        error = decode(BAD).error  # type: ignore[union-attr]  # it is not an event
        assert own["pipeline-verdict"].decode() == error.verdict
        assert own["pipeline-reason"].decode() == error.reason
        assert own["pipeline-clause"].decode() == error.clauses[0]
    assert places == {str(offset).encode(): 2 for offset in range(len(sent))}
    assert run(lake, function).batches == 0
