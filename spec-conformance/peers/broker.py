"""Exchange events through a real broker: EventProducer and EventConsumer here, the peer's client there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any, Final

from build import Program
from compare import Encoding
from confluent_kafka import Consumer, Producer, TopicPartition
from deviations import BROKER
from events import Sample
from exchange import Exchange, compare_read, compare_record, encode_task, writable
from lines import Runner

from cloudevents_kafka import EventConsumer, EventProducer
from cloudevents_kafka.record import Record
from cloudevents_kafka.testing import LocalBroker

Json = dict[str, Any]
PEERS: Final = ("java", "javascript")
_topics: Final = count(1)


def exchange_on(
    broker: LocalBroker, program: Program, samples: Sequence[Sample], encoding: Encoding
) -> Iterator[Exchange]:
    """Exchange the samples that the format can express in both directions, each through its own topic."""
    samples = writable(samples, encoding)
    for exchanged in (
        *_to_peer(broker, program, samples, encoding),
        *_from_peer(broker, program, samples, encoding),
    ):
        yield replace(exchanged, encoding=BROKER + exchanged.encoding)


def _topic(broker: LocalBroker) -> str:
    return broker.create_topic(f"peers-{next(_topics)}")


def _to_peer(
    broker: LocalBroker, program: Program, samples: Sequence[Sample], encoding: Encoding
) -> Iterator[Exchange]:
    topic, servers = _topic(broker), broker.bootstrap_servers
    format = None if encoding.mode == "binary" else encoding.name
    with EventProducer(Producer({"bootstrap.servers": servers}), topic=topic) as producer:
        for sample in samples:
            producer.send(
                sample.event(), mode=encoding.mode, format=format, key=sample.key, headers=sample.headers
            )
    with Runner(program, "consume", servers, topic, str(len(samples))) as runner:
        answers = [runner.read() for _ in samples]
    for exchanged, answer in zip(compare_read(samples, encoding, answers), answers, strict=True):
        yield replace(
            exchanged, findings=exchanged.findings | set(_client_findings(exchanged.sample, answer))
        )


def _client_findings(sample: Sample, answer: Json) -> Iterator[str]:
    """Yield the findings of the client: a changed key, and failures without the runner's help."""
    if "key" in answer and answer["key"] != (None if sample.key is None else sample.key.hex()):
        yield "client: key changed"
    if answer.get("raw"):
        yield "client: fails without help"


def _from_peer(
    broker: LocalBroker, program: Program, samples: Sequence[Sample], encoding: Encoding
) -> Iterator[Exchange]:
    topic, servers = _topic(broker), broker.bootstrap_servers
    with Runner(program, "produce", servers, topic) as runner:
        answers = list(runner.ask(encode_task(sample, encoding) for sample in samples))
    records = iter(_consume(servers, topic, sum("error" not in answer for answer in answers)))
    for sample, answer in zip(samples, answers, strict=True):
        if "error" in answer:
            compared = Exchange(sample, "writes", encoding.name, frozenset(["refused"]), answer["error"])
        else:
            compared = compare_record(sample, encoding, next(records))
        yield replace(compared, findings=compared.findings | set(_client_findings(sample, answer)))


def _consume(servers: str, topic: str, number: int) -> list[Record]:
    settings = {"bootstrap.servers": servers, "group.id": "peers", "enable.auto.commit": False}
    client = Consumer(settings)
    client.assign([TopicPartition(topic, 0, 0)])
    with EventConsumer(client) as events:
        return [item.record for item in islice(events.items(idle_timeout=20), number)]
