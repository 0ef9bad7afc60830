"""Waiting for each delivery in eight threads or tasks, compared with confluent-kafka, on a local broker.

The bare loop does as little as possible: each of eight threads produces an encoded record and waits for a
`threading.Event` of its own, which the callback of the delivery sets, while one thread polls. Ours are
``send(event).result()``, a dead letter, and ``await send(event)`` of asyncio, and ``result()`` of one thread
next to a loop that produces and polls. All send the same event by turns, with the client's defaults and
without ``linger.ms``, which hides much of what a wait costs.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from clients import QUIET, Times, print_table, timed
from confluent_kafka import Producer

from cloudevents_kafka import AsyncEventProducer, DeadLetters, Event, EventProducer, decode, to_record
from cloudevents_kafka.clients.dead_letters import deliver
from cloudevents_kafka.testing import LocalBroker

WAITERS: Final = 8
EVENT: Final = Event(id="1", source="/shop", type="order.placed", data={"order": 17, "total": "9.50"})
RECORD: Final = to_record(EVENT)

# Ours, the loop to compare with, and the least ratio of the rates.
WAITING: Final = (
    ("send().result(), 8 threads", "bare, 8 threads", 0.8),
    ("dead letters, 8 threads", "bare, 8 threads", 0.8),
    ("await send(), 8 tasks", "bare, 8 threads", 0.8),
    ("send().result(), 1 thread", "bare, 1 thread", 0.8),
)


class Waiters:
    """Loops that send ``count`` records, and wait for each."""

    def __init__(self, count: int, settings: dict[str, Any]) -> None:
        self.count = count
        self.settings = settings

    def client(self) -> Producer:
        return Producer({**self.settings, **QUIET})

    def in_threads(self, send: Callable[[], object]) -> None:
        """Call a function ``count`` times, in as many threads as there are waiters."""

        def work() -> None:
            for _ in range(self.count // WAITERS):
                send()

        threads = [threading.Thread(target=work) for _ in range(WAITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def bare(self, topic: str) -> None:
        client = self.client()

        def send() -> None:
            reported = threading.Event()
            _produce(client, topic, lambda _error, _message: reported.set())
            reported.wait()

        with _polled(client):
            self.in_threads(send)

    def bare_alone(self, topic: str) -> None:
        client, reports = self.client(), list[object]()
        for number in range(self.count // WAITERS):
            _produce(client, topic, lambda _error, message: reports.append(message))
            while len(reports) == number:
                client.poll(0.2)

    def results(self, topic: str) -> None:
        producer = EventProducer(self.client(), topic=topic)
        self.in_threads(lambda: producer.send(EVENT).result())

    def results_alone(self, topic: str) -> None:
        producer = EventProducer(self.client(), topic=topic)
        for _ in range(self.count // WAITERS):
            producer.send(EVENT).result()

    def letters(self, topic: str) -> None:
        letters, item = DeadLetters(EventProducer(self.client()), topic=topic), decode(RECORD)
        error = KeyError("total")
        self.in_threads(lambda: deliver(letters, item, error, attempt=1))

    def tasks(self, topic: str) -> None:
        asyncio.run(self._tasks(topic))

    async def _tasks(self, topic: str) -> None:
        async with AsyncEventProducer(self.client(), topic=topic) as events, asyncio.TaskGroup() as tasks:

            async def work() -> None:
                for _ in range(self.count // WAITERS):
                    await events.send(EVENT)

            for _ in range(WAITERS):
                tasks.create_task(work())

    def loops(self) -> dict[str, Callable[[str], None]]:
        return {
            "bare, 8 threads": self.bare,
            "send().result(), 8 threads": self.results,
            "dead letters, 8 threads": self.letters,
            "await send(), 8 tasks": self.tasks,
            "bare, 1 thread": self.bare_alone,
            "send().result(), 1 thread": self.results_alone,
        }


def _produce(client: Producer, topic: str, report: Callable[[Any, Any], object]) -> None:
    client.produce(topic, value=RECORD.value, headers=list(RECORD.headers), on_delivery=report)


@contextmanager
def _polled(client: Producer) -> Iterator[None]:
    """Poll a client in a thread while the block runs."""
    ended = threading.Event()

    def poll() -> None:
        while not ended.is_set():
            client.poll(0.1)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def main() -> None:
    """Print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with LocalBroker() as broker:
        topics = (broker.create_topic(f"to-{number}") for number in range(10_000))
        for title, more in (("the client's defaults", {}), ("linger.ms=0", {"linger.ms": 0})):
            waiters = Waiters(options.count, {"bootstrap.servers": broker.bootstrap_servers, **more})
            times: Times = {}
            for _ in range(options.rounds):
                for name, loop in waiters.loops().items():
                    times.setdefault(name, []).append(timed(partial(loop, next(topics))))
            # A loop of one thread sends an eighth of the records.
            alone = {
                name: [(w * WAITERS, c * WAITERS) for w, c in t]
                for name, t in times.items()
                if "1 th" in name
            }
            print_table(f"waiting, {title}", options.count, {**times, **alone}, WAITING)


if __name__ == "__main__":
    main()
