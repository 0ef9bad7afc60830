"""Reads records with timestamps that Spark's Kafka source cannot convert.

If a batch contains a record with such a timestamp, Spark's source cannot read any record of the batch. Spark
converts milliseconds to microseconds in 64 bits, so timestamps beyond `_MOST` milliseconds overflow. For
example, a producer may send nanoseconds instead of milliseconds; brokers before Kafka 4.0 accept such
records. So librdkafka reads the records with such timestamps. Between two records with such timestamps,
librdkafka also reads the other records if they have at most `_MOST_BETWEEN` bytes together. Spark reads the
other records of the batch.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudevents_kafka.message_headers import UnreadHeaders, headers_of
from cloudevents_kafka.spark._java import java_of
from cloudevents_kafka.spark.kafka_settings import NoCounterpart, librdkafka_settings
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.notes import OffsetRange, OffsetRanges, format_ranges, iter_partitions

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message
    from pyspark.sql import DataFrame, SparkSession

_MOST: Final = (2**63 - 1) // 1000
_MOST_BYTES: Final = 64 << 20  # of records that this process passes to Spark at once
_MOST_BETWEEN: Final = 1 << 20  # from a record to the next one that is read with it
_DOUBLED: Final = 16  # after so many parts of a batch, `_MOST_BETWEEN` doubles: each is a read of Spark
_OVERHEAD: Final = 500  # bytes, of the Python objects of a record
_SHARE: Final = 8  # the records that librdkafka reads may fill an eighth of the driver's heap
_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
# SPARK-56243 replaces the first error by the second one.
_OVERFLOW: Final = re.compile(r"ArithmeticException: long overflow|KAFKA_MALFORMED_RECORD_TIMESTAMP")


class _Part(NamedTuple):
    """Records that librdkafka has read from a partition, and the range of their offsets."""

    topic: str
    partition: str
    offsets: OffsetRange
    records: DataFrame


def is_out_of_range(error: Exception) -> bool:
    """Return whether an error of Spark means that a timestamp could not be converted.

    For an overflow in a user's function, the result is false, because this error is a `PipelineFailed`.
    """
    return not isinstance(error, PipelineFailed) and _OVERFLOW.search(str(error)) is not None


def read_out_of_range(
    spark: SparkSession,
    offsets: OffsetRanges,
    options: Callable[[OffsetRanges], Mapping[str, str]],
    warn: Callable[[str], None],
) -> DataFrame:
    """Return the records of a batch, with a null timestamp where Spark cannot convert the timestamp.

    The function ``options`` is called with offsets, and returns the options with which Spark reads these
    offsets. Raises `PipelineFailed` if librdkafka cannot read the records or finds none of them, or if the
    records are too large together for the memory of the driver.
    """
    parts = list(_read_parts(spark, offsets, options(offsets), warn))
    if not parts:
        raise PipelineFailed(
            "Spark stopped with a long overflow, as for a timestamp that it cannot convert, but librdkafka "
            f"finds no such record in {format_ranges(offsets)}: perhaps it has expired. Start again; if the "
            "error returns, correct the expression of the table that overflows, such as a generated column"
        )
    others = _others(offsets, parts)
    frames = [part.records for part in parts]
    frames += [spark.read.format("kafka").options(**options(ranges)).load() for ranges in others]
    records, *more = frames
    for frame in more:
        records = records.unionByName(frame)
    return records


def _read_parts(
    spark: SparkSession, offsets: OffsetRanges, options: Mapping[str, str], warn: Callable[[str], None]
) -> Iterator[_Part]:
    """Yield the records that librdkafka must read; warn once for each partition."""
    size, most = 0, _most_bytes(spark)
    warned: set[tuple[str, str]] = set()
    for topic, partition, messages in _find(offsets, options):
        first, last = messages[0], messages[-1]
        if (topic, partition) not in warned:
            warned.add((topic, partition))
            warn(
                f"{topic}[{partition}]@{first.offset()} must have a timestamp in milliseconds, got "
                f"{first.timestamp()[1]}; the column timestamp is null for such records"
            )
        size += sum(map(_size, messages))
        if size > most:
            raise PipelineFailed(
                f"{topic}[{partition}]@{first.offset()} must have a timestamp in milliseconds, got "
                f"{first.timestamp()[1]}: such records of a batch must have at most {most >> 20} MB in all, "
                "got more; raise this limit, an eighth of the driver's memory (-X spark.driver.memory=4g)",
                final=True,
            )
        range_ = OffsetRange(first.offset() or 0, (last.offset() or 0) + 1)
        yield _Part(topic, partition, range_, _frame(spark, messages, warn))


def _most_bytes(spark: SparkSession) -> int:
    most: int = java_of(spark).java.lang.Runtime.getRuntime().maxMemory()
    return most // _SHARE


def _find(offsets: OffsetRanges, options: Mapping[str, str]) -> Iterator[tuple[str, str, list[Message]]]:
    """Yield lists of records that librdkafka must read, each list with its topic and partition."""
    from confluent_kafka import Consumer, KafkaException

    try:
        settings = librdkafka_settings(options)
        consumer = Consumer(
            {
                **settings,
                "group.id": "cloudevents-kafka",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",  # the first records of the batch may have expired
                "isolation.level": options["kafka.isolation.level"],
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        number = 0
        with closing(consumer):
            for topic, partition, range_ in iter_partitions(offsets):
                for messages in _parts(_read(consumer, topic, partition, range_), number):
                    yield topic, partition, messages
                    number += 1
    except (NoCounterpart, KafkaException) as error:
        raise PipelineFailed(
            "a record of the batch has a timestamp that Spark cannot convert, so librdkafka must read the "
            f"batch, but it cannot: {error}. Correct the settings, or the producer"
        ) from error


def _parts(messages: Iterable[Message], before: int = 0) -> Iterator[list[Message]]:
    """Yield lists of records of a partition; each list begins and ends with a timestamp out of range.

    ``before`` is the number of earlier lists of the batch. The limit `_MOST_BETWEEN` doubles after each 16
    lists, so that a batch has few lists.
    """
    number = before
    part: list[Message] = []
    length = size = between = 0
    for message in messages:
        is_in_range = abs(message.timestamp()[1]) <= _MOST
        if is_in_range and not part:
            continue
        part.append(message)
        bytes_ = _size(message)
        size += bytes_
        if is_in_range:
            between += bytes_
        else:
            length, between = len(part), 0
        if between > _MOST_BETWEEN << number // _DOUBLED or size > _MOST_BYTES:
            yield part[:length]
            number += 1
            part.clear()
            length = size = between = 0
    if part:
        yield part[:length]


def _size(message: Message) -> int:
    """Return the approximate number of bytes of memory that a record needs."""
    headers = headers_of(message)
    message.set_headers(headers)  # because only the first call of `headers_of` finds a wrong name
    values = (message.key(), message.value(), *chain.from_iterable(headers))
    return _OVERHEAD + sum(len(value) for value in values if value)


def _read(consumer: Consumer, topic: str, partition: str, offsets: OffsetRange) -> Iterator[Message]:
    """Yield the records of a partition that have these offsets."""
    from confluent_kafka import KafkaException, TopicPartition

    consumer.assign([TopicPartition(topic, int(partition), offsets.start)])
    deadline = time.monotonic() + _SECONDS
    while True:
        # If `consume` returns fewer records than requested, the timeout has passed.
        consumed = consumer.consume(1000, timeout=_POLL_SECONDS)
        # Errors of the consumer group have no topic. The group is not used, and the client may have no rights
        # on it.
        messages = [message for message in consumed if message.topic() is not None]
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
            if error is not None or not offsets.start <= (message.offset() or 0) < offsets.end:
                return
            yield message


def _others(offsets: OffsetRanges, parts: Iterable[_Part]) -> list[OffsetRanges]:
    """Return the offsets that librdkafka has not read, as arguments for reads of Spark.

    Each read contains at most one range of offsets for each partition.
    """
    ranges: dict[tuple[str, str], list[OffsetRange]] = {}
    for part in parts:
        ranges.setdefault((part.topic, part.partition), []).append(part.offsets)
    reads: list[dict[str, dict[str, OffsetRange]]] = []
    for topic, partition, range_ in iter_partitions(offsets):
        own = ranges.get((topic, partition), [])
        starts = [range_.start, *(part.end for part in own)]
        ends = [*(part.start for part in own), range_.end]
        gaps = [OffsetRange(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
        reads += [{} for _ in gaps[len(reads) :]]
        for read, gap in zip(reads, gaps, strict=False):
            read.setdefault(topic, {})[partition] = gap
    return list(reads)


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
