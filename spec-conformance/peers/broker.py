"""Exchanges events through a real broker: our EventProducer and EventConsumer, the peer's own client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any, Final

from build import Program
from compare import Way
from confluent_kafka import Consumer, Producer, TopicPartition
from deviations import BROKER
from events import Sample
from exchange import Exchange, encode_task, holdable, judge_read, judge_record
from lines import Runner

from cloudevents_kafka import EventConsumer, EventProducer
from cloudevents_kafka.record import Record
from cloudevents_kafka.testing import LocalBroker

Json = dict[str, Any]
PEERS: Final = ("java", "javascript")
_topics: Final = count(1)


def exchange_on(
    broker: LocalBroker, program: Program, samples: Sequence[Sample], way: Way
) -> Iterator[Exchange]:
    """Exchange all samples that the format can hold in both directions, each through a topic of its own."""
    samples = holdable(samples, way)
    for exchanged in (*_to_peer(broker, program, samples, way), *_from_peer(broker, program, samples, way)):
        yield replace(exchanged, way=BROKER + exchanged.way)


def _topic(broker: LocalBroker) -> str:
    return broker.create_topic(f"peers-{next(_topics)}")


def _to_peer(
    broker: LocalBroker, program: Program, samples: Sequence[Sample], way: Way
) -> Iterator[Exchange]:
    topic, servers = _topic(broker), broker.bootstrap_servers
    format = None if way.mode == "binary" else way.name
    with EventProducer(Producer({"bootstrap.servers": servers}), topic=topic) as producer:
        for sample in samples:
            producer.send(
                sample.event(), mode=way.mode, format=format, key=sample.key, headers=sample.headers
            )
    with Runner(program, "consume", servers, topic, str(len(samples))) as runner:
        answers = [runner.read() for _ in samples]
    for exchanged, answer in zip(judge_read(samples, way, answers), answers, strict=True):
        yield replace(exchanged, findings=exchanged.findings | set(_beside(exchanged.sample, answer)))


def _beside(sample: Sample, answer: Json) -> Iterator[str]:
    """Say what else a client showed: the key, and what it makes of a message as its SDK has it."""
    if "key" in answer and answer["key"] != (None if sample.key is None else sample.key.hex()):
        yield "client: key changed"
    if answer.get("raw"):
        yield "client: fails without help"


def _from_peer(
    broker: LocalBroker, program: Program, samples: Sequence[Sample], way: Way
) -> Iterator[Exchange]:
    topic, servers = _topic(broker), broker.bootstrap_servers
    with Runner(program, "produce", servers, topic) as runner:
        answers = list(runner.ask(encode_task(sample, way) for sample in samples))
    records = iter(_fetched(servers, topic, sum("error" not in answer for answer in answers)))
    for sample, answer in zip(samples, answers, strict=True):
        if "error" in answer:
            judged = Exchange(sample, "writes", way.name, frozenset(["refused"]), answer["error"])
        else:
            judged = judge_record(sample, way, next(records))
        yield replace(judged, findings=judged.findings | set(_beside(sample, answer)))


def _fetched(servers: str, topic: str, number: int) -> list[Record]:
    settings = {"bootstrap.servers": servers, "group.id": "peers", "enable.auto.commit": False}
    client = Consumer(settings)
    client.assign([TopicPartition(topic, 0, 0)])
    with EventConsumer(client) as events:
        return [item.record for item in islice(events.items(idle_timeout=20), number)]
