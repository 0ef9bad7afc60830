"""Reads records with timestamps that Spark's Kafka source cannot convert.

If a batch contains such a record, Spark's source cannot read any record of the batch. Spark converts
milliseconds to microseconds in 64 bits, so timestamps beyond `_MOST` milliseconds overflow. For example, a
producer may send nanoseconds instead of milliseconds; brokers before Kafka 4.0 accept such records. So
librdkafka reads these records. In each partition, librdkafka also reads all records between the first and the
last of these records.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudevents_kafka.message_headers import UnreadHeaders, headers_of
from cloudevents_kafka.spark.kafka_settings import NoCounterpart, librdkafka_settings
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.notes import OffsetRange, OffsetRanges, iter_partitions

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message
    from pyspark.sql import DataFrame, SparkSession

_MOST: Final = (2**63 - 1) // 1000
_MOST_BYTES: Final = 64 << 20  # of records that this process reads
_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_OVERFLOW: Final = re.compile(r"ArithmeticException: long overflow")


class _Found(NamedTuple):
    """The records of a partition from the first to the last record whose timestamp is out of range."""

    topic: str
    partition: str
    messages: list[Message]

    @property
    def offsets(self) -> OffsetRange:
        return OffsetRange(self.messages[0].offset() or 0, (self.messages[-1].offset() or 0) + 1)


def is_out_of_range(error: Exception) -> bool:
    """Return whether Spark could not convert a timestamp."""
    return _OVERFLOW.search(str(error)) is not None


def read_out_of_range(
    spark: SparkSession,
    offsets: OffsetRanges,
    options: Callable[[OffsetRanges], Mapping[str, str]],
    warn: Callable[[str], None],
) -> DataFrame:
    """Return the records of a batch, with a null timestamp where Spark cannot convert the timestamp.

    The argument of the function ``options`` is offsets; the function returns the options with which Spark
    reads these offsets. Raises `PipelineFailed` if librdkafka cannot read the records. Also raises
    `PipelineFailed` if the records of one partition, from the first timestamp out of range on, are too large
    together.
    """
    found = list(_find(offsets, options(offsets)))
    for part in found:
        first = part.messages[0]
        warn(
            f"{part.topic}[{part.partition}]@{first.offset()} must have a timestamp in milliseconds, got "
            f"{first.timestamp()[1]}; the column timestamp is null for such records"
        )
    frames = [_frame(spark, part.messages, warn) for part in found]
    sides = filter(None, (side(offsets, found) for side in (_before, _after)))
    frames += [spark.read.format("kafka").options(**options(ranges)).load() for ranges in sides]
    records, *more = frames
    for frame in more:
        records = records.unionByName(frame)
    return records


def _find(offsets: OffsetRanges, options: Mapping[str, str]) -> Iterator[_Found]:
    from confluent_kafka import Consumer, KafkaException

    try:
        settings = librdkafka_settings(options)
        consumer = Consumer(
            {
                **settings,
                "group.id": "cloudevents-kafka",
                "enable.auto.commit": False,
                "isolation.level": options["kafka.isolation.level"],
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        with closing(consumer):
            for topic, partition, range_ in iter_partitions(offsets):
                if messages := _between(consumer, topic, partition, range_):
                    yield _Found(topic, partition, messages)
    except (NoCounterpart, KafkaException) as error:
        raise PipelineFailed(
            "a record of the batch has a timestamp that Spark cannot convert, so librdkafka must read the "
            f"batch, but it cannot: {error}. Correct the settings, or the producer"
        ) from error


def _between(consumer: Consumer, topic: str, partition: str, offsets: OffsetRange) -> list[Message]:
    """Return the records from the first to the last record whose timestamp is out of range."""
    kept: list[Message] = []
    last = size = 0
    for message in _read(consumer, topic, partition, offsets):
        if abs(message.timestamp()[1]) > _MOST:
            last = len(kept) + 1
        elif not kept:
            continue
        kept.append(message)
        size += len(message)
        if size > _MOST_BYTES:
            raise PipelineFailed(
                f"{topic}[{partition}]@{kept[0].offset()} and later records must have timestamps in "
                f"milliseconds, got {kept[0].timestamp()[1]}, with more than {_MOST_BYTES >> 20} MB between "
                "the first and the last in one batch. Read fewer records at a time (--max-records)"
            )
    return kept[:last]


def _read(consumer: Consumer, topic: str, partition: str, offsets: OffsetRange) -> Iterator[Message]:
    """Yield the records of a partition with these offsets."""
    from confluent_kafka import KafkaException, TopicPartition

    consumer.assign([TopicPartition(topic, int(partition), offsets.start)])
    deadline = time.monotonic() + _SECONDS
    while True:
        # If `consume` returns fewer records than requested, the timeout has passed.
        messages = consumer.consume(1000, timeout=_POLL_SECONDS)
        if messages:
            deadline = time.monotonic() + _SECONDS
        elif time.monotonic() > deadline:
            raise PipelineFailed(
                f"the broker of {topic}[{partition}] has not answered for {_SECONDS:.0f} s; start again"
            )
        for message in messages:
            error = message.error()
            if error is not None and error.name() != "_PARTITION_EOF":
                raise KafkaException(error)
            if error is not None or (message.offset() or 0) >= offsets.end:
                return
            yield message


def _before(offsets: OffsetRanges, found: list[_Found]) -> OffsetRanges:
    """Return the offsets before the records that were found."""
    firsts = {(part.topic, part.partition): part.offsets.start for part in found}
    return _ranges(offsets, lambda place, range_: OffsetRange(range_.start, firsts.get(place, range_.end)))


def _after(offsets: OffsetRanges, found: list[_Found]) -> OffsetRanges:
    """Return the offsets after the records that were found."""
    ends = {(part.topic, part.partition): part.offsets.end for part in found}
    return _ranges(offsets, lambda place, range_: OffsetRange(ends.get(place, range_.end), range_.end))


def _ranges(
    offsets: OffsetRanges, change: Callable[[tuple[str, str], OffsetRange], OffsetRange]
) -> OffsetRanges:
    changed: dict[str, dict[str, OffsetRange]] = {}
    for topic, partition, range_ in iter_partitions(offsets):
        new = change((topic, partition), range_)
        if new.start < new.end:
            changed.setdefault(topic, {})[partition] = new
    return changed


def _frame(spark: SparkSession, messages: list[Message], warn: Callable[[str], None]) -> DataFrame:
    """Return records with the columns of Spark's Kafka source."""
    from cloudevents_kafka.spark.schema import HEADERS

    names = ("key", "value", "topic", "partition", "offset", "millis", "timestampType", "headers")
    types = ("binary", "binary", "string", "int", "bigint", "bigint", "int", HEADERS.simpleString())
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in zip(names, types, strict=True))
    rows = spark.createDataFrame([_row(message, warn) for message in messages], schema)
    return rows.selectExpr(
        *(f"`{name}`" for name in names[:5]),
        "timestamp_millis(millis) AS `timestamp`",
        *(f"`{name}`" for name in names[6:]),
    )


def _row(message: Message, warn: Callable[[str], None]) -> tuple[Any, ...]:
    type_, millis = message.timestamp()
    headers = headers_of(message)
    if type(headers) is UnreadHeaders:
        warn(
            f"{message.topic()}[{message.partition()}]@{message.offset()}: {headers.reason}; "
            "the column headers is null for such records"
        )
    return (
        message.key(),
        message.value(),
        message.topic(),
        message.partition(),
        message.offset(),
        millis if abs(millis) <= _MOST else None,
        max(0, type_ - 1),  # librdkafka counts from 1, and 0 stands for none
        headers or None,
    )
