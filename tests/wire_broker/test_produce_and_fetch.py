"""Produce, Fetch and ListOffsets, as all releases answer them."""

from __future__ import annotations

import gzip
import struct
import time
import zlib

import pytest

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.fetch import FetchRequest
from cloudevents_kafka.protocol.messages.produce import InitProducerIdRequest
from cloudevents_kafka.protocol.records import Batches, Codec, Record, encode_batch, encode_message_set
from tests.support.cases import each
from tests.support.wire import (
    Wire,
    eventually,
    fetch,
    fetched,
    list_offsets,
    meanwhile,
    only,
    produce,
    produced,
)
from tests.support.wire_broker import Settings, WireBroker

RECORDS = [Record(key=None, value=b"one"), Record(key=b"k", value=b""), Record(key=b"", value=None)]


@pytest.fixture
def old():
    with WireBroker("0.8.2") as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture
def new():
    with WireBroker("4.3") as broker:
        broker.create_topic("t")
        yield broker


@each(
    ("release", "version", "magic"),
    [
        ("0.8.2", 0, 0),
        ("0.9", 1, 0),
        ("0.10", 2, 1),
        ("0.10", 0, 0),
        ("3.9", 2, 1),
        ("3.9", 0, 0),
        ("3.9", 3, 2),
        ("4.3", 13, 2),
    ],
)
@each("codec", [Codec.NONE, Codec.GZIP])
def test_records_are_fetched_with_the_brokers_offsets(release, version, magic, codec):
    """Records produced in each version are fetched with the offsets of the log."""
    sent = (
        encode_batch(RECORDS, codec)
        if magic == 2
        else encode_message_set(RECORDS, magic, codec, base_offset=70)
    )
    with WireBroker(release) as broker, Wire(next(iter(broker.nodes))) as wire:
        broker.create_topic("t")
        ids = {"topic": "", "id": broker.topic_id("t")} if version == 13 else {"topic": "t", "id": None}
        request = produce(sent, topic=ids["topic"])
        if ids["id"]:
            request.topic_data[0].topic_id = ids["id"]
        assert produced(wire.ask(request, version)) == (ErrorCode.NONE, 0)
        assert produced(wire.ask(request, version)) == (ErrorCode.NONE, 3)
        newest = 4 if release in {"3.9", "4.3"} else 3 if release == "0.10" else 0
        for requested in range(4 if release == "4.3" else 0, newest + 1):
            row = fetched(wire.ask(fetch(), requested))
            got = list(Batches(row.records).records())
            assert (row.error_code, row.high_watermark) == (ErrorCode.NONE, 6)
            assert [(r.offset, r.key, r.value) for r in got] == [
                (i, RECORDS[i % 3].key, RECORDS[i % 3].value) for i in range(6)
            ]


