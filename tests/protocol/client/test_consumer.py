"""`Consumer`: positions, order and errors."""

from __future__ import annotations

import struct
import threading
import time
import tracemalloc

import pytest

from cloudevents_kafka.protocol.client import EARLIEST, LATEST, STORED, UNKNOWN, TopicPartition
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import (
    BrokerError,
    ClientError,
    DeadlineExceeded,
    Malformed,
    ProtocolError,
)
from cloudevents_kafka.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from cloudevents_kafka.protocol.records import Codec, Record, encode_batch
from tests.support.wire import eventually, fill, interrupted, numbers, take
from tests.support.wire_broker import RELEASES, faults

FETCH, METADATA, LIST_OFFSETS = 1, 3, 2
T0, T1 = TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)


@pytest.fixture
def reader(connect, stack):
    """Return a function that creates consumers."""

    def reader(broker, *parts, timeout=5.0, **more):
        consumer = stack.enter_context(
            connect(broker, timeout=timeout).consumer(**{"reset": "earliest", "max_wait": 0.1, **more})
        )
        if parts:
            consumer.assign(parts)
        return consumer

    return reader


@pytest.mark.parametrize("release", RELEASES)
def test_records_are_read_in_order(start, connect, reader, release):
    """Each release returns all records, over many fetches, from any offset on."""
    broker = start(release)
    fill(connect(broker), numbers(60), batch_records=7)
    assert take(reader(broker, T0, partition_bytes=300), 60) == numbers(60)
    assert take(reader(broker, TopicPartition("t", 0, 33)), 27) == numbers(60)[33:]


@pytest.mark.parametrize("release", RELEASES)
def test_a_message_larger_than_a_fetch(start, connect, reader, release):
    """The fetch size grows until the message fits, then shrinks again."""
    broker = start(release)
    values = [b"a", b"x" * 5000, b"b" * 20, b"c"]
    for value in values:
        fill(connect(broker), [value])
    consumer = reader(broker, T0, partition_bytes=100)
    assert take(consumer, 4) == values
    consumer.poll(0.2)
    asked = [call.message.topics[0].partitions[0].partition_max_bytes for call in broker.calls(FETCH)]
    assert asked[-1] == 100


def test_a_message_larger_than_max_bytes(start, connect, reader):
    """The error has the offset, after the records before it; `seek` continues after it."""
    broker = start("0.8.2")
    for value in (b"a", b"x" * 5000, b"b"):
        fill(connect(broker), [value])
    consumer = reader(broker, T0, partition_bytes=100, max_bytes=1000)
    assert take(consumer, 1) == [b"a"]
    with pytest.raises(Malformed, match=r"^t\[0\]@1: a message must not be larger than max_bytes, 1,000"):
        consumer.poll(5)
    consumer.seek(TopicPartition("t", 0, 2))
    assert take(consumer, 1) == [b"b"]


@pytest.mark.parametrize("release", ["0.8.2", "0.9"])
@pytest.mark.parametrize("filled", [range(4), [3]], ids=["all", "last"])
def test_max_bytes_of_old_brokers(start, connect, release, filled):
    """Before 0.10.1 a request has no ``max_bytes``: it names few partitions, and all are read in turn."""
    broker = start(release)
    broker.create_topic("t", 4)
    client = connect(broker)
    for partition in filled:
        fill(client, [b"%d" % partition * 1000] * 60, partition=partition, batch_records=10)
    with connect(broker, max_response_bytes=150_000).consumer(
        max_wait=0.1, partition_bytes=60_000, max_bytes=120_000
    ) as consumer:
        consumer.assign(TopicPartition("t", n, 0) for n in range(4))
        found = take(consumer, 60 * len(filled))
    assert sorted(found) == sorted([b"%d" % n * 1000 for n in filled] * 60)
    assert {len(call.message.topics[0].partitions) for call in broker.calls(FETCH)} <= {1, 2}


def corrupt_t(_call, answer):
    """Turn over the last byte of what is fetched of one topic."""
    response = answer()
    for part in (part for topic in response.responses if topic.topic == "t" for part in topic.partitions):
        if part.records:
            part.records = part.records[:-1] + bytes((part.records[-1] ^ 0xFF,))
    return response


