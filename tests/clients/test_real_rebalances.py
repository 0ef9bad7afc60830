"""`run` in several processes of one group, which members join and leave under load, with a real broker."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer

from cloudevents_kafka import Event, EventConsumer, EventProducer
from cloudevents_kafka.testing import LocalBroker

PROTOCOLS = {
    "range": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}
MEMBER = """
import json, os, sys, time
from cloudevents_kafka import EventConsumer
settings, topic, loop = json.loads(sys.argv[1])
def line(what, item):
    record = item.record
    text = f"{time.time():.6f} {what} {record.partition} {record.offset} {record.key.decode()}\\n"
    os.write(1, text.encode())  # in one call: there are threads
if loop != "threads":
    import asyncio
    from cloudevents_kafka import AsyncEventConsumer
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    async def handle(item):
        line("begin", item)
        await asyncio.sleep(0.02)
        line("end", item)
    async def main():
        client = settings
        if loop == "aiokafka":
            client = AIOKafkaConsumer(
                bootstrap_servers=settings["bootstrap.servers"], group_id=settings["group.id"],
                enable_auto_commit=False, auto_offset_reset="earliest",
                partition_assignment_strategy=(RangePartitionAssignor,),
            )
            await client.start()
        async with AsyncEventConsumer(client, topics=[topic]) as events:
            await events.run(handle, concurrency=4, stop_timeout=10)
    asyncio.run(main())
else:
    def handle(item):
        line("begin", item)
        time.sleep(0.02)
        line("end", item)
    with EventConsumer(settings, topics=[topic]) as events:
        events.run(handle, concurrency=4, stop_timeout=10)
"""


class Line(NamedTuple):
    """What a member has printed: that a record begins or ends there."""

    time: float
    what: str
    partition: int
    offset: int
    key: str
    member: int


class Members:
    """The processes of a group, and what all have printed."""

    def __init__(self, arguments: str) -> None:
        self._arguments = arguments
        self.processes: list[subprocess.Popen[str]] = []
        self.lines: list[Line] = []
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", MEMBER, self._arguments], stdout=subprocess.PIPE, text=True
        )
        thread = threading.Thread(target=self._read, args=(process, len(self.processes)))
        self.processes.append(process)
        self._threads.append(thread)
        thread.start()

    def _read(self, process: subprocess.Popen[str], number: int) -> None:
        assert process.stdout is not None
        for text in process.stdout:
            at, what, partition, offset, key = text.split()
            self.lines.append(Line(float(at), what, int(partition), int(offset), key, number))

    def stop(self, number: int) -> None:
        self.processes[number].terminate()
        assert self.processes[number].wait(30) == 0

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process, thread in zip(self.processes, self._threads, strict=True):
            process.wait(60)
            thread.join(20)
            assert process.stdout is not None
            process.stdout.close()

    @property
    def begun(self) -> Counter[tuple[int, int]]:
        return Counter((line.partition, line.offset) for line in list(self.lines) if line.what == "begin")


def check_order(lines: list[Line]) -> None:
    """Raise an error if a record began after a later one of its key, or before an earlier one ended."""
    last: dict[str, int] = defaultdict(lambda: -1)
    open_: dict[str, Line] = {}
    for line in sorted(lines):
        if line.what == "end":
            open_.pop(line.key, None)
            continue
        assert line.key not in open_, (open_[line.key], line)
        assert line.offset > last[line.key], (last[line.key], line)
        last[line.key], open_[line.key] = line.offset, line


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize(
    ("loop", "protocol"),
    [
        pytest.param("threads", "range", marks=pytest.mark.release),
        ("threads", "cooperative"),
        pytest.param("threads", "consumer", marks=pytest.mark.release),
        pytest.param("asyncio", "range", marks=pytest.mark.release),
        pytest.param("asyncio", "cooperative", marks=pytest.mark.release),
        pytest.param("asyncio", "consumer", marks=pytest.mark.release),
        pytest.param("aiokafka", "range", marks=pytest.mark.release),
    ],
)
def test_no_record_begins_again_when_members_come_and_go(
    kafka_broker: LocalBroker, loop: str, protocol: str
) -> None:
    """Through 8 starts and 4 ends of members, what was handled is committed before its partition moves."""
    import msgspec

    count, keys = 3000, 60
    topic = kafka_broker.create_topic(f"rebalance-{uuid.uuid4()}", partitions=6)
    client = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers, "log_level": 0})
    with EventProducer(client, topic=topic) as producer:
        for number in range(count):
            producer.send(
                Event(id=str(number), source="/s", type="t"),
                key=f"k{number % keys}",
                partition=number % keys % 6,
            )
    settings = {
        "bootstrap.servers": kafka_broker.bootstrap_servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "log_level": 0,
        **PROTOCOLS[protocol],
    }
    members = Members(msgspec.json.encode([settings, topic, loop]).decode())
    try:
        for number in range(8):
            members.start()
            time.sleep(2)
            if number in {3, 4, 5, 6}:
                members.stop(number - 3)
        deadline = time.monotonic() + 90
        while len(members.begun) < count and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        members.end()
    begun = members.begun
    assert len(begun) == count
    again = {place: times for place, times in begun.items() if times > 1}
    sys.stderr.write(f"{loop}, {protocol}: {sum(again.values()) - len(again)} records were begun again\n")
    assert not again
    check_order(members.lines)


@pytest.mark.broker
@pytest.mark.parametrize("owned", [True, False], ids=["settings", "a client that was passed"])
def test_a_member_that_closes_within_a_rebalance_leaves_its_group(
    kafka_broker: LocalBroker, *, owned: bool
) -> None:
    """The others have its partitions at once, and not when its session has timed out (45 s)."""
    topic = kafka_broker.create_topic(uuid.uuid4().hex, partitions=2)
    settings = {
        "bootstrap.servers": kafka_broker.bootstrap_servers, "group.id": topic,
        "enable.auto.commit": False, "partition.assignment.strategy": "cooperative-sticky",
    }  # fmt: skip
    revoked = threading.Event()
    quick = {**settings, "heartbeat.interval.ms": 100}
    stays = EventConsumer(quick)
    stays.subscribe([topic], on_revoke=lambda *_: revoked.set())
    until(lambda: stays.poll(0.1) is None and len(stays.health().assignment) == 2)
    leaves = EventConsumer(settings if owned else Consumer(settings), topics=[topic])
    until(lambda: (leaves.poll(0.01), stays.poll(0.01), revoked.is_set())[-1])
    leaves.close()  # its next heartbeat is the first from which it knows of the second rebalance
    until(lambda: stays.poll(0.1) is None and len(stays.health().assignment) == 2)
    stays.close()


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds, for less than a session."""
    deadline = time.monotonic() + 35
    while not holds():
        assert time.monotonic() < deadline