@each(
    ("records", "code"),
    [
        (b"", ErrorCode.NONE),
        (encode_message_set(RECORDS[:1], 0)[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE),
        (encode_message_set(RECORDS[:1], 0)[:-1], ErrorCode.NONE),
        (
            encode_message_set(RECORDS[:1], 0).replace(b"\0\0\0\x11", b"\xff\xff\xff\xff"),
            ErrorCode.CORRUPT_MESSAGE,
        ),
        (encode_message_set([Record(value=bytes(2000))], 0), ErrorCode.MESSAGE_TOO_LARGE),
        (encode_message_set(RECORDS, 1, Codec.GZIP), ErrorCode.UNKNOWN_SERVER_ERROR),
        (encode_batch(RECORDS), ErrorCode.CORRUPT_MESSAGE),
    ],
    ids=["empty", "crc", "cut", "negative size", "too large", "gzip of magic 1", "batch"],
)
def test_a_bad_message_set_is_refused_and_nothing_is_appended(records, code):
    """A set that is malformed, too large or in a newer format has its error code, and offset -1."""
    with WireBroker("0.8.2", settings=Settings(max_message_bytes=1000)) as broker:
        broker.create_topic("t")
        with Wire(broker.nodes[0]) as wire:
            assert produced(wire.ask(produce(records), 0)) == (code, -1)
            assert broker.records("t") == []


@each(
    ("records", "code"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (encode_batch(RECORDS)[:-1] + b"x", ErrorCode.CORRUPT_MESSAGE),
        (encode_batch(RECORDS)[:-1], ErrorCode.INVALID_RECORD),
        (encode_batch(RECORDS) * 2, ErrorCode.INVALID_RECORD),
        (encode_message_set(RECORDS, 1), ErrorCode.INVALID_RECORD),
        (encode_batch([Record(value=bytes(2000))]), ErrorCode.MESSAGE_TOO_LARGE),
        (encode_batch(RECORDS, is_control=True), ErrorCode.INVALID_RECORD),
    ],
    ids=["empty", "crc", "cut", "two", "message set", "too large", "control"],
)
def test_a_bad_batch_is_refused_and_nothing_is_appended(records, code):
    """Bytes other than one complete producer batch have their error code, and offset -1."""
    with WireBroker("4.3", settings=Settings(max_message_bytes=1000)) as broker:
        broker.create_topic("t")
        with Wire(broker.nodes[0]) as wire:
            assert produced(wire.ask(produce(records), 3)) == (code, -1)
            assert broker.records("t") == []


def test_acks_decide_the_response(old, new):
    """Acks 0 has no response; 2 times out on 0.8 and is refused later; an error with acks 0 closes."""
    data = encode_message_set(RECORDS[:1], 0)
    with Wire(old.nodes[0]) as wire:
        wire.send(produce(data, acks=0), 0)
        assert produced(wire.ask(produce(data), 0)) == (ErrorCode.NONE, 1)
        began = time.monotonic()
        assert produced(wire.ask(produce(data, acks=2, timeout_ms=60), 0)) == (ErrorCode.REQUEST_TIMED_OUT, 2)
        assert time.monotonic() - began >= 0.06
        wire.send(produce(data, acks=0, topic="nowhere"), 0)
        assert wire.is_closed()
    with Wire(new.nodes[0]) as wire:
        assert produced(wire.ask(produce(encode_batch(RECORDS), acks=2), 3)) == (
            ErrorCode.INVALID_REQUIRED_ACKS,
            -1,
        )


def test_requests_on_one_connection_are_answered_in_order(new):
    """Ten requests sent at once are answered in the order of sending."""
    with Wire(new.nodes[0]) as wire:
        ids = [wire.send(produce(encode_batch(RECORDS)), 3) for _ in range(10)]
        got = [Wire.decoded(produce(b""), 3, wire.frame()) for _ in ids]
        assert [id for id, _ in got] == ids
        assert [produced(response)[1] for _, response in got] == list(range(0, 30, 3))


def _batch(sequence, count=1, *, epoch=0, id=7):
    return encode_batch(
        [Record(value=b"v")] * count, producer_id=id, producer_epoch=epoch, base_sequence=sequence
    )


def test_sequence_numbers_detect_gaps_and_duplicates(new):
    """A repeated batch has its first offset; gaps, overlaps and forgotten batches are 45, an old epoch 47."""
    with Wire(new.nodes[0]) as wire:

        def send(*batch, **more):
            return produced(wire.ask(produce(_batch(*batch, **more)), 3))

        assert [send(0, 2), send(2, 2)] == [(0, 0), (0, 2)]
        assert [send(0, 2), send(2, 2)] == [(0, 0), (0, 2)]
        assert send(5) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert [send(4 + i) for i in range(5)] == [(ErrorCode.NONE, 4 + i) for i in range(5)]
        assert send(0, 2) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert send(8, 2) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert send(3, epoch=1) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert send(0, epoch=1) == (ErrorCode.NONE, 9)
        assert send(9) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
        assert send(30, id=8) == (ErrorCode.NONE, 10)
        assert send(0x7FFFFFFF, id=9) == (ErrorCode.NONE, 11)
        assert send(0, id=9) == (ErrorCode.NONE, 12)
    assert len(new.records("t")) == 13


def test_producer_ids_are_unique(new):
    """A producer gets a new id, also if it has one; transactional ids are refused for good."""
    with Wire(new.nodes[0]) as wire:

        def init(**more):
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
            for name, value in more.items():
                setattr(request, name, value)
            got = wire.ask(request, 4)
            return got.error_code, got.producer_id, got.producer_epoch

        first, second = init(), init()
        assert first[::2] == second[::2] == (0, 0)
        assert first[1] != second[1]
        assert init(producer_id=first[1], producer_epoch=3)[1] > second[1]
        assert init(transactional_id="x")[0] == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@each("version", [0, 1, 2])
def test_an_old_fetch_is_cut_at_its_size(version):
    """Before version 3 the last message is cut anywhere, also if it is the first."""
    with WireBroker("0.10") as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("t")
        wire.ask(produce(encode_message_set(RECORDS, 0)), 0)
        whole = fetched(wire.ask(fetch(), version)).records
        for limit in (0, 1, 11, 31, 45, len(whole) - 1):
            assert fetched(wire.ask(fetch(partition_bytes=limit), version)).records == whole[:limit]


def test_from_version_3_on_the_first_message_is_complete(new):
    """KIP-74: the first message may exceed the limit; from version 4 on no batch is cut."""
    with WireBroker("0.10") as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("t")
        wire.ask(produce(encode_message_set(RECORDS, 1)), 2)
        whole = fetched(wire.ask(fetch(), 3)).records
        first = Batches(whole)
        size = next(iter(first)).end
        assert fetched(wire.ask(fetch(partition_bytes=1), 3)).records == whole[:size]
        assert fetched(wire.ask(fetch(partition_bytes=size + 5), 3)).records == whole[: size + 5]
    with Wire(new.nodes[0]) as wire:
        for _ in range(3):
            wire.ask(produce(encode_batch(RECORDS)), 3)
        batch = len(encode_batch(RECORDS))
        for limit, batches in ((1, 1), (batch, 1), (2 * batch - 1, 1), (2 * batch, 2), (10_000, 3)):
            assert len(fetched(wire.ask(fetch(partition_bytes=limit), 4)).records) == batches * batch
            assert len(fetched(wire.ask(fetch(max_bytes=limit), 4)).records) == batches * batch


def test_the_size_of_a_response_is_limited(new):
    """The limit counts all partitions; only the first batch may exceed it."""
    new.create_topic("u")
    with Wire(new.nodes[0]) as wire:
        for topic in ("t", "u"):
            wire.ask(produce(encode_batch(RECORDS), topic=topic), 3)
        both = FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=1, topics=[*fetch().topics, *fetch(topic="u").topics]
        )
        sizes = [len(only(topic.partitions).records) for topic in wire.ask(both, 4).responses]
        assert sizes == [len(encode_batch(RECORDS)), 0]