def test_corrupt_records_are_reported_last(broker, client, reader):
    """Earlier records are returned first; the error is raised each time, until `seek`."""
    for value in numbers(3):
        fill(client, [value])
    broker.create_topic("u")
    fill(client, [b"u"], "u")
    broker.faults.add(corrupt_t, api=FETCH, times=None)
    consumer = reader(broker, T0, TopicPartition("u", 0, 0))
    assert take(consumer, 3) in ([b"0", b"1", b"u"], [b"u", b"0", b"1"])
    for _ in range(2):
        with pytest.raises(Malformed, match=r"t\[0\]@2: .*; to read later records, seek"):
            consumer.poll(5)
    fill(client, [b"v"], "u")
    found = []
    while not found:
        try:
            found = consumer.consume(5, 0.5)
        except Malformed:
            continue
    assert [message.value() for message in found] == [b"v"]
    broker.faults.clear()
    fill(client, [b"3"])
    consumer.seek(TopicPartition("t", 0, 3))
    assert take(consumer, 1) == [b"3"]


def test_corrupt_records_of_a_broker(broker, client, reader):
    """A log that the broker cannot read is an error with its offset, until `seek`."""
    fill(client, numbers(1))
    fault = broker.faults.add(faults.error(ErrorCode.CORRUPT_MESSAGE), api=FETCH, times=None)
    consumer = reader(broker, T0)
    for _ in range(2):
        with pytest.raises(BrokerError, match=r"^t\[0\]@0: CORRUPT_MESSAGE .*; to read later records, seek"):
            consumer.poll(5)
    fault.remaining = 0
    fill(client, [b"1"])
    consumer.seek(TopicPartition("t", 0, 1))
    assert take(consumer, 1) == [b"1"]


def test_consume_returns_records_before_an_error(broker, client, reader):
    """The list is returned, and the next call raises the error."""
    for value in numbers(3):
        fill(client, [value])
    broker.faults.add(faults.corrupt_records(), api=FETCH, times=None)
    consumer = reader(broker, T0)
    assert [message.value() for message in consumer.consume(10, 1.0)] == [b"0", b"1"]
    with pytest.raises(Malformed):
        consumer.consume(10, 1.0)


@pytest.mark.parametrize(
    "code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE]
)
def test_a_failing_partition_does_not_affect_others(start, connect, reader, code):
    """Its error is raised, and all records of the other partition are returned."""
    broker = start()
    broker.create_topic("t", 2)
    client = connect(broker)
    fill(client, numbers(5), partition=1)
    broker.faults.add(faults.error(code, "t", 0), api=FETCH, times=None)
    consumer = reader(broker, T1, T0)
    found, errors = [], []
    while len(found) < 5 or not errors:
        try:
            found += [message.value() for message in consumer.consume(2, 0.3)]
        except BrokerError as error:
            errors.append(error)
    assert found == numbers(5)
    assert {error.code for error in errors} == {code}
    assert "t[0]@0" in str(errors[0])


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    ],
)
def test_retriable_errors_are_retried(broker, client, reader, code):
    """The request is repeated after a pause, with fresh metadata if it is stale."""
    fill(client, numbers(3))
    broker.faults.add(faults.error(code), api=FETCH, times=2)
    assert take(reader(broker, T0), 3) == numbers(3)


@pytest.mark.parametrize(
    "fault",
    [faults.drop_before(), faults.drop_after(), faults.truncate(20), faults.delay(0.3)],
    ids=["before", "after", "cut", "late"],
)
def test_lost_connections_are_replaced(broker, client, reader, fault):
    """Reading continues at the same offset."""
    fill(client, numbers(5))
    broker.faults.add(fault, api=FETCH, times=2)
    assert take(reader(broker, T0), 5) == numbers(5)


def test_a_silent_leader_is_retried(broker, client, reader):
    """A fetch without a response is repeated, and `poll` returns in time meanwhile."""
    fill(client, numbers(5))
    broker.faults.add(faults.no_response(), api=FETCH)
    consumer = reader(broker, T0, timeout=2.5)
    began = time.monotonic()
    assert consumer.poll(0.1) is None
    assert time.monotonic() - began < 2
    assert take(consumer, 5) == numbers(5)


def test_a_silent_cluster_delays_poll_once(broker, reader):
    """A call of `poll` looks up leaders until the client's timeout, however many partitions it reads."""
    broker.create_topic("t", 4)
    consumer = reader(broker, *(TopicPartition("t", n, 0) for n in range(4)), timeout=1.0)
    broker.faults.add(faults.error(ErrorCode.NOT_LEADER_OR_FOLLOWER), api=FETCH)
    consumer.poll(0)
    broker.faults.add(faults.no_response(), api=METADATA, times=None)
    before = len(broker.calls(METADATA))
    assert consumer.poll(0.9) is None
    assert len(broker.calls(METADATA)) - before == 1


