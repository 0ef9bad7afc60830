"""Run the demo: start Kafka, send and read back the traffic, run the pipeline, compare."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from cloudevents_kafka.demo._checks import Check, run_checks
from cloudevents_kafka.demo.clients import ReadCounts, TrafficCounts, read_back, send_traffic
from cloudevents_kafka.demo.traffic import InvalidLine, Item, file_traffic, shop_traffic
from cloudevents_kafka.jvm import Progress
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.spark.pipeline import PipelineOptions, Summary, run

TOPIC: Final = "shop"
PARTITIONS: Final = 3

# Spark runs for seconds: compiling its code for a long run would take more time than it saves.
_SHORT_RUN: Final = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
}


class Outcome(msgspec.Struct):
    """The counts, the pipeline's summary and the checks of a run."""

    sent: TrafficCounts
    back: ReadCounts
    summary: Summary
    checks: list[Check]
    invalid_lines: list[InvalidLine]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self.checks)


def run_demo(out: Path, *, seed: int, count: int, events: Path | None = None) -> Outcome:
    """Run the demo, stop all processes that it started, and return the outcome.

    ``out`` is the folder of the tables; ``events`` is a file of events to send instead of the
    shop's. Progress goes to stderr.
    """
    from cloudevents_kafka.testing import LocalBroker

    started = time.monotonic()
    invalid_lines: list[InvalidLine] = []
    with Progress(sys.stderr) as progress:
        progress.say("starting a local Kafka")
        with LocalBroker() as broker:
            broker.create_topic(TOPIC, partitions=PARTITIONS)
            servers = broker.bootstrap_servers
            progress.say(f"Kafka listens on {servers}; sending events to topic {TOPIC!r}")
            items = shop_traffic(seed, count) if events is None else _read_file(events, invalid_lines)
            sent = send_traffic(servers, TOPIC, items, seed, _counter(progress, "sent"))
            progress.say(f"{pluralize(sent.total, 'record')} sent; reading back")
            on_progress = _counter(progress, "read back")
            back = read_back(servers, TOPIC, PARTITIONS, sent.total, on_progress)
            progress.say(f"{pluralize(back.total, 'record')} read back; starting Spark (takes some seconds)")
            summary = run(
                _pipeline_options(servers, out, sent.total),
                report=lambda batch: progress.say(f"  {batch}"),
            )
        progress.say("comparing")
        checks = run_checks(sent, back, summary, out)
    return Outcome(sent, back, summary, checks, invalid_lines, time.monotonic() - started)


def _pipeline_options(servers: str, out: Path, records: int) -> PipelineOptions:
    return PipelineOptions(
        bootstrap_servers=servers,
        topics=(TOPIC,),
        out=str(out),
        once=True,
        max_records=records // 3 + 50,  # three batches, so that more than one is shown
        conf=_SHORT_RUN,
    )


def _counter(progress: Progress, label: str) -> Callable[[int], None]:
    def show(number: int) -> None:
        if number % 500 == 0:
            progress.step(f"{pluralize(number, 'record')} {label}")

    return show


def _read_file(path: Path, invalid_lines: list[InvalidLine]) -> Iterator[Item]:
    """Yield the events of a file; print the invalid lines and append them to a list."""
    with path.open("rb") as lines:
        for item in file_traffic(str(path), lines):
            if isinstance(item, InvalidLine):
                invalid_lines.append(item)
                sys.stderr.write(f"{item}\n")
            else:
                yield item
