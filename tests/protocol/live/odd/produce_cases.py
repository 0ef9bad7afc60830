"""Odd requests of Produce and InitProducerId."""

from __future__ import annotations

import time
import uuid

from cloudevents_kafka.protocol.messages.produce import InitProducerIdRequest, ProduceRequest
from cloudevents_kafka.protocol.records import Codec
from cloudevents_kafka.protocol.records.compression import compress

from .batches import batch, changed, message_changed, messages, numbered, produce, with_body
from .fetch_cases import fetch

NEW, OLD = "3-12", "0-2"  # the versions of record batches with topics by name, and those of message sets


# --- sequence numbers ---


def overlapping_sequence(ask):
    topic = ask.topic()
    for first, count in ((0, 3), (2, 3), (1, 1), (0, 2)):
        yield ask(produce(topic, numbered(first, count)), NEW)


def gap_in_sequence(ask):
    topic = ask.topic()
    for first in (0, 5, 2_147_483_647):
        yield ask(produce(topic, numbered(first)), NEW)


def first_sequence_is_not_0(ask):
    topic = ask.topic()
    for first in (7, 8, 7, 0):
        yield ask(produce(topic, numbered(first)), NEW)


def repeated_sequence(ask):
    topic = ask.topic()
    for first in (0, 0, 1, 0, 2, 3, 4, 5, 6, 2, 0):
        yield ask(produce(topic, numbered(first)), NEW)


def epochs_of_a_producer(ask):
    topic = ask.topic()
    for epoch, first in ((1, 0), (0, 1), (2, 5), (2, 0), (1, 0), (3, 0), (3, 1)):
        yield ask(produce(topic, numbered(first, epoch=epoch)), NEW)


def sequence_without_producer(ask):
    topic = ask.topic()
    for fields in (
        {"producer_id": -1, "base_sequence": 0, "producer_epoch": 0},
        {"producer_id": 9, "base_sequence": -1, "producer_epoch": 0},
        {"producer_id": 9, "base_sequence": 0, "producer_epoch": -1},
        {"producer_id": -7, "base_sequence": 0, "producer_epoch": 0},
    ):
        yield ask(produce(topic, changed(batch(), **fields)), NEW)


# --- codecs ---


def zstd_before_version_7(ask):
    topic = ask.topic()
    for versions in ("3-6", "7-12"):
        yield ask(produce(topic, batch(codec=Codec.ZSTD)), versions)


def unknown_codecs(ask):
    topic = ask.topic()
    for codec in (5, 6, 7):
        yield ask(produce(topic, changed(batch(), attributes=codec)), NEW)


def compressed_garbage(ask):
    topic = ask.topic()
    for codec in (1, 2, 3):
        yield ask(produce(topic, changed(with_body(batch(), b"garbage" * 4), attributes=codec)), NEW)


def compressed_nothing(ask):
    topic = ask.topic()
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        data = with_body(batch(), compress(b"", codec))
        yield ask(produce(topic, changed(data, attributes=int(codec))), NEW)


# --- transactions ---


def transactional_batch_without_id(ask):
    topic = ask.topic()
    yield ask(produce(topic, numbered(0, is_transactional=True)), NEW)


def control_batch(ask):
    topic = ask.topic()
    yield ask(produce(topic, numbered(0, is_control=True)), NEW)


# --- the batch ---


def no_records(ask):
    topic = ask.topic()
    yield ask(produce(topic, b""), NEW)


def two_batches(ask):
    topic = ask.topic()
    yield ask(produce(topic, batch() + batch()), NEW)


def message_set_as_batch(ask):
    topic = ask.topic()
    for magic in (0, 1):
        yield ask(produce(topic, messages(magic=magic)), "7-12")


def wrong_checksum(ask):
    topic = ask.topic()
    yield ask(produce(topic, changed(batch(), crc=1)), NEW)


def wrong_counts(ask):
    topic = ask.topic()
    for fields in (
        {"count": 0},
        {"count": -1},
        {"count": 2},
        {"count": 2, "last_offset_delta": 1},
        {"last_offset_delta": 1},
        {"last_offset_delta": -1},
        {"count": 0, "last_offset_delta": 5},
    ):
        yield ask(produce(topic, changed(batch(), **fields)), NEW)