def test_an_unfinished_response_does_not_block_poll(broker, client, reader):
    """`poll` returns in time though a response has begun."""
    fill(client, numbers(2))
    consumer = reader(broker, T0)
    assert take(consumer, 2) == numbers(2)
    stuck = threading.Event()

    def half(call, answer):
        answer()
        session_socket_send(call)
        stuck.wait(20)

    def session_socket_send(_call):
        for listener in broker._listeners.values():  # no fault sends a part and stays
            for connection in list(listener._open):
                connection.send(struct.pack(">ii", 100, 0))

    broker.faults.add(half, api=FETCH)
    consumer.poll(0.2)
    began = time.monotonic()
    assert consumer.poll(0.2) is None
    assert time.monotonic() - began < 15
    stuck.set()


def test_a_leader_moves(start, connect, reader):
    """The order is kept, and each record is returned once."""
    broker = start(brokers=2)
    broker.create_topic("t")
    client = connect(broker)
    consumer = reader(broker, T0, partition_bytes=200)
    found = []
    for turn in range(4):
        fill(client, [b"%d" % n for n in range(turn * 10, turn * 10 + 10)], batch_records=3)
        found += take(consumer, 5)
        broker.move_leader("t", 0, 1 + turn % 2)
    found += take(consumer, 40 - len(found))
    assert found == numbers(40)


