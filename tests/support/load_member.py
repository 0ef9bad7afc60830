"""A member of the group of `load`: it handles events until SIGTERM, and notes each call of its handler.

python -m tests.support.load_member SERVERS COMBINATION NAME LOG
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from typing import Any, Final, NamedTuple

from confluent_kafka import Producer

from cloudevents_kafka import (
    AsyncEventConsumer,
    AsyncEventProcessor,
    AsyncEventProducer,
    Decoded,
    EventConsumer,
    EventProcessor,
    EventProducer,
    TransactionError,
)

STOP_SECONDS: Final = 5.0
"""The bound of a member for its end."""
BROKEN: Final = 3
"""The exit code of a processor that cannot go on."""

_SLOW_SECONDS: Final = 0.02  # of each event with the slow key
_RUN: Final[dict[str, Any]] = {
    "tries": 3,
    "backoff": 0.05,
    "on_failure": "fail",
    "concurrency": 8,
    "stop_timeout": STOP_SECONDS,
}


class Combination(NamedTuple):
    """A loop, its client, and the protocol of the group."""

    loop: str
    client: str
    protocol: str

    @property
    def name(self) -> str:
        """Its name on the command line, that of its topic and its group."""
        return "_".join(self)

    @property
    def target(self) -> str:
        """The topic of a processor."""
        return f"{self.name}-out"

    @property
    def is_processor(self) -> bool:
        """Whether it writes each event to a topic in a transaction."""
        return self.loop.endswith("processor")


class Notes:
    """The calls of the handler in a file, a line for each beginning and each end."""

    def __init__(self, path: str, name: str) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_WRONLY)
        self._name = name
        self._tried: set[str] = set()

    def begin(self, item: Decoded) -> tuple[str, str, float]:
        """Return the key, the number, and the seconds of an event; raise an error at some first tries."""
        number, key = item.event.id, (item.record.key or b"").decode()
        if number.endswith("13") and number not in self._tried:
            self._tried.add(number)
            raise ValueError("the first try fails")
        self._note("b", key, number)
        return key, number, _SLOW_SECONDS if key == "slow" else 0.0

    def end(self, key: str, number: str) -> None:
        """Note that a call has succeeded."""
        self._note("e", key, number)

    def _note(self, what: str, key: str, number: str) -> None:
        os.write(self._file, f"{time.monotonic():.6f} {self._name} {what} {key} {number}\n".encode())


class Member:
    """Runs the loop of a combination."""

    def __init__(self, servers: str, combination: Combination, name: str, notes: Notes) -> None:
        self._servers, self._combination, self._name, self._notes = servers, combination, name, notes

    def run(self) -> None:
        """Handle events until SIGTERM. Raises `TransactionError`."""
        if self._combination.loop == "threads":
            with self._consumer() as events:
                events.run(self._handle, **_RUN)
        elif self._combination.loop == "processor":
            self._process()
        elif self._combination.loop == "asyncio-processor":
            asyncio.run(self._process_async())
        else:
            asyncio.run(self._run_async())

    def _handle(self, item: Decoded) -> None:
        key, number, seconds = self._notes.begin(item)
        time.sleep(seconds)
        self._notes.end(key, number)

    async def _handle_async(self, item: Decoded) -> None:
        key, number, seconds = self._notes.begin(item)
        await asyncio.sleep(seconds)
        self._notes.end(key, number)

    async def _run_async(self) -> None:
        topics = [self._combination.name]
        if self._combination.client == "aiokafka":
            from aiokafka import AIOKafkaConsumer

            client = AIOKafkaConsumer(
                bootstrap_servers=self._servers,
                group_id=self._combination.name,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=3000,
                heartbeat_interval_ms=500,
            )
            async with AsyncEventConsumer(client, topics=topics, strict=True) as events:
                await _start(client)
                await events.run(self._handle_async, **_RUN)
        else:
            async with AsyncEventConsumer(self._settings(), topics=topics, strict=True) as events:
                await events.run(self._handle_async, **_RUN)

    def _process(self) -> None:
        with self._consumer() as events, EventProducer(self._writer(), **self._to_target()) as producer:

            def forward(item: Decoded) -> None:
                producer.send(item.event, key=item.record.key)

            EventProcessor(events, producer, forward, timeout=5).run(stop_timeout=STOP_SECONDS)

    async def _process_async(self) -> None:
        topics = [self._combination.name]
        async with (
            AsyncEventConsumer(self._settings(), topics=topics, strict=True) as events,
            AsyncEventProducer(self._writer(), **self._to_target()) as producer,
        ):

            async def forward(item: Decoded) -> None:
                await producer.send(item.event, key=item.record.key)

            await AsyncEventProcessor(events, producer, forward, timeout=5).run(stop_timeout=STOP_SECONDS)

    def _consumer(self) -> EventConsumer[Any, Decoded]:
        return EventConsumer(self._settings(), topics=[self._combination.name], strict=True)

    def _writer(self) -> Producer:
        settings = {"bootstrap.servers": self._servers, "transactional.id": self._name.rpartition("-")[0]}
        return Producer({**settings, "linger.ms": 5, "log_level": 0})

    def _to_target(self) -> dict[str, Any]:
        return {"topic": self._combination.target, "close_timeout": STOP_SECONDS}

    def _settings(self) -> dict[str, Any]:
        settings = {
            "bootstrap.servers": self._servers,
            "group.id": self._combination.name,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        protocol = self._combination.protocol
        if protocol == "consumer":
            return settings | {"group.protocol": protocol}
        times = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 500}
        return settings | times | {"partition.assignment.strategy": protocol}


async def _start(client: Any) -> None:
    """Start a client of aiokafka, which raises an error while no broker answers."""
    from aiokafka.errors import KafkaConnectionError

    while True:
        try:
            return await client.start()
        except KafkaConnectionError:
            await asyncio.sleep(0.5)


def main(servers: str, combination: str, name: str, log: str) -> int:
    """Run a member, and return its exit code."""
    logging.basicConfig(stream=sys.stdout, format="%(asctime)s %(name)s %(message)s")
    loop, client, protocol = combination.split("_")
    member = Member(servers, Combination(loop, client, protocol), name, Notes(log, name))
    try:
        member.run()
    except TransactionError as error:
        sys.stdout.write(f"{error}\n")
        return BROKEN
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
