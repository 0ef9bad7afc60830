"""The demo from start to end: Kafka, traffic, both clients, the pipeline, the sums."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from cloudevents_kafka.demo.checks import Check, checks
from cloudevents_kafka.demo.clients import ReadBack, Traffic, read_back, send
from cloudevents_kafka.demo.traffic import BadLine, Item, of_file, of_shop
from cloudevents_kafka.jvm.progress import Progress
from cloudevents_kafka.spark.pipeline import BatchProgress, PipelineOptions, Summary, run

TOPIC = "shop"
PARTITIONS = 3

# A demo's Spark lives for seconds: optimizing its code for hours would cost more than it gives.
_BRIEF = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
}


class Outcome(msgspec.Struct):
    """All that the demo has to show."""

    sent: Traffic
    back: ReadBack
    summary: Summary
    checks: list[Check]
    bad_lines: list[BadLine]
    seconds: float

    @property
    def good(self) -> bool:
        """Whether all sums are right."""
        return all(check.good for check in self.checks)


def demonstrate(out: Path, *, seed: int, count: int, events: Path | None = None) -> Outcome:
    """Run the demo into the folder `out`; progress goes to stderr. Leaves nothing running."""
    from cloudevents_kafka.testing import LocalBroker

    began = time.monotonic()
    bad_lines: list[BadLine] = []
    with Progress(sys.stderr) as progress:
        progress.say("starting a local Kafka")
        with LocalBroker() as broker:
            broker.create_topic(TOPIC, partitions=PARTITIONS)
            servers = broker.bootstrap_servers
            progress.say(f"Kafka serves at {servers}; sending events to topic {TOPIC!r}")
            items = _items(events, seed, count, bad_lines)
            sent = send(servers, TOPIC, items, seed, _counting(progress, "records sent"))
            progress.say(f"{sent.total:,} records sent; reading them back")
            back = read_back(servers, TOPIC, PARTITIONS, sent.total, _counting(progress, "records read back"))
            progress.say(f"{back.total:,} records read back; starting Spark (this takes some seconds)")
            summary = run(_options(servers, out, sent.total), report=lambda batch: progress.say(_told(batch)))
        progress.say("comparing")
        found = checks(sent, back, summary, out)
    return Outcome(sent, back, summary, found, bad_lines, time.monotonic() - began)


def _options(servers: str, out: Path, records: int) -> PipelineOptions:
    return PipelineOptions(
        bootstrap_servers=servers,
        topics=(TOPIC,),
        out=str(out),
        once=True,
        # Some batches, to be seen at work.
        max_records=records // 3 + 50,
        conf=_BRIEF,
    )


def _told(batch: BatchProgress) -> str:
    return f"  {batch}"


def _counting(progress: Progress, what: str) -> Callable[[int], None]:
    def tell(number: int) -> None:
        if number % 500 == 0:
            progress.step(f"{number:,} {what}")

    return tell


def _items(events: Path | None, seed: int, count: int, bad_lines: list[BadLine]) -> Iterator[Item]:
    if events is None:
        return of_shop(seed, count)
    with events.open("rb") as lines:
        found = list(of_file(str(events), lines))
    return _good(found, bad_lines)


def _good(found: Iterable[Item | BadLine], bad_lines: list[BadLine]) -> Iterator[Item]:
    for item in found:
        if isinstance(item, BadLine):
            bad_lines.append(item)
            sys.stderr.write(f"{item}\n")
        else:
            yield item