@pytest.mark.parametrize("offset", [0, EARLIEST])
def test_reading_does_not_create_a_topic(broker, client, reader, offset):
    """No request of a consumer or of `offset_at` asks the broker to create a topic, which may be deleted."""
    broker.create_topic("t")
    broker.faults.add(faults.error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t"), api=LIST_OFFSETS, times=2)
    broker.faults.add(faults.error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t"), api=FETCH, times=2)
    consumer = reader(broker, TopicPartition("t", 0, offset))
    assert consumer.poll(0.5) is None
    assert client.offset_at("t", 0, LATEST) == 0
    asked = [call.message for call in broker.calls(METADATA) if call.message.topics]
    assert len(asked) > 3
    assert not any(message.allow_auto_topic_creation for message in asked)


def test_a_partition_without_a_leader_backs_off(start, connect, reader):
    """It takes few requests and little CPU time; other partitions are read meanwhile."""
    broker = start()
    broker.create_topic("t", 2)
    client = connect(broker)
    fill(client, [b"a"], partition=0)
    fill(client, [b"b"], partition=1)
    broker.move_leader("t", 0, -1)
    consumer = reader(broker, T0, T1)
    assert take(consumer, 1) == [b"b"]
    before, work = len(broker.calls(METADATA)), time.process_time()
    assert consumer.poll(0.5) is None
    assert len(broker.calls(METADATA)) - before < 8
    assert time.process_time() - work < 0.25
    broker.move_leader("t", 0, 1)
    assert take(consumer, 1) == [b"a"]


def test_a_partition_without_a_leader_makes_no_other_topic_stale(broker, client, reader):
    """Only the metadata of its own topic is requested again."""
    for topic in ("t", "u"):
        broker.create_topic(topic)
    broker.move_leader("t", 0, -1)
    consumer = reader(broker, T0, TopicPartition("u", 0, 0), max_wait=0.05)
    assert eventually(lambda: consumer.poll(0.05) is None and len(broker.calls(METADATA)) > 6)
    named = [[topic.name for topic in call.message.topics or ()] for call in broker.calls(METADATA)]
    assert named.count(["u"]) == 1


def test_metadata_is_requested_once(broker, client, reader):
    """Without errors metadata is not requested again."""
    fill(client, numbers(5))
    consumer = reader(broker, T0)
    take(consumer, 1)
    before = len(broker.calls(METADATA))
    take(consumer, 4)
    consumer.poll(0.3)
    assert len(broker.calls(METADATA)) == before


@pytest.mark.parametrize(("reset", "values"), [("earliest", [b"3", b"4"]), ("latest", [b"new"])])
@pytest.mark.parametrize("offset", [0, 99])
def test_out_of_range(broker, client, reader, reset, values, offset):
    """After deleted or missing offsets reading continues as ``reset`` says."""
    for value in numbers(5):
        fill(client, [value])
    broker.delete_records("t", 0, 3)
    consumer = reader(broker, TopicPartition("t", 0, offset), reset=reset)
    assert consumer.poll(0.3) is None if reset == "latest" else True
    fill(client, [b"new"])
    assert take(consumer, len(values)) == values


def test_out_of_range_as_an_error(broker, client, reader):
    """With reset "error" each call raises it, until `seek`."""
    fill(client, numbers(2))
    consumer = reader(broker, TopicPartition("t", 0, 99), reset="error")
    for _ in range(2):
        with pytest.raises(BrokerError, match=r"t\[0\]@99: OFFSET_OUT_OF_RANGE"):
            consumer.poll(5)
    consumer.seek(T0)
    assert take(consumer, 2) == numbers(2)


def test_symbolic_offsets(broker, client, reader):
    """Reading begins at the first record, the end, the committed offset, or as ``reset`` says."""
    fill(client, numbers(4))
    assert take(reader(broker, TopicPartition("t", 0, EARLIEST)), 1) == [b"0"]
    assert reader(broker, TopicPartition("t", 0)).poll(2).value() == b"0"
    client.commit("g", {("t", 0): 2})
    assert take(reader(broker, TopicPartition("t", 0, STORED), group="g"), 1) == [b"2"]
    late = reader(broker, TopicPartition("t", 0, LATEST))
    assert late.poll(0.2) is None
    assert late.position([T0]) == [TopicPartition("t", 0, 4)]
    with pytest.raises(BrokerError, match="no offset is committed, and reset is 'error'"):
        reader(broker, TopicPartition("t", 0), reset="error")


def test_pause_and_resume(start, connect, reader):
    """Records of a paused partition are kept in order for `resume`; others are returned."""
    broker = start()
    broker.create_topic("t", 2)
    client = connect(broker)
    fill(client, [b"a%d" % n for n in range(5)], partition=0)
    fill(client, [b"b%d" % n for n in range(5)], partition=1)
    consumer = reader(broker, T0, T1)
    first = consumer.poll(5)
    paused, other = (T0, b"b") if first.partition() == 0 else (T1, b"a")
    consumer.pause([paused])
    assert take(consumer, 5) == [other + b"%d" % n for n in range(5)]
    assert consumer.poll(0.2) is None
    consumer.resume([paused])
    assert take(consumer, 4) == [first.value()[:1] + b"%d" % n for n in range(1, 5)]


def test_seek_and_position(broker, client, reader):
    """`seek` discards fetched records; `position` is after the returned ones."""
    fill(client, numbers(10))
    consumer = reader(broker, T0)
    assert consumer.position([T0, T1]) == [TopicPartition("t", 0, 0), TopicPartition("t", 1, UNKNOWN)]
    assert take(consumer, 3) == numbers(3)
    assert consumer.position([T0]) == [TopicPartition("t", 0, 3)]
    consumer.seek(TopicPartition("t", 0, 8))
    assert take(consumer, 2) == [b"8", b"9"]
    consumer.seek(TopicPartition("t", 0, EARLIEST))
    assert take(consumer, 1) == [b"0"]
    with pytest.raises(ClientError, match=r"t\[1\] must be assigned before a seek"):
        consumer.seek(T1)
    assert consumer.get_watermark_offsets(T0) == (0, 10)


def test_consume_returns_lists(broker, client, reader):
    """A list has up to the requested number of records, and is empty without records."""
    fill(client, numbers(10))
    consumer = reader(broker, T0)
    assert len(consumer.consume(4, 5)) == 4
    assert len(consumer.consume(100, 0.3)) == 6
    assert consumer.consume(5, 0.05) == []
    assert consumer.consume(5, 0) == []
    assert consumer.consume(0) == []


def test_keyboard_interrupt_in_consume(broker, client, reader):
    """The records read before it are returned by the next call."""
    fill(client, numbers(5))
    consumer = reader(broker, T0)
    with interrupted(0.3):
        consumer.consume(100)
    assert consumer.position([T0])[0].offset == 0
    assert take(consumer, 5) == numbers(5)


@pytest.mark.parametrize("parts", [[], [T0]], ids=["nothing", "one"])
def test_waiting_takes_no_cpu_time(broker, client, reader, parts):
    """Without new records `poll` uses little CPU time, and returns in time."""
    client.partitions("t")
    consumer = reader(broker, max_wait=0.5)
    consumer.assign(parts)
    consumer.poll(0.1)
    began, work = time.monotonic(), time.process_time()
    assert consumer.poll(0.6) is None
    assert 0.5 < time.monotonic() - began < 5
    assert time.process_time() - work < 0.2


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_short_timeouts(broker, client, reader, timeout):
    """A `poll` that cannot wait discards nothing."""
    fill(client, [b"x" * 300_000] * 3, batch_bytes=500_000)
    consumer, found = reader(broker, T0), []
    assert eventually(lambda: found.append(consumer.poll(timeout)) or sum(m is not None for m in found) == 3)


# --- transactions ------------------------------------------------------------------------


def batch(offset, value, producer=-1, *, mark=None):
    """A batch of one record; ``mark`` makes it a control batch: 0 aborts, 1 commits."""
    key = None if mark is None else struct.pack(">hh", 0, mark)
    return encode_batch(
        [Record(key=key, value=value, timestamp=1)],
        base_offset=offset,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        is_transactional=producer >= 0,
        is_control=mark is not None,
    )


LOG = (
    batch(0, b"plain")
    + batch(1, b"aborted", 7)
    + batch(2, b"kept", 8)
    + batch(3, b"", 7, mark=0)
    + batch(4, b"again", 7)
    + batch(5, b"", 8, mark=1)
    + batch(6, b"", 7, mark=1)
)


@pytest.mark.parametrize(
    ("committed_only", "values"),
    [(True, [b"plain", b"kept", b"again"]), (False, [b"plain", b"aborted", b"kept", b"again"])],
)
def test_aborted_transactions_are_left_out(broker, client, reader, committed_only, values):
    """Their records and all control records are skipped, and reading continues after them (KIP-98)."""
    client.partitions("t")

    aborted = [AbortedTransaction(producer_id=7, first_offset=1)]

    def script(call):
        asked = call.message.topics[0].partitions[0]
        row = PartitionData(
            partition_index=0,
            error_code=ErrorCode.NONE,
            high_watermark=7,
            last_stable_offset=7,
            aborted_transactions=aborted,  # Redpanda lists them to readers of uncommitted records, too
            records=LOG if asked.fetch_offset == 0 else b"",
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[row])])

    broker.faults.add(faults.script(script), api=FETCH, times=1)
    consumer = reader(broker, T0, committed_only=committed_only)
    assert take(consumer, len(values)) == values
    assert eventually(lambda: consumer.poll(0.05) is None and len(broker.calls(FETCH)) > 1)
    assert broker.calls(FETCH)[1].message.topics[0].partitions[0].fetch_offset == 7
    assert {call.message.isolation_level for call in broker.calls(FETCH)} == {int(committed_only)}


