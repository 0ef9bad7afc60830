"""The size of batches after one was refused as too large: the law, and random histories of a partition."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from cloudevents_kafka.protocol.client._accumulator import Accumulator
from cloudevents_kafka.protocol.client._batch_limit import BatchLimit
from cloudevents_kafka.protocol.client._batches import QueuedRecord, encode_records
from cloudevents_kafka.protocol.client._partitioners import by_key
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._settings import ProducerSettings
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError
from cloudevents_kafka.protocol.records import Codec, Record
from tests.support.wire import numbers
from tests.support.wire_broker import faults

PRODUCE = 0


class Partition:
    """A partition with a limit for batches, and a producer that fills it, without threads and sockets."""

    def __init__(self, limit, *, batch_bytes=100_000, codec=Codec.NONE):
        settings = ProducerSettings(
            acks=1,
            codec=codec,
            partitioner=by_key(),
            linger=0,
            batch_records=10_000,
            batch_bytes=batch_bytes,
            queue_records=1_000_000,
            delivery_timeout=-1,
            request_timeout=-1,
            idempotent=False,
        )
        cluster = SimpleNamespace(retry=lambda _action, attempt, _deadline: attempt())
        self.limit, self.codec = limit, codec
        self.requests, self.sent, self.delivered, self.failed = 0, [], [], []
        self._accumulator = Accumulator(cluster, settings, self._complete)

    def _complete(self, records, error, _partition, _offset):
        (self.delivered if error is None else self.failed).extend(one.record.value for one in records)

    def produce(self, values):
        """Send values, each round a batch, until all have been delivered or have failed."""
        records = (Record(value=value, timestamp=1) for value in values)
        self._accumulator.add(QueuedRecord("t", 0, record, None, Deadline(-1)) for record in records)
        done = len(self.delivered) + len(self.failed) + len(values)
        while len(self.delivered) + len(self.failed) < done:
            for batch in self._accumulator.sendable():
                self._send(batch)

    def _send(self, batch):
        batch.encoded_size = self.size(*(queued.record for queued in batch.queued))
        if self._accumulator.split_if_too_large(batch):
            return
        self.requests += 1
        self.sent.append(batch.encoded_size)
        if batch.encoded_size <= self.limit:
            self._accumulator.complete(batch, 0)
        elif len(batch.queued) > 1:
            self._accumulator.refuse_size(batch)
        else:
            self._accumulator.fail(batch, BrokerError(ErrorCode.MESSAGE_TOO_LARGE))

    def size(self, *records):
        return len(encode_records(records, 3, self.codec))


def test_batches_are_full_after_a_record_that_is_too_large():
    """A record that the broker refuses costs some requests, once."""
    partition = Partition(limit=50_000)
    partition.produce([*[b"small"] * 100, bytes(60_000), *[b"small"] * 50_000])
    assert partition.failed == [bytes(60_000)]
    assert partition.delivered == [b"small"] * 50_100
    assert partition.requests < 40  # there would be 24 without the record


def test_a_smaller_limit_than_the_batches_is_found():
    """After a search, batches have nine tenths of the limit of the topic, and none is refused."""
    partition = Partition(limit=31_415)
    partition.produce([bytes(1000)] * 1000)
    assert partition.failed == []
    settled = partition.sent[20:-1]
    assert all(27_000 < size <= 31_415 for size in settled), settled


def test_a_limit_that_was_raised_is_found():
    """After many full batches a larger one is tried, and batches grow to what is allowed now."""
    partition = Partition(limit=10_000)
    partition.produce([bytes(1000)] * 100)
    partition.limit = 1_000_000
    partition.produce([bytes(1000)] * 4000)
    assert max(partition.sent) > 90_000


def test_a_limit_that_was_lowered_is_found():
    """A size that was accepted before and is refused now is not kept."""
    partition = Partition(limit=50_000)
    partition.produce([bytes(1000)] * 500)
    partition.limit = 5_000
    before = partition.requests
    partition.produce([bytes(1000)] * 500)
    assert (partition.failed, len(partition.delivered)) == ([], 1000)
    assert partition.requests - before < 150  # 125 batches of 4 records, and the search


def test_tried_sizes_are_between_what_is_known():
    """No refused size is sent again, with any compression."""
    limit = BatchLimit()
    limit.measure(1000, 500)
    limit.refuse(500)
    assert (limit.room(), limit.allows(499), limit.allows(500)) == (500, True, False)
    limit.accept(250)
    assert limit.room() == 750
    limit.measure(1000, 100)
    assert limit.room() == 3750


def values_of(choose, count):
    """Return values of random sizes, some of which compress well, and a few of which are large."""
    kinds = (
        lambda: b"x" * choose.randrange(2000),
        lambda: choose.randbytes(choose.randrange(2000)),
        lambda: choose.randbytes(choose.randrange(3000, 40_000)) if choose.random() < 0.05 else b"",
    )
    return [choose.choice(kinds)() for _ in range(count)]


@pytest.mark.parametrize(("codec", "seeds"), [(Codec.NONE, 100), (Codec.GZIP, 20)])
def test_random_histories(codec, seeds):
    """With any limits and records, those that fit alone arrive in order, and others fail alone.

    There are at most twice as many batches as by the lowest limit, and few are refused.
    """
    for seed in range(seeds):
        choose = random.Random(seed)
        partition = Partition(choose.randrange(1000, 30_000), codec=codec)
        delivered, failed, lowest = [], [], partition.limit
        for _ in range(3):
            lowest = min(lowest, partition.limit)
            values = values_of(choose, 60)
            for value in values:
                fits = partition.size(Record(value=value, timestamp=1)) <= partition.limit
                (delivered if fits else failed).append(value)
            before = len(partition.sent)
            partition.produce(values)
            sent = partition.sent[before:]
            refused = sum(size > partition.limit for size in sent)
            assert len(sent) <= 2 * sum(sent) / lowest + 2 * refused + 2, seed
            assert refused <= sum(value in failed for value in values) + 12, seed
            partition.limit = choose.randrange(1000, 30_000)
        assert (partition.delivered, partition.failed) == (delivered, failed), seed


@pytest.mark.parametrize("code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE])
def test_both_codes_split(broker, client, code):
    """A batch larger than a segment of the log is split, too, as one above the limit of the topic."""
    broker.create_topic("t")
    broker.faults.add(faults.error(code), api=PRODUCE)
    errors = []
    with client.producer(linger=0.1) as producer:
        for value in numbers(20):
            producer.produce(
                "t", value, partition=0, on_delivery=lambda error, _message: errors.append(error)
            )
    assert errors == [None] * 20
    assert [record.value for record in broker.records("t")] == numbers(20)
