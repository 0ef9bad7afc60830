"""Of the records of a batch, librdkafka reads those that Spark cannot read, and few others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.spark.pipeline import PipelineFailed
from cloudevents_kafka.spark.pipeline.batches import _out_of_range, is_out_of_range, read_out_of_range
from cloudevents_kafka.spark.pipeline.notes import OffsetRange, iter_partitions
from cloudevents_kafka.testing import FakeMessage
from tests.support.header_names import BAD_NAME, event_record, write_batches
from tests.support.wire_broker import WireBroker

MILLIS = 1_790_000_000_000
BETWEEN, MOST = 10, 30


TOPICS = st.dictionaries(
    st.sampled_from(["0", "1"]),
    st.lists(st.tuples(st.sampled_from([MILLIS, MILLIS * 10**6]), st.integers(0, 20)), max_size=30),
    min_size=1,
)


def record(offset: int, millis: int, size: int) -> FakeMessage:
    return FakeMessage("t", bytes(size), offset=offset, timestamp=millis)


def is_bad(record: FakeMessage) -> bool:
    return record.timestamp()[1] != MILLIS


def parts_of(records: Sequence[FakeMessage]) -> list[list[FakeMessage]]:
    return cast("Any", list(_out_of_range._parts(cast("Any", records))))


@given(TOPICS)
def test_each_record_is_read_once(partitions: dict[str, list[tuple[int, int]]]) -> None:
    """Each record that Spark cannot read is in a part; all others are in a part or in what Spark reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_out_of_range, "_MOST_BETWEEN", BETWEEN)
        patch.setattr(_out_of_range, "_MOST_BYTES", MOST)
        patch.setattr(_out_of_range, "_OVERHEAD", 0)
        found: list[_out_of_range._Part] = []
        bad: set[tuple[str, int | None]] = set()
        for partition, drawn in partitions.items():
            records = [record(5 + number, millis, size) for number, (millis, size) in enumerate(drawn)]
            bad |= {(partition, record.offset()) for record in records if is_bad(record)}
            for part in parts_of(records):
                assert is_bad(part[0])
                assert is_bad(part[-1])
                assert sum(map(len, part[:-1])) <= MOST
                range_ = OffsetRange(part[0].offset() or 0, (part[-1].offset() or 0) + 1)
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


def test_parts_are_few() -> None:
    """However many records Spark cannot read, they are in few parts, as Spark reads what is between them."""
    between = [record(0, MILLIS, 3 << 19) for _ in range(1000)]
    records = [each for good in between for each in (record(0, -(2**60), 1), good)]
    assert len(parts_of(records)) <= 96


def test_records_after_the_last_one_are_not_kept() -> None:
    """One timestamp before many records does not make this process read them into its memory."""
    records = [record(0, -(2**60), 1), *(record(number, MILLIS, 1 << 20) for number in range(1, 200))]
    assert parts_of(records) == [records[:1]]


@pytest.mark.parametrize(
    "filled",
    [{"key": bytes(1 << 20)}, {"headers": [("a" * (1 << 19), bytes(1 << 19))]}, {"headers": [("a", None)]}],
    ids=["key", "headers", "many"],
)
def test_all_that_a_record_contains_is_counted(filled: dict[str, Any]) -> None:
    """Keys, headers and the number of records end a part, even if no record has a value."""
    good = [FakeMessage("t", offset=number, timestamp=MILLIS, **filled) for number in range(1, 3000)]
    records = [record(0, -(2**60), 0), *good, record(3000, -(2**60), 0)]
    assert [[record.offset() for record in part] for part in parts_of(records)] == [[0], [3000]]


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


def test_a_wrong_header_name(broker: WireBroker) -> None:
    """The warning about unread headers has the wrong name, although their size was read before."""
    bad = msgspec.structs.replace(event_record(1, BAD_NAME), timestamp=MILLIS * 10**6)
    write_batches(broker.bootstrap_servers, "t", [[bad]])
    ((_, _, messages),) = _out_of_range._find({"t": {"0": OffsetRange(4, 6)}}, options_of(broker))
    warnings: list[str] = []
    assert [_out_of_range._row(message, warnings.append)[-1] for message in messages] == [None, None]
    assert [text.partition(";")[0] for text in warnings] == [
        r"t[0]@5: header names must be UTF-8, got b'ce_\xff'"
    ]


def test_the_overflow_of_a_function() -> None:
    """Only an error of Spark says that a timestamp is out of range, not the error of a user's function."""
    assert is_out_of_range(RuntimeError(OVERFLOW))
    assert is_out_of_range(RuntimeError("[KAFKA_MALFORMED_RECORD_TIMESTAMP] …"))  # SPARK-56243
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