# --- memory ------------------------------------------------------------------------------


def served(broker, client, **logs):
    """Answer fetches of the topic "t" with these bytes, by partition, from their first offset on."""
    broker.create_topic("t", len(logs))
    client.partitions("t")

    def script(call):
        parts = [
            PartitionData(
                partition_index=asked.partition,
                error_code=ErrorCode.NONE,
                high_watermark=1 << 40,
                last_stable_offset=1 << 40,
                records=logs[f"p{asked.partition}"] if asked.fetch_offset < 300_000 else b"",
            )
            for asked in call.message.topics[0].partitions
        ]
        if not any(part.records for part in parts):
            return None
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=parts)])

    broker.faults.add(faults.script(script), api=FETCH, times=None)


@pytest.fixture(scope="module")
def many() -> bytes:
    """A small batch of 100,000 records, from offset 200,000."""
    return encode_batch([Record()] * 100_000, Codec.ZSTD, base_offset=200_000)


@pytest.fixture
def memory():
    """Return a function that returns the most memory used since its last call."""

    def peak():
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        return used

    tracemalloc.start()
    yield peak
    tracemalloc.stop()


def test_a_batch_that_expands_is_decoded_in_slices(broker, client, reader, memory, many):
    """The first record of 100,000 takes the memory of the unpacked bytes, not that of all records."""
    served(broker, client, p0=many)
    consumer = reader(broker, TopicPartition("t", 0, 200_000))
    memory()
    assert consumer.poll(5).offset() == 200_000
    assert memory() < 5_000_000  # 1 MB unpacked; the records are 19 MB
    assert [message.offset() for message in consumer.consume(3000, 5)] == list(range(200_001, 203_001))
    assert memory() < 5_000_000


def test_records_before_the_position_do_not_delay_poll(broker, client, reader, many):
    """Each call decodes a slice; the first records that are returned are those at the position."""
    served(broker, client, p0=many)
    consumer = reader(broker, TopicPartition("t", 0, 250_000))
    assert consumer.poll(0) is None
    polls = 0
    while (message := consumer.poll(0)) is None:
        polls += 1
    assert message.offset() == 250_000
    assert polls >= 50_000 // 2500 - 1


