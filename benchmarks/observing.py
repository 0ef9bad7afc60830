"""What observers cost: a client without one compared with another checkout, and with each kind of observer.

    python benchmarks observing [-- --against PATH] [--rounds N]

The clients do no input or output, so that the times are those of this library. Both sides run by turns, each
in a process of its own, in CPU time; the ratio of each round is that of its two turns.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Final

COUNT: Final = 3000
OBSERVERS: Final = ("none", "inert", "opentelemetry", "prometheus")


def observers(kind: str) -> dict[str, Any]:
    """Return the options of a client; without observers none, as other checkouts may have none."""
    if kind == "none":
        return {}
    if kind == "inert":
        return {"observers": [importlib.import_module("cloudevents_kafka.clients.observing").Observer()]}
    module = importlib.import_module(f"cloudevents_kafka.clients.observing.{kind}")
    if kind == "prometheus":
        from prometheus_client import CollectorRegistry

        return {"observers": [module.PrometheusObserver(CollectorRegistry())]}
    from opentelemetry.sdk.trace import TracerProvider

    return {"observers": [module.OpenTelemetryObserver(TracerProvider())]}


class Sink:
    """A producer that reports each message at once."""

    def produce(self, _: str, *, on_delivery: Any, **__: Any) -> None:
        on_delivery(None, MESSAGES[0])

    def poll(self, _: float = 0) -> int:
        return 0

    def flush(self, _: float = 0) -> int:
        return 0


class Endless:
    """A consumer that has a record for each call."""

    def poll(self, _: float = 0) -> Any:
        return MESSAGES[0]

    def consume(self, num_messages: int = 1, _: float = 0) -> Any:
        return MESSAGES[:num_messages]

    def close(self) -> None:
        pass


MESSAGES: list[Any] = []


def works(kind: str) -> dict[str, Callable[[], object]]:
    """Return functions that send or read `COUNT` records."""
    from cloudevents_kafka import Event, EventConsumer, EventProducer, to_record
    from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage

    options = observers(kind)
    event = Event(id="1", source="/shop", type="order.placed", data={"total": "9.50"})
    record = to_record(event, key="customer-4")
    log = FakeLog(
        FakeMessage("orders", record.value, f"k{number % 7}", record.headers) for number in range(COUNT)
    )
    MESSAGES[:] = list(islice(log, 100))
    producer = EventProducer(Sink(), topic="orders", **options)
    consumer = EventConsumer(Endless(), **options)
    runner = FakeConsumer(log, auto_commit=False)
    runner.subscribe(["orders"])
    handling = EventConsumer(runner, **options)

    def send() -> None:
        for _ in range(COUNT):
            producer.send(event)

    def poll() -> None:
        for _ in range(COUNT):
            consumer.poll()

    def batches() -> None:
        for _ in islice(consumer.batches(100), COUNT // 100):
            pass

    def run() -> None:
        from confluent_kafka import TopicPartition

        if runner.assignment():
            handling.seek(TopicPartition("orders", 0, 0))
        handling.run(id, idle_timeout=0)

    return {"send": send, "poll": poll, "batches(100)": batches, "run": run}


def serve(kind: str) -> None:
    """Time works that are named on standard input, each in CPU seconds of a record."""
    found = works(kind)
    for line in sys.stdin:
        gc.collect()
        began = time.process_time()
        found[line.strip()]()
        print((time.process_time() - began) / COUNT, flush=True)


class Side:
    """A process with one checkout and one kind of observer."""

    def __init__(self, folder: Path, kind: str) -> None:
        path = os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
        argv = [sys.executable, __file__, "--serve", kind]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, env=environment)

    def time(self, name: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(name, file=self.process.stdin, flush=True)
        seconds: float = json.loads(self.process.stdout.readline())
        return seconds

    def end(self) -> None:
        self.process.communicate()


def compare(title: str, one: Side, other: Side, rounds: int) -> None:
    print(f"\n{title}")
    for name in ("send", "poll", "batches(100)", "run"):
        one.time(name), other.time(name)
        pairs = []
        for number in range(rounds):
            first, second = (one, other) if number % 2 else (other, one)
            times = first.time(name), second.time(name)
            pairs.append(times if number % 2 else times[::-1])
        before, after = (statistics.median(values) * 1e6 for values in zip(*pairs, strict=True))
        ratio = statistics.median(late / early for early, late in pairs)
        print(f"  {name:<13} {before:7.2f} us -> {after:7.2f} us   {ratio:.3f} times")
    one.end()
    other.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--serve", choices=OBSERVERS)
    options = parser.parse_args()
    here = Path(__file__).parents[1]
    if options.serve:
        serve(options.serve)
        return
    if options.against:
        sides = Side(options.against, "none"), Side(here, "none")
        compare(f"without an observer: {options.against}, then this checkout", *sides, options.rounds)
        return
    for kind in OBSERVERS[1:]:
        compare(f"without an observer, then {kind}", Side(here, "none"), Side(here, kind), options.rounds)


if __name__ == "__main__":
    main()