def test_a_fetch_from_the_middle_of_a_batch_returns_all_of_it(new):
    """Entries are complete, from the one that contains the offset on."""
    with Wire(new.nodes[0]) as wire:
        wire.ask(produce(encode_batch(RECORDS)), 3)
        wire.ask(produce(encode_batch(RECORDS)), 3)
        for offset, first in ((0, 0), (2, 0), (3, 3), (5, 3)):
            data = fetched(wire.ask(fetch(offset), 4)).records
            assert next(Batches(data).records()).offset == first


def test_offsets_outside_the_log_are_an_error(new):
    """Error 1 before the start and after the end; at the end the response is empty."""
    with Wire(new.nodes[0]) as wire:
        wire.ask(produce(encode_batch(RECORDS)), 3)
        wire.ask(produce(encode_batch(RECORDS)), 3)
        new.delete_records("t", 0, 3)
        rows = [fetched(wire.ask(fetch(offset), 4)) for offset in (-1, 2, 3, 6, 7)]
        assert [row.error_code for row in rows] == [
            ErrorCode.OFFSET_OUT_OF_RANGE,
            ErrorCode.OFFSET_OUT_OF_RANGE,
            ErrorCode.NONE,
            ErrorCode.NONE,
            ErrorCode.OFFSET_OUT_OF_RANGE,
        ]
        assert [len(row.records) > 0 for row in rows] == [False, False, True, False, False]
        assert [o.offset for o in _offsets(wire, -2, -1)] == [3, 6]