def test_only_one_batch_is_unpacked(broker, client, reader, memory):
    """Partitions that wait or are paused keep what was fetched, not what it expands to."""
    large = encode_batch([Record(value=bytes(2_000_000))] * 2, Codec.ZSTD, base_offset=200_000)
    served(broker, client, p0=large, p1=large, p2=large)
    parts = [TopicPartition("t", n, 200_000) for n in range(3)]
    consumer = reader(broker, *parts)
    memory()
    for _ in parts:
        message = consumer.poll(5)
        consumer.pause([TopicPartition("t", message.partition())])
        del message
    assert memory() < 17_000_000  # unpacked 4 MB, twice for a moment, and two values of 2 MB each
    consumer.resume(parts)
    assert sorted((m.partition(), m.offset()) for m in consumer.consume(3, 5)) == [
        (n, 200_001) for n in range(3)
    ]


@pytest.mark.release  # tests/protocol/records bounds the memory of one record
def test_records_of_many_headers_are_decoded_one_by_one(broker, client, reader, memory, many):
    """A slice ends with a record of very many headers, whose memory is ten times their bytes."""
    many = encode_batch([Record(headers=[("", None)] * 50_000)] * 6, Codec.ZSTD, base_offset=200_000)
    served(broker, client, p0=many)
    consumer = reader(broker, TopicPartition("t", 0, 200_000))
    memory()
    assert consumer.poll(5).offset() == 200_000
    assert memory() < 15_000_000  # unpacked 2 MB; a record has 3.6 MB
    assert [message.offset() for message in consumer.consume(5, 5)] == list(range(200_001, 200_006))


def test_errors_keep_nothing_that_is_unpacked(broker, client, reader, memory):
    """Partitions that wait for their error to be raised do not keep what their batches expand to."""
    broken = encode_batch([Record(value=bytes(4_000_000))], Codec.ZSTD, base_offset=200_000)
    broken = with_count(broken, 2)
    served(broker, client, **{f"p{n}": broken for n in range(10)})
    consumer = reader(broker, *(TopicPartition("t", n, 200_000) for n in range(10)), check_crc=False)
    memory()
    errors = set()
    while len(errors) < 10:
        try:
            consumer.poll(0.2)
        except Malformed as error:
            errors.add(error.path)
    assert memory() < 25_000_000  # each expands to 4 MB, of which there are some copies


def with_count(batch, count):
    """Return a batch whose header has another count of records."""
    return batch[:57] + struct.pack(">i", count) + batch[61:]


@pytest.mark.release
def test_batches_without_records_do_not_delay_poll(broker, client, reader):
    """Batches that have nothing to return are passed over until the timeout, and the next call goes on."""
    marks = [
        with_count(
            encode_batch(
                [Record(key=b"\0\0\0\1", value=bytes(4_000_000))],
                Codec.ZSTD,
                is_control=True,
                base_offset=200_000 + n,
            ),
            1,
        )
        for n in range(500)
    ]
    last = encode_batch([Record(value=b"last")], base_offset=200_500)
    served(broker, client, p0=b"".join(marks) + last)
    consumer = reader(broker, TopicPartition("t", 0, 200_000))
    began, longest, message = time.thread_time(), 0.0, None
    while message is None:
        before = time.thread_time()
        message = consumer.poll(0)
        longest = max(longest, time.thread_time() - before)
    assert message.value() == b"last"
    assert longest < (time.thread_time() - began) / 2


def test_the_unpacked_size_is_limited(broker, client, reader, many):
    """A batch that expands beyond ``max_unpacked_bytes`` is an error with its offset; `seek` goes past it."""
    served(broker, client, p0=many)
    consumer = reader(broker, TopicPartition("t", 0, 200_000), max_unpacked_bytes=100_000)
    for _ in range(2):
        with pytest.raises(
            Malformed,
            match=r"t\[0\]@200000: .*at most 100,000 bytes.*to read later records, seek",
        ):
            consumer.poll(5)
    assert take(reader(broker, TopicPartition("t", 0, 200_000), max_unpacked_bytes=2_000_000), 1) == [None]


def test_the_memory_of_a_response_is_limited(broker, connect, client):
    """A response whose elements would take more than ``max_response_memory`` is refused."""
    client.partitions("t")
    with pytest.raises(ProtocolError, match="must take at most 100 bytes of memory"):
        connect(broker, max_response_memory=100, timeout=0.2).metadata()


