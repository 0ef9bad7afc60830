"""EventConsumer against a model: any order of reads, seeks, pauses, rebalances, commits and failures."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from cloudevents_kafka import (
    ConsumeError,
    Decoded,
    DecodeError,
    Event,
    EventConsumer,
    Record,
    Undecodable,
    to_record,
)
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage
from tests.support import strategies as make

PARTITIONS, RECORDS = 3, 12
BAD, BROKEN_DATA = (2, 3, 7), (4, 8)  # offsets: not an event; an event with broken data
ERRORS = ["_TRANSPORT", "_PARTITION_EOF", "_MAX_POLL_EXCEEDED", "TOPIC_AUTHORIZATION_FAILED", "_BAD_MSG"]

partitions = st.integers(0, PARTITIONS - 1)
offsets = st.integers(0, RECORDS)


def message(partition: int, offset: int) -> FakeMessage:
    if offset in BAD:
        return FakeMessage("orders", b"not an event", partition=partition)
    data = b"{" if offset in BROKEN_DATA else b"{}"
    event = Event(id=str(offset), source="/s", type="t", data=data, datacontenttype="application/json")
    record = to_record(event)
    return FakeMessage("orders", record.value, headers=record.headers, partition=partition)


LOG = FakeLog(itertools.starmap(message, itertools.product(range(PARTITIONS), range(RECORDS))))


class Client(FakeConsumer):
    """A client that returns an error in the middle of a list: its name, after so many records."""

    error: tuple[str, int] | None = None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[FakeMessage]:
        if self.error is None:
            return self._shuffled(num_messages)
        name, after = self.error
        self.error = None
        before = self._shuffled(min(after, num_messages))
        self.fail_next(name)
        return before + super().consume(1) + self._shuffled(num_messages - len(before))

    def _shuffled(self, number: int) -> list[FakeMessage]:
        """Return messages of the partitions by turns."""
        found = []
        for _ in range(number):
            found += super().consume(1)
            self._positions = dict([*list(self._positions.items())[1:], *list(self._positions.items())[:1]])
        return found


class Reading(RuleBasedStateMachine):
    """The model has the offset of the next record of each partition, and the committed offsets."""

    @initialize(strict=st.booleans(), eager=st.booleans(), fails=st.sets(st.tuples(partitions, offsets)))
    def start(self, *, strict: bool, eager: bool, fails: set[tuple[int, int]]) -> None:
        self.client = Client(LOG, auto_commit=False)
        self.client.subscribe(["orders"])
        self.fails = fails  # records for which the program's function raises an error, each once
        self.failed: tuple[int, int] | None = None
        self.events = EventConsumer(
            self.client, strict=strict, eager_data=eager, reverse_key_mapper=self.mapped
        )
        self.next = dict.fromkeys(range(PARTITIONS), 0)
        self.committed = dict.fromkeys(range(PARTITIONS), 0)
        self.gathered: dict[int, int] = {}  # of paused partitions: the position of the client
        self.last: list[Any] = []

    def mapped(self, event: Event, record: Record) -> Event:
        place = (record.partition or 0, record.offset or 0)
        if place in self.fails:
            self.fails.discard(place)
            self.failed = place
            raise LookupError
        return event

    def read(self, function: Callable[[], list[Any]]) -> int:
        """Compare what a read returns or raises with the model; return the number of records."""
        self.failed, found = None, []
        try:
            found = function()
        except ConsumeError:
            return 1
        except DecodeError as error:
            found = [error]
        except LookupError:
            assert self.failed is not None
            self.returned(*self.failed)
            return 1
        for item in found:
            self.returned(item.record.partition, item.record.offset)
        if any(isinstance(item, Decoded | Undecodable) for item in found):
            self.last = found
        return len(found)

    def returned(self, partition: int, offset: int) -> None:
        assert offset == self.next[partition], f"{partition}@{offset}, expected {self.next}"
        assert partition not in self.gathered or offset < self.gathered[partition], "paused"
        self.next[partition] += 1

    @rule()
    def poll(self) -> None:
        self.read(lambda: [item for item in [self.events.poll(0)] if item is not None])

    @rule(number=st.integers(1, 5))
    def items(self, number: int) -> None:
        for _ in range(number):  # what comes before an error counts
            self.read(lambda: list(itertools.islice(self.events.items(idle_timeout=0), 1)))

    @rule(size=st.integers(1, 40))
    def batch(self, size: int) -> None:
        self.read(lambda: next(self.events.batches(size, 0, idle_timeout=0), []))

    @rule(partition=partitions, offset=offsets, wrapper=st.booleans())
    def seek(self, partition: int, offset: int, *, wrapper: bool) -> None:
        place = TopicPartition("orders", partition, offset)
        try:
            self.events.seek(place) if wrapper else self.client.seek(place)
        except KafkaException:
            assert not self.client.assignment()
        else:
            self.next[partition] = offset
            if partition in self.gathered:
                self.gathered[partition] = 0

    @rule()
    def seek_the_last(self) -> None:
        if self.last and self.client.assignment():
            record = self.last[0].record
            self.events.seek(self.last[0])
            self.next[record.partition] = record.offset
            if record.partition in self.gathered:
                self.gathered[record.partition] = 0

    @rule(partition=partitions)
    def pause(self, partition: int) -> None:
        place = TopicPartition("orders", partition)
        if self.client.assignment():
            self.client.pause([place])
            self.gathered.setdefault(partition, self.client.position([place])[0].offset)

    @rule(partition=partitions)
    def resume(self, partition: int) -> None:
        self.client.resume([TopicPartition("orders", partition)])
        self.gathered.pop(partition, None)

    @rule(lost=st.booleans())
    def rebalance(self, *, lost: bool) -> None:
        self.client.rebalance(lost=lost)
        self.next = dict(self.committed)
        self.gathered.clear()

    @rule()
    def discard(self) -> None:
        places = self.client.position([TopicPartition("orders", number) for number in range(PARTITIONS)])
        self.events.discard()
        for place in places:
            if place.offset >= 0:  # of a partition that was not sought
                self.next[place.partition] = place.offset

    @rule(count=st.integers(1, 40))
    def commit(self, count: int) -> None:
        done = self.last[:count]
        self.events.commit(done[0] if len(done) == 1 else done)
        for item in done:
            self.committed[item.record.partition] = item.record.next_offset
        if not self.client.assignment():  # revoked: the next assignment reads from there
            self.next = dict(self.committed)

    @rule(name=st.sampled_from(ERRORS), after=st.integers(0, 10))
    def fail(self, name: str, after: int) -> None:
        self.client.error = (name, after)

    @invariant()
    def what_is_committed_is_in_the_client(self) -> None:
        found = {tp[1]: offset for tp, offset in self.client.offsets.items()}
        assert found == {number: offset for number, offset in self.committed.items() if number in found}

    def teardown(self) -> None:
        """At last all records from the expected ones on are read, and none is missing."""
        self.client.error = None
        for number in range(PARTITIONS):
            self.resume(number)
        idle = 0
        while idle < 3:
            idle = 0 if self.read(lambda: next(self.events.batches(7, 0, idle_timeout=0), [])) else idle + 1
        assert self.next == dict.fromkeys(range(PARTITIONS), RECORDS)


@pytest.mark.timeout(600)  # a release tries many times as many examples
def test_reads_are_as_in_the_model(caplog: pytest.LogCaptureFixture) -> None:
    """Each record of a partition is returned once and in order, from the offset that was asked for."""
    caplog.set_level(logging.ERROR)
    run_state_machine_as_test(
        Reading, settings=settings(max_examples=make.scaled(40), stateful_step_count=30, deadline=None)
    )
