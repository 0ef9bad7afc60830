"""AsyncEventProducer and AsyncEventConsumer compared with the synchronous classes, on a local broker.

All loops send or read the same records by turns: those of `clients.mixture`, with the settings of
confluent-kafka's clients at their defaults. Afterwards each loop runs once more, and each callback
that the event loop runs is timed: from its start to its end, less the time in which its thread waited for
a processor, where Linux counts it, as other programs use the same cores. Python's collections of
garbage are among the callbacks; those of the objects from before the measurement are not (`gc.freeze`).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import threading
import time
from asyncio import events as asyncio_events
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from clients import BATCH, QUIET, Readers, Senders, Times, mixture, print_table, timed
from confluent_kafka import Consumer, Producer

from cloudevents_kafka import AsyncEventConsumer, AsyncEventProducer
from cloudevents_kafka.testing import LocalBroker

TASKS: Final = 1000
STALL_MS: Final = 5.0

SENDING: Final = (
    ("send_nowait at its bound", "EventProducer.send", 0.6),
    ("1,000 tasks await send", "EventProducer.send", 0.6),
)
READING: Final = (("async for", "EventConsumer, one by one", 0.6),)


class AsyncSenders(Senders):
    """Loops that send the events of `Senders`."""

    def client(self) -> Producer:
        return Producer({"bootstrap.servers": self.servers, **QUIET})

    def by_send_nowait(self, topic: str) -> None:
        asyncio.run(self._send_nowait(topic))

    async def _send_nowait(self, topic: str) -> None:
        async with AsyncEventProducer(self.client(), topic=topic) as producer:
            for event, mode in islice(cycle(self.events), self.count):
                await producer.drain()
                producer.send_nowait(event, mode=mode)

    def by_tasks(self, topic: str) -> None:
        asyncio.run(self._send_by_tasks(topic))

    async def _send_by_tasks(self, topic: str) -> None:
        left = iter(islice(cycle(self.events), self.count))
        async with AsyncEventProducer(self.client(), topic=topic) as producer:

            async def send() -> None:
                for event, mode in left:
                    await producer.send(event, mode=mode)

            async with asyncio.TaskGroup() as tasks:
                for _ in range(TASKS):
                    tasks.create_task(send())

    def loops(self) -> dict[str, Callable[[str], None]]:
        return {
            "EventProducer.send": self.by_event_producer,
            "send_nowait at its bound": self.by_send_nowait,
            "1,000 tasks await send": self.by_tasks,
        }


class AsyncReaders(Readers):
    """Loops that read the records of `Readers`."""

    def async_for(self, client: Consumer) -> None:
        asyncio.run(self._async_for(client))

    async def _async_for(self, client: Consumer) -> None:
        left = self.count - 1
        async for _ in AsyncEventConsumer(client, strict=True):
            left -= 1
            if not left:
                return

    def loops(self) -> dict[str, Callable[[Consumer], None]]:
        return {"EventConsumer, one by one": self.items, "async for": self.async_for}


@contextmanager
def callbacks_timed(times: list[float]) -> Iterator[None]:
    """Append the milliseconds of each callback that event loops of this thread run."""
    original = asyncio_events.Handle._run  # noqa: SLF001  # the loop has no other place
    with waiting_counted() as waited:

        def run(handle: Any) -> None:
            before, start = waited(), time.perf_counter()
            original(handle)
            elapsed = time.perf_counter() - start
            times.append((elapsed - (waited() - before)) * 1000)

        asyncio_events.Handle._run = run  # noqa: SLF001  # the loop has no other place
        try:
            yield
        finally:
            asyncio_events.Handle._run = original  # noqa: SLF001  # the loop has no other place


@contextmanager
def waiting_counted() -> Iterator[Callable[[], float]]:
    """Return a function for the seconds in which this thread has waited for a processor; 0 if unknown."""
    path = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    if not path.exists():
        yield lambda: 0.0
        return
    file = os.open(path, os.O_RDONLY)
    try:
        yield lambda: int(os.pread(file, 100, 0).split()[1]) / 1e9
    finally:
        os.close(file)


def print_stalls(name: str, work: Callable[[], None]) -> None:
    """Print the percentiles of a loop's callbacks."""
    times: list[float] = []
    with callbacks_timed(times):
        work()
    times.sort()
    high = times[int(len(times) * 0.999)]
    verdict = "met" if high < STALL_MS else "MISSED"
    print(
        f"  {name:<28} {len(times):>7,} callbacks: median {times[len(times) // 2]:.2f} ms, "
        f"99.9th percentile {high:.2f} ms, longest {times[-1]:.2f} ms   target {STALL_MS} ms  {verdict}"
    )


def main() -> None:
    """Print rates, ratios and the times of callbacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    records = mixture()
    sent: Times = {}
    read: Times = {}
    with LocalBroker() as broker:
        senders = AsyncSenders(broker.bootstrap_servers, records, options.count)
        topics = (broker.create_topic(f"to-{number}") for number in range(1000))
        for _ in range(options.rounds):
            for name, send in senders.loops().items():
                sent.setdefault(name, []).append(timed(partial(send, next(topics))))
        print_table("sending", options.count, sent, SENDING)
        topic = next(topics)
        senders.send_records(records, topic, options.count + 2 * BATCH)
        readers = AsyncReaders(broker.bootstrap_servers, options.count)
        for _ in range(options.rounds):
            for name, loop in readers.loops().items():
                client = readers.client(topic)
                read.setdefault(name, []).append(timed(partial(loop, client)))
                client.close()
        print_table("reading", options.count, read, READING)
        print("\ncallbacks of the event loop")
        # As a service does after its start: see docs/how-to/asyncio.md.
        gc.collect()
        gc.freeze()
        for name, _, _ in SENDING:
            print_stalls(name, partial(senders.loops()[name], next(topics)))
        client = readers.client(topic)
        print_stalls("async for", partial(readers.async_for, client))
        client.close()


if __name__ == "__main__":
    main()