def test_the_next_fetch_is_sent_while_records_are_returned(broker, client, reader):
    """The broker works while the last records of a response are returned."""
    fill(client, numbers(2000), batch_records=100)
    consumer = reader(broker, T0)
    assert consumer.poll(5).value() == b"0"
    assert eventually(lambda: len(broker.calls(FETCH)) == 2)
    assert broker.calls(FETCH)[1].message.topics[0].partitions[0].fetch_offset == 2000
    assert take(consumer, 1999) == numbers(2000)[1:]


def test_paused_records_are_kept(broker, client, reader):
    """Records that were decoded when their partition was paused are returned in order after `resume`."""
    fill(client, numbers(1200))
    consumer = reader(broker, T0)
    assert take(consumer, 3) == numbers(3)
    consumer.pause([T0])
    assert consumer.poll(0.1) is None
    assert consumer.position([T0])[0].offset == 3
    consumer.resume([T0])
    assert take(consumer, 1197) == numbers(1200)[3:]
    fill(client, [b"last"])
    assert take(consumer, 1) == [b"last"]


def test_an_error_of_a_paused_partition_is_in_order(broker, client, reader):
    """Records that were fetched already are not returned before the error of earlier data."""
    bad = batch(3000, b"bad")[:-1] + b"?"
    good = encode_batch([Record(value=b"x")] * 3000)
    logs = {(0, 0): good + bad, (0, 3000): bad, (0, 3001): batch(3001, b"later"), (1, 0): batch(0, b"other")}
    broker.create_topic("t", 2)
    client.partitions("t")

    def script(call):
        asked = {(part.partition, part.fetch_offset) for part in call.message.topics[0].partitions}
        rows = [
            PartitionData(
                partition_index=key[0],
                error_code=ErrorCode.NONE,
                high_watermark=4000,
                records=b"" if key == (1, 0) and (0, 0) in asked else logs.get(key, b""),
            )
            for key in asked
        ]
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=rows)])

    broker.faults.add(faults.script(script), api=FETCH, times=None)
    consumer = reader(broker, T0, T1)
    assert take(consumer, 1) == [b"x"]
    consumer.pause([T0])
    assert take(consumer, 1) == [b"other"]
    consumer.resume([T0])
    assert [message.value() for message in consumer.consume(4000, 5)] == [b"x"] * 2999
    with pytest.raises(Malformed, match=r"t\[0\]@3000: .*; to read later records, seek"):
        consumer.poll(5)


# --- leaders -----------------------------------------------------------------------------


@pytest.fixture
def half_silent(start, connect):
    """A cluster whose second broker takes connections and says nothing; it leads the second partition."""
    broker = start(brokers=2)
    broker.create_topic("t", 2)
    broker.move_leader("t", 0, 1)
    broker.move_leader("t", 1, 2)
    client = connect(broker)
    for partition in (0, 1):
        fill(client, numbers(3), partition=partition)
    broker.faults.add(faults.no_response(), times=None, when=lambda call: call.node.id == 2)
    return broker


def test_a_silent_leader_delays_only_its_partitions(half_silent, connect, reader):
    """Other partitions are read while a leader takes connections and says nothing."""
    servers = f"{half_silent.nodes[0].host}:{half_silent.nodes[0].port}"
    consumer = reader(servers, T0, T1, timeout=60.0)
    assert take(consumer, 3, seconds=5) == numbers(3)
    for turn in range(5):
        fill(connect(servers), [b"%d" % turn])
        assert take(consumer, 1, seconds=5) == [b"%d" % turn]


def test_a_leader_that_falls_silent(half_silent, connect, reader):
    """A leader that answered before delays only its partitions, and is read again once it answers."""
    half_silent.faults.clear()
    servers = f"{half_silent.nodes[0].host}:{half_silent.nodes[0].port}"
    consumer = reader(servers, T0, T1, timeout=1.0)
    assert sorted(take(consumer, 6)) == sorted(numbers(3) * 2)
    fault = half_silent.faults.add(faults.no_response(), times=None, when=lambda call: call.node.id == 2)
    found = []
    for turn in range(5):
        fill(connect(servers), [b"%d" % turn])
        found += take(consumer, 1)
    assert found == numbers(5)
    fault.remaining = 0
    fill(connect(half_silent), [b"late"], partition=1)
    assert take(consumer, 1) == [b"late"]