def wrong_sizes(ask):
    topic = ask.topic()
    for size in (0, -1, 13, 48, 49, 1_000_000):
        yield ask(produce(topic, changed(batch(), size=size)), NEW)


def cut_batch(ask):
    topic = ask.topic()
    for kept in (1, 11, 16, 17, 40, 61, -1):
        yield ask(produce(topic, batch()[:kept]), NEW)


def bytes_after_the_batch(ask):
    topic = ask.topic()
    for more in (b"\0", b"\0" * 12, b"\0" * 80):
        yield ask(produce(topic, batch() + more), NEW)


def bytes_after_the_records(ask):
    topic = ask.topic()
    data = batch()
    yield ask(produce(topic, with_body(data, data[61:] + b"\0\0")), NEW)


def unused_attributes(ask):
    topic = ask.topic()
    for bits in (1 << 6, 1 << 7, 1 << 14):
        yield ask(produce(topic, changed(batch(), attributes=bits)), NEW)


def time_of_the_log(ask):
    topic = ask.topic()
    yield ask(produce(topic, changed(batch(timestamp=5), attributes=8)), NEW)


def odd_timestamps(ask):
    topic = ask.topic()
    for fields in (
        {"max_timestamp": 9, "base_timestamp": 5},
        {"max_timestamp": -1, "base_timestamp": 5},
        {"max_timestamp": -7, "base_timestamp": -7},
        {"max_timestamp": 5, "base_timestamp": 5},
    ):
        yield ask(produce(topic, changed(batch(), **fields)), NEW)


def timestamps_of_the_future(ask):
    topic = ask.topic()
    for ahead in (4_102_444_800_000, 1 << 62):
        yield ask(produce(topic, batch(timestamp=ahead)), NEW)


def numbers_that_the_broker_overwrites(ask):
    topic = ask.topic()
    for fields in ({"base_offset": 70}, {"base_offset": -1}, {"leader_epoch": 70}, {"leader_epoch": 0}):
        yield ask(produce(topic, changed(batch(), **fields)), NEW)


def unknown_magic(ask):
    topic = ask.topic()
    for magic in (3, -1, 127):
        yield ask(produce(topic, changed(batch(), magic=magic)), NEW)


def odd_records(ask):
    topic = ask.topic()
    data = batch()
    for body in (
        b"",
        b"\x0c\0\0\0\x01\x00\0",  # the length ends before the headers
        b"\x01\0\0\0\x01\x02v\0",  # a negative length
        b"\x0e\0\0\0\x01\x03v\0",  # the value has the length -2
        b"\x0e\0\0\0\x01\x02v\x01",  # -1 headers
        b"\x10\0\0\0\x01\x02v\0\0",  # a byte after the headers
        b"\x0e\0\0\x08\x01\x02v\0",  # the offset delta 4
        b"\x0e\x55\0\0\x01\x02v\0",  # attributes
        b"\x12\0\0\0\x01\x02v\x02\x01\x01",  # a header without a name
    ):
        yield ask(produce(topic, with_body(data, body)), NEW)


def record_too_large(ask):
    topic = ask.topic()
    for size in (1_048_588 - 70, 1_048_588, 2_000_000):
        yield ask(produce(topic, batch(b"v" * size)), NEW)


def small_limit_of_a_topic(ask):
    topic = ask.topic(max_message_bytes="100")
    for size in (10, 31, 32, 33, 100):
        yield ask(produce(topic, batch(b"v" * size)), NEW)


def no_key_in_a_compacted_topic(ask):
    topic = ask.topic(cleanup_policy="compact")
    for key in (None, b"", b"k"):
        yield ask(produce(topic, batch(key=key)), NEW)
    yield ask(produce(topic, batch(codec=Codec.GZIP)), NEW)


def time_of_the_log_by_setting(ask):
    topic = ask.topic(message_timestamp_type="LogAppendTime")
    yield ask(produce(topic, batch(timestamp=5)), NEW)


# --- topics and partitions ---


def unknown_partitions(ask):
    topic = ask.topic()
    rows = [(number, batch()) for number in (-1, 1, 2_147_483_647)]
    yield ask(produce(topic, *rows), NEW)


def unknown_topics(ask):
    ask.topic()
    for name in (ask.name("absent"), "", "a/b", "x" * 250, "."):
        yield ask(produce(name, batch()), NEW)


