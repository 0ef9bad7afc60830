"""Of the records of a batch, librdkafka reads those that Spark cannot read, and few others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.spark.pipeline import PipelineFailed
from cloudevents_kafka.spark.pipeline.batches import _out_of_range, is_out_of_range, read_out_of_range
from cloudevents_kafka.spark.pipeline.notes import OffsetRange, iter_partitions
from cloudevents_kafka.testing import FakeMessage
from tests.support.wire_broker import WireBroker

MILLIS = 1_790_000_000_000
BETWEEN, MOST = 10, 30


@dataclass
class Record:
    """A message of librdkafka, as far as this module reads it."""

    number: int
    millis: int
    size: int

    def __len__(self) -> int:
        return self.size

    def timestamp(self) -> tuple[int, int]:
        return 1, self.millis

    def offset(self) -> int:
        return self.number

    @property
    def is_bad(self) -> bool:
        return self.millis != MILLIS


TOPICS = st.dictionaries(
    st.sampled_from(["0", "1"]),
    st.lists(st.tuples(st.sampled_from([MILLIS, MILLIS * 10**6]), st.integers(0, 20)), max_size=30),
    min_size=1,
)


def parts_of(records: Sequence[Record]) -> list[list[Record]]:
    return cast("Any", list(_out_of_range._parts(cast("Any", records))))


@given(TOPICS)
def test_each_record_is_read_once(partitions: dict[str, list[tuple[int, int]]]) -> None:
    """Each record that Spark cannot read is in a part; all others are in a part or in what Spark reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_out_of_range, "_MOST_BETWEEN", BETWEEN)
        patch.setattr(_out_of_range, "_MOST_BYTES", MOST)
        found, bad = [], set()
        for partition, drawn in partitions.items():
            records = [Record(5 + number, millis, size) for number, (millis, size) in enumerate(drawn)]
            bad |= {(partition, record.number) for record in records if record.is_bad}
            for part in parts_of(records):
                assert part[0].is_bad
                assert part[-1].is_bad
                assert sum(map(len, part[:-1])) <= MOST
                range_ = OffsetRange(part[0].number, part[-1].number + 1)
                found.append(_out_of_range._Part("t", partition, range_, cast("Any", None)))
    ranges = {"t": {name: OffsetRange(5, 5 + len(drawn)) for name, drawn in partitions.items()}}
    by_spark = [
        (partition, offset)
        for read in _out_of_range._others(ranges, found)
        for _, partition, range_ in iter_partitions(read)
        for offset in range(range_.start, range_.end)
    ]
    by_us = [
        (part.partition, offset) for part in found for offset in range(part.offsets.start, part.offsets.end)
    ]
    expected = [
        (name, offset) for name, range_ in ranges["t"].items() for offset in range(range_.start, range_.end)
    ]
    assert sorted(by_spark + by_us) == sorted(expected)
    assert bad <= set(by_us)


def test_records_after_the_last_one_are_not_kept() -> None:
    """One timestamp before many records does not make this process read them into its memory."""
    records = [Record(0, -(2**60), 1), *(Record(number, MILLIS, 1 << 20) for number in range(1, 200))]
    assert parts_of(records) == [records[:1]]


OVERFLOW = "Caused by: java.lang.ArithmeticException: long overflow"
RANGES = {"t": {"0": OffsetRange(0, 4)}}


@pytest.fixture
def broker() -> Iterator[WireBroker]:
    """Return a broker with five records in nanoseconds, of which the first two have expired."""
    with WireBroker("3.9") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        for _ in range(5):
            producer.produce("t", b"x", timestamp=MILLIS * 10**6)
        assert producer.flush(10) == 0
        broker.delete_records("t", 0, 2)
        yield broker


def options_of(broker: WireBroker) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, "kafka.isolation.level": "read_committed"}


def test_the_first_records_have_expired(broker: WireBroker) -> None:
    """The remaining records of the batch are read."""
    ((topic, partition, messages),) = _out_of_range._find(RANGES, options_of(broker))
    assert (topic, partition, [message.offset() for message in messages]) == ("t", "0", [2, 3])


def test_all_records_have_expired(broker: WireBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error says what was sought, and what to do."""
    monkeypatch.setattr(_out_of_range, "_most_bytes", lambda _: 1 << 30)
    broker.delete_records("t", 0, 5)
    with pytest.raises(PipelineFailed, match=r"no such record in t\[0\]@0 to 3: .* expired\. Start again"):
        read_out_of_range(cast("Any", None), RANGES, lambda _: options_of(broker), pytest.fail)


def test_the_log_ends_before_the_batch(broker: WireBroker) -> None:
    """Records before the batch are not read, even if the batch has none."""
    ranges = {"t": {"0": OffsetRange(7, 9)}}
    assert list(_out_of_range._find(ranges, options_of(broker))) == []


def test_the_overflow_of_a_function() -> None:
    """Only an error of Spark says that a timestamp is out of range, not the error of a user's function."""
    assert is_out_of_range(RuntimeError(OVERFLOW))
    assert not is_out_of_range(PipelineFailed(f"the function raised Py4JJavaError: {OVERFLOW}"))


class Consumer:
    """A consumer that returns these messages, and then the end of the partition."""

    def __init__(self, *messages: FakeMessage) -> None:
        end = FakeMessage("t", error=KafkaError(KafkaError._PARTITION_EOF))
        self.messages = [*messages, end]

    def assign(self, partitions: object) -> None:
        """Do nothing."""

    def consume(self, number: int, *, timeout: float) -> list[FakeMessage]:
        """Return the next message."""
        del number, timeout
        return [self.messages.pop(0)]


def test_a_refused_group() -> None:
    """A client that may read the topic needs no rights on a group."""
    refused = FakeMessage(error=KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    record = FakeMessage("t", "x", offset=0)
    consumer: Any = Consumer(refused, record)
    assert list(_out_of_range._read(consumer, "t", "0", OffsetRange(0, 4))) == [record]


def test_a_refused_topic() -> None:
    """An error of the topic is raised."""
    consumer: Any = Consumer(FakeMessage("t", error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)))
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        list(_out_of_range._read(consumer, "t", "0", OffsetRange(0, 4)))