@pytest.mark.parametrize("offset", [EARLIEST, LATEST])
def test_a_silent_leader_does_not_delay_the_first_offsets(half_silent, connect, reader, offset):
    """The first offsets of other partitions are looked up, too, while a leader says nothing."""
    began = time.monotonic()
    consumer = reader(half_silent, *(TopicPartition("t", n, offset) for n in (0, 1)), timeout=30.0)
    assert time.monotonic() - began < 10
    assert consumer.position([T0, T1])[1].offset == UNKNOWN
    fill(connect(half_silent), [b"new"])
    wanted = [*numbers(3), b"new"] if offset == EARLIEST else [b"new"]
    assert take(consumer, len(wanted)) == wanted
    half_silent.faults.clear()
    if offset == EARLIEST:
        assert take(reader(half_silent, TopicPartition("t", 1, EARLIEST)), 3) == numbers(3)


def test_offsets_that_no_leader_says(half_silent, reader):
    """An assignment fails if no first offset is found in time, and what was read before is read on."""
    consumer = reader(half_silent, T0, timeout=1.0)
    with pytest.raises(DeadlineExceeded, match=r"offsets of t\[1\]: not done within 1.0 s"):
        consumer.assign([TopicPartition("t", 1, EARLIEST)])
    assert take(consumer, 3) == numbers(3)


def test_metadata_comes_from_another_broker(half_silent, connect, reader):
    """Metadata that is asked of a broker which has just fallen silent is asked of another one soon."""
    half_silent.faults.clear()
    consumer = reader(half_silent, T0, T1, timeout=30.0)
    assert sorted(take(consumer, 6)) == sorted(numbers(3) * 2)
    half_silent.faults.add(faults.no_response(), times=None, when=lambda call: call.node.id == 2)
    for turn in range(3):
        half_silent.faults.add(faults.error(ErrorCode.NOT_LEADER_OR_FOLLOWER, "t", 0), api=FETCH)
        began = time.monotonic()
        fill(connect(half_silent, timeout=30.0), [b"%d" % turn])
        assert take(consumer, 1) == [b"%d" % turn]
        assert time.monotonic() - began < 5


# --- ends --------------------------------------------------------------------------------


def test_a_closed_consumer_raises(broker, reader):
    """Each call after `close` raises `ClientError`; a second `close` does nothing."""
    consumer = reader(broker, T0)
    consumer.close()
    consumer.close()
    for use in (consumer.poll, consumer.commit, consumer.consume, consumer.unassign, consumer.unsubscribe):
        with pytest.raises(ClientError, match="the consumer is closed"):
            use()


def test_subscribe_and_commit_need_a_group(broker, reader):
    """Calls without a group, patterns, and str instead of a list are refused."""
    consumer = reader(broker, T0)
    with pytest.raises(ClientError, match="a group"):
        consumer.subscribe(["t"])
    with pytest.raises(ClientError, match="need a group"):
        consumer.commit(offsets=[T0])
    for topics in ("t", ["^t.*"]):
        with pytest.raises(ValueError, match="list of names"):
            reader(broker, group="g").subscribe(topics)


def test_keyboard_interrupt_in_poll(broker, client, reader):
    """It is raised at once, and the next call continues."""
    client.partitions("t")
    consumer = reader(broker, T0, max_wait=5)
    began = time.monotonic()
    with interrupted(0.2):
        consumer.poll()
    assert time.monotonic() - began < 4
    fill(client, numbers(3))
    assert take(consumer, 3) == numbers(3)


def test_a_stopped_broker(broker, client, reader):
    """`poll` returns None in time while the broker is down."""
    fill(client, numbers(1))
    consumer = reader(broker, T0)
    assert take(consumer, 1) == [b"0"]
    broker.stop()
    began, work = time.monotonic(), time.process_time()
    assert consumer.poll(0.5) is None
    assert time.monotonic() - began < 10
    assert time.process_time() - work < 0.3


def test_memory_stays_flat(broker, client, reader):
    """A consumer that has read much uses no more memory than one that has read little."""
    fill(client, [b"x" * 1000] * 2000, batch_bytes=20_000)
    consumer = reader(broker, T0, partition_bytes=50_000)
    take(consumer, 200)
    tracemalloc.start()
    for _ in range(2):
        consumer.seek(T0)
        for _ in range(2000):
            consumer.poll(5)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < 1_000_000  # 4 MB went through; what the broker remembers of requests counts too


def test_no_socket_is_left(broker, client, reader):
    """Closing closes all connections."""
    consumer = reader(broker, T0)
    consumer.poll(0.2)
    consumer.close()
    client.close()
    assert eventually(lambda: not any(listener._open for listener in broker._listeners.values()))