def topics_by_id(ask):
    topic = ask.topic()
    for id in (uuid.UUID(int=0), uuid.UUID(int=77), ask.topic_id(topic)):
        yield ask(produce("", batch(), topic_id=id), "13")


def partition_twice(ask):
    topic = ask.topic()
    yield ask(produce(topic, batch(b"1"), batch(b"2", b"3")), NEW)
    yield ask(fetch(topic), "4-12")


def topic_twice(ask):
    topic = ask.topic()
    request = produce(topic, batch(b"1"))
    request.topic_data += produce(topic, batch(b"2", b"3")).topic_data
    yield ask(request, NEW)
    yield ask(fetch(topic), "4-12")


def nothing_to_produce(ask):
    yield ask(ProduceRequest(acks=1, timeout_ms=1, topic_data=[]), "3-13")
    yield ask(produce(ask.topic()), NEW)


def odd_acks(ask):
    topic = ask.topic()
    for acks in (2, -2, 32767, -1):
        yield ask(produce(topic, batch(), acks=acks), NEW)


def odd_timeouts(ask):
    topic = ask.topic()
    for timeout in (-1, 0):
        yield ask(produce(topic, batch(), acks=-1, timeout_ms=timeout), NEW)


def errors_without_acks(ask):
    topic = ask.topic()
    for data in (batch(), changed(batch(), crc=1)):
        yield ask(produce(topic, data, acks=0), NEW)
    yield ask(produce(ask.name("absent"), batch(), acks=0), NEW)


# --- message sets ---


def empty_message_set(ask):
    yield ask(produce(ask.topic(), b""), OLD)


def odd_message_sizes(ask):
    topic = ask.topic()
    for size in (0, -1, 13, 14, 100_000):
        yield ask(produce(topic, message_changed(messages(), 8, ">i", size, crc=False)), OLD)


def odd_magic_of_messages(ask):
    topic = ask.topic()
    for magic in (3, -1):
        yield ask(produce(topic, message_changed(messages(), 16, ">b", magic)), OLD)


def message_checksum(ask):
    topic = ask.topic()
    yield ask(produce(topic, message_changed(messages(), 12, ">I", 1, crc=False)), OLD)


def cut_messages(ask):
    topic = ask.topic()
    data = messages(b"1", b"2")
    for kept in (5, 12, 20, -1):
        yield ask(produce(topic, data[:kept]), OLD)


def messages_of_magic_1_in_version_0(ask):
    topic = ask.topic()
    yield ask(produce(topic, messages(magic=1, timestamp=5)), "0")


def messages_of_magic_0_in_version_2(ask):
    topic = ask.topic()
    yield ask(produce(topic, messages(b"1") + messages(b"2", magic=1, timestamp=5)), "2")


def batch_as_message_set(ask):
    topic = ask.topic()
    yield ask(produce(topic, batch()), OLD)


def acks_of_message_sets(ask):
    topic = ask.topic()
    for acks in (-2, 0, -1):
        yield ask(produce(topic, messages(), acks=acks), OLD)


def messages_to_unknown_partitions(ask):
    yield ask(produce(ask.topic(), (1, messages()), (-1, messages())), OLD)


def compressed_message_sets(ask):
    topic = ask.topic()
    for codec in (Codec.GZIP, Codec.SNAPPY):
        yield ask(produce(topic, messages(b"1", b"2", codec=codec)), OLD)


def large_message(ask):
    topic = ask.topic()
    yield ask(produce(topic, messages(b"v" * 1_100_000)), OLD)


# --- producer ids ---


def first_id(ask):
    """Wait until the broker has producer ids."""
    wanted = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    while ask(wanted, "0-5")["error_code"] == 14:
        time.sleep(0.02)


def odd_producer_ids(ask):
    first_id(ask)
    for fields in (
        {"producer_id": -1, "producer_epoch": -1},
        {"producer_id": 12, "producer_epoch": 3},
        {"producer_id": 12, "producer_epoch": -1},
        {"producer_id": -1, "producer_epoch": 3},
    ):
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0, **fields)
        yield ask(request, "3-5")


def producer_id_of_an_empty_transaction(ask):
    for timeout in (-1, 1000):
        yield ask(InitProducerIdRequest(transactional_id="", transaction_timeout_ms=timeout), "0-5")


def timeout_without_transaction(ask):
    first_id(ask)
    for timeout in (-1, 0, 2_147_483_647):
        yield ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=timeout), "0-5")