def test_a_fetch_waits_for_bytes_an_error_or_its_timeout(new):
    """Min bytes 0 does not wait; else records, a moved leader or the timeout end the wait."""
    with Wire(new.nodes[0]) as wire, Wire(new.nodes[0]) as other:
        began = time.monotonic()
        wire.ask(fetch(wait_ms=5000, min_bytes=0), 4)
        assert time.monotonic() - began < 4
        wire.ask(fetch(wait_ms=80, min_bytes=1), 4)
        assert time.monotonic() - began >= 0.08
        with meanwhile(lambda: wire.ask(fetch(wait_ms=5000, min_bytes=100), 4)) as got:
            other.ask(produce(encode_batch(RECORDS[:1])), 3)
            time.sleep(0.05)
            assert got == []
            other.ask(produce(encode_batch(RECORDS)), 3)
        assert len(list(Batches(fetched(got[0]).records).records())) == 4
        with meanwhile(lambda: wire.ask(fetch(4, wait_ms=5000, min_bytes=1), 4)) as got:
            assert eventually(
                lambda: new.calls(ApiKey.FETCH)[-1].message.topics[0].partitions[0].fetch_offset == 4
            )
            new.move_leader("t", 0, -1)
        assert fetched(got[0]).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert time.monotonic() - began < 4


def test_bytes_over_the_limit_of_a_partition_do_not_end_the_wait(new):
    """Min bytes counts the bytes that the response may have, not those of the log."""
    with Wire(new.nodes[0]) as wire:
        wire.ask(produce(encode_batch(RECORDS)), 3)
        began = time.monotonic()
        wire.ask(fetch(partition_bytes=10, min_bytes=20, wait_ms=80), 4)
        assert time.monotonic() - began >= 0.08


def test_an_empty_wrapper_appends_nothing(old):
    """A compressed set without messages is accepted, and appends nothing."""
    body = b"\0\1" + struct.pack(">ii", -1, len(gzip.compress(b""))) + gzip.compress(b"")
    wrapper = struct.pack(">qiI", 0, 4 + len(body), zlib.crc32(body)) + body
    with Wire(old.nodes[0]) as wire:
        assert produced(wire.ask(produce(wrapper), 0)) == (ErrorCode.NONE, -1)
        assert old.records("t") == []


def test_fetch_sessions_are_declined(new):
    """A request for a session gets the session id 0, and one with a session id error 70."""
    with Wire(new.nodes[0]) as wire:
        assert wire.ask(fetch(session_epoch=0), 7).session_id == 0
        assert (
            wire.ask(fetch(session_id=5, session_epoch=1), 7).error_code
            == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        )


def test_an_unknown_topic_id_is_an_error(new):
    """The error is 100."""
    with Wire(new.nodes[0]) as wire:
        request = fetch(topic="")
        request.topics[0].topic_id = new.topic_id("t")
        assert fetched(wire.ask(request, 13)).error_code == ErrorCode.NONE
        request.topics[0].topic_id = type(new.topic_id("t"))(int=5)
        assert fetched(wire.ask(request, 13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def _offsets(wire, *timestamps, version=1):
    return [
        only(only(wire.ask(list_offsets(timestamp), version).topics).partitions) for timestamp in timestamps
    ]


def test_offsets_are_found_by_timestamp(new):
    """The first record at or after it; -1 if all are older; -3 is the record with the latest timestamp."""
    records = [Record(value=b"", timestamp=time) for time in (1000, 3000, 2000)]
    with Wire(new.nodes[0]) as wire:
        wire.ask(produce(encode_batch(records)), 3)
        found = [(row.timestamp, row.offset) for row in _offsets(wire, 0, 1001, 3000, 3001)]
        assert found == [(1000, 0), (3000, 1), (3000, 1), (-1, -1)]
        assert [(row.timestamp, row.offset) for row in _offsets(wire, -3, version=7)] == [(3000, 1)]
        assert [row.leader_epoch for row in _offsets(wire, -1, version=4)] == [0]


def test_version_0_lists_the_beginnings_of_segments():
    """The newest segment first, with the end before it for -1, up to the requested number."""
    with WireBroker("0.8.2", settings=Settings(segment_bytes=70)) as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("t")
        for _ in range(3):
            wire.ask(produce(encode_message_set(RECORDS, 0)), 0)

        def ask(timestamp, max_number=100):
            topic = only(wire.ask(list_offsets(timestamp, max_number=max_number), 0).topics)
            return only(topic.partitions).old_style_offsets

        assert ask(-1) == [9, 8, 6, 4, 2, 0]
        assert ask(-1, max_number=2) == [9, 8]
        assert ask(-2) == [0]
        assert ask(1) == []
        assert ask(int(time.time() * 1000) + 1000) == [8, 6, 4, 2, 0]
