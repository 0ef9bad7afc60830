"""`Producer`: batches, order, retries and delivery callbacks."""

from __future__ import annotations

import re
import threading
import time

import pytest

from cloudevents_kafka.protocol.client import _accumulator, at_random, round_robin
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import (
    BrokerError,
    ClientError,
    DeadlineExceeded,
    ProtocolError,
    Unsupported,
)
from cloudevents_kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from cloudevents_kafka.protocol.records import Batches
from tests.support.wire import eventually, interrupted, numbers
from tests.support.wire_broker import RELEASES, faults

PRODUCE, METADATA, INIT = 0, 3, 22


class Reports(list):
    """Collects what deliveries report."""

    def __call__(self, error, message):
        assert message.error() is error
        self.append((error, message))

    @property
    def errors(self):
        return [error for error, _ in self]

    @property
    def offsets(self):
        return [message.offset() for _, message in self]


@pytest.fixture
def reports():
    return Reports()


def values(broker, topic="t", partition=0):
    return [record.value for record in broker.records(topic, partition)]


def send(producer, count, reports, topic="t", partition=0):
    for value in numbers(count):
        producer.produce(topic, value, partition=partition, on_delivery=reports)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("acks", [0, 1, -1])
def test_records_arrive_in_order(start, connect, reports, release, acks):
    """On each release and with any acks; callbacks have offsets unless acks is 0."""
    broker = start(release)
    broker.create_topic("t")
    with connect(broker).producer(acks=acks, batch_records=7) as producer:
        send(producer, 50, reports)
        assert producer.flush(10) == 0
    assert reports.errors == [None] * 50
    assert reports.offsets == (list(range(50)) if acks else [-1] * 50)
    assert eventually(lambda: values(broker) == numbers(50))
    assert {call.message.acks for call in broker.calls(PRODUCE)} == {acks}


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compression(broker, client, reports, codec):
    """Each codec is used, and an unknown name is refused."""
    with client.producer(compression=codec) as producer:
        send(producer, 20, reports)
    assert values(broker) == numbers(20)
    with pytest.raises(ValueError, match=r"compression must be one of none, gzip.* got 'rar'"):
        client.producer(compression="rar")


def test_all_fields_of_a_record_arrive(broker, client):
    """Key, value, timestamp, and headers with repeats and nulls; nulls stay nulls."""
    headers = [("a", b"1"), ("a", None), ("b", "text")]
    with client.producer() as producer:
        producer.produce("t", "text", key="k", headers=headers, timestamp=5)
        producer.produce("t")
        producer.produce("t", b"", b"", headers={"x": "y"})
    one, two, three = broker.records("t")
    assert (one.key, one.value, one.timestamp) == (b"k", b"text", 5)
    assert one.headers == [("a", b"1"), ("a", None), ("b", b"text")]
    assert (two.key, two.value, two.headers) == (None, None, [])
    assert time.time() * 1000 - two.timestamp < 10_000
    assert (three.key, three.value, three.headers) == (b"", b"", [("x", b"y")])


@pytest.mark.parametrize(
    ("more", "batches"),
    [({"batch_records": 5}, [5, 5]), ({"batch_bytes": 210}, [5, 5]), ({}, [10])],
    ids=["count", "bytes", "all"],
)
def test_batches_by_count_and_bytes(broker, client, reports, more, batches):
    """A full batch is sent before ``linger`` is over."""
    broker.create_topic("t")
    with client.producer(linger=0.2, **more) as producer:
        send(producer, 10, reports)
        assert producer.flush(5) == 0
        found = [
            int.from_bytes(part.records[57:61], "big")
            for call in broker.calls(PRODUCE)
            for topic in call.message.topic_data
            for part in topic.partition_data
        ]
    assert found == batches


def test_batches_by_time(broker, client, reports):
    """A single record is sent after ``linger``, without `flush`."""
    client.partitions("t")
    with client.producer(linger=1.0) as producer:
        began = time.monotonic()
        producer.produce("t", b"v", on_delivery=reports)
        assert producer.poll(60) == 1
        assert time.monotonic() - began > 0.9
    with client.producer(linger=1000.0) as producer:
        producer.produce("t", b"v", on_delivery=reports)
        assert producer.flush(60) == 0


def test_several_topics_share_a_request(start, connect, reports):
    """Each leader receives one request with all its partitions."""
    broker = start(brokers=2)
    for name in ("t", "u"):
        broker.create_topic(name, 4)
    with connect(broker).producer(linger=0.1) as producer:
        for name in ("t", "u"):
            for partition in range(4):
                producer.produce(name, b"v", partition=partition, on_delivery=reports)
    assert reports.errors == [None] * 8
    assert sorted(call.node.id for call in broker.calls(PRODUCE)) == [1, 2]


def test_a_full_queue_is_a_buffer_error(broker, client, reports):
    """`produce` does not wait; after `poll` the queue has room."""
    with client.producer(queue_records=3, linger=0) as producer:
        send(producer, 3, reports)
        with pytest.raises(BufferError, match=r"the queue is full \(3 records\)"):
            producer.produce("t", b"v")
        assert eventually(lambda: producer.poll(0.1) + len(reports) >= 3)
        producer.produce("t", b"v", on_delivery=reports)
    assert len(reports) == 4
    assert len(values(broker)) == 4


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ],
)
def test_retriable_errors_are_retried(broker, client, reports, code):
    """The records arrive once, in order, and metadata is requested again."""
    broker.faults.add(faults.error(code), api=PRODUCE, times=2)
    with client.producer(batch_records=10) as producer:
        send(producer, 30, reports)
    assert reports.errors == [None] * 30
    assert values(broker) == numbers(30)
    assert len(broker.calls(METADATA)) > 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_lasting_errors_are_reported(broker, client, reports, code):
    """Each callback is called once, with code and partition; later records are sent."""
    broker.faults.add(faults.error(code), api=PRODUCE)
    with client.producer() as producer:
        producer.produce("t", b"lost", on_delivery=reports)
        producer.flush(5)
        producer.produce("t", b"v", on_delivery=reports)
    (error, message), (fine, _) = reports
    assert isinstance(error, BrokerError)
    assert error.code == code
    assert "t[0]" in str(error)
    assert (message.value(), message.offset(), fine) == (b"lost", -1, None)
    assert values(broker) == [b"v"]


@pytest.mark.parametrize("fault", [faults.drop_after, faults.no_response], ids=["dropped", "silent"])
def test_idempotent_retries(broker, connect, reports, fault):
    """A batch whose response is lost is recognized by its sequence number."""
    client = connect(broker, timeout=0.4)
    broker.create_topic("t")
    broker.faults.add(fault(), api=PRODUCE, times=2)
    with client.producer(batch_records=10) as producer:
        send(producer, 30, reports)
    assert reports.errors == [None] * 30
    assert values(broker) == numbers(30)
    assert len(broker.calls(INIT)) == 1


def test_retries_without_idempotence(start, connect, reports):
    """Old brokers append a repeated batch again: at least once, in order."""
    broker = start("0.10")
    broker.faults.add(faults.drop_after(), api=PRODUCE)
    with connect(broker).producer() as producer:
        send(producer, 5, reports)
    assert values(broker) == numbers(5) * 2
    with connect(broker).producer(idempotent=True) as producer:
        producer.produce("t", b"v", on_delivery=reports)
        producer.flush(5)
    assert isinstance(reports.errors[-1], Unsupported)


def test_a_leader_moves(start, connect, reports):
    """The order is kept, and each record is appended once."""
    broker = start(brokers=2)
    broker.create_topic("t")
    client = connect(broker)
    with client.producer(batch_records=5, linger=0.001) as producer:
        for n in range(100):
            producer.produce("t", b"%d" % n, on_delivery=reports)
            if n % 25 == 10:
                producer.poll(0.05)
                broker.move_leader("t", 0, 1 + n % 2)
            elif n % 25 == 20:
                broker.close_connections()
    assert reports.errors == [None] * 100
    assert values(broker) == numbers(100)
    assert reports.offsets == list(range(100))


def test_a_partition_without_a_leader_does_not_block_others(start, connect, reports):
    """Other partitions are sent; the first is delivered later or times out."""
    broker = start()
    broker.create_topic("t", 2)
    broker.move_leader("t", 0, -1)
    with connect(broker).producer(delivery_timeout=5) as producer:
        send(producer, 3, reports, partition=0)
        for _ in range(3):
            producer.produce("t", b"v", partition=1, on_delivery=reports)
            assert producer.poll(2) == 1
        broker.move_leader("t", 0, 1)
        assert producer.flush(5) == 0
    assert reports.errors == [None] * 6
    assert values(broker) == numbers(3)


@pytest.mark.parametrize("partitioner", [None, round_robin(), at_random()], ids=["by_key", "turns", "random"])
def test_records_without_a_key_go_to_partitions_with_a_leader(start, connect, reports, partitioner):
    """Partitions without a leader are left out, unless all are; a key has the same partition always."""
    broker = start()
    broker.create_topic("t", 4)
    for partition in (0, 2):
        broker.move_leader("t", partition, -1)
    with connect(broker).producer(partitioner=partitioner) as producer:
        for _ in range(8):
            producer.produce("t", b"w", on_delivery=reports)
        assert producer.flush(20) == 0
        assert sum(len(values(broker, "t", partition)) for partition in (1, 3)) == 8
        for partition in (1, 3):
            broker.move_leader("t", partition, -1)
        producer._cluster.invalidate()
        producer.produce("t", b"late", on_delivery=reports)
        assert producer.flush(0.3) == 1
        for partition in range(4):
            broker.move_leader("t", partition, 1)
        assert producer.flush(20) == 0
    assert reports.errors == [None] * 9


@pytest.mark.parametrize("pause", [1000.0, 0.1])
def test_a_partition_with_a_new_leader_is_used_again(start, connect, monkeypatch, pause):
    """Metadata is requested again while a partition has no leader, but not for each record."""
    monkeypatch.setattr(_accumulator, "_LEADERS_PAUSE", pause)
    broker = start()
    broker.create_topic("t", 2)
    broker.move_leader("t", 0, -1)
    with connect(broker).producer(linger=0) as producer:

        def used(partition):
            producer.produce("t", b"v")
            assert producer.flush(20) == 0
            return values(broker, "t", partition) != []

        assert [used(0) for _ in range(20)] == [False] * 20
        broker.move_leader("t", 0, 1)
        if pause < 1:
            assert eventually(lambda: used(0))
        else:
            assert len(broker.calls(METADATA)) < 10


def test_records_with_a_key_stay(start, connect, reports):
    """A record with a key waits for the leader of its partition."""
    broker = start()
    broker.create_topic("t", 4)
    wanted = (-790332482 & 0x7FFFFFFF) % 4
    broker.move_leader("t", wanted, -1)
    with connect(broker).producer() as producer:
        producer.produce("t", b"v", key=b"foobar", on_delivery=reports)
        assert producer.flush(0.3) == 1
        broker.move_leader("t", wanted, 1)
        assert producer.flush(20) == 0
    assert values(broker, "t", wanted) == [b"v"]


def test_a_missing_topic_does_not_block_others(start, connect, reports):
    """Its records fail after their timeout, and metadata requests back off."""
    broker = start(settings={"auto_create": False})
    broker.create_topic("t")
    began = time.monotonic()
    with connect(broker).producer(delivery_timeout=0.6) as producer:
        producer.produce("missing", b"v", on_delivery=reports)
        producer.produce("t", b"v", on_delivery=reports)
        assert producer.poll(0.4) == 1
        assert reports.errors == [None]
    assert 0.5 < time.monotonic() - began < 3
    assert isinstance(reports.errors[1], BrokerError)
    assert reports.errors[1].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(broker.calls(METADATA)) < 15


def test_delivery_timeout(broker, connect, reports):
    """With a silent broker the error has the timeout and the last error."""
    broker.faults.add(faults.no_response(), api=PRODUCE, times=None)
    began = time.monotonic()
    with connect(broker, timeout=0.2).producer(delivery_timeout=0.5) as producer:
        send(producer, 3, reports)
    assert 0.4 < time.monotonic() - began < 3
    assert {type(error) for error in reports.errors} == {DeadlineExceeded}
    assert re.search(
        r"t\[0\]: not delivered in time; the broker may have appended it; the last error: "
        r"127.0.0.1:\d+: no response within 0.2 s",
        str(reports.errors[0]),
    )


def test_a_failed_batch_makes_no_other_topic_stale(broker, client, reports):
    """Only the metadata of the batch's topic is requested again."""
    broker.faults.add(faults.error(ErrorCode.NOT_LEADER_OR_FOLLOWER, "t"), api=PRODUCE, times=4)
    with client.producer() as producer:
        for topic in ("u", "t"):
            producer.produce(topic, b"v", on_delivery=reports)
            producer.flush(5)
        producer.produce("u", b"v", on_delivery=reports)
    assert reports.errors == [None] * 3
    named = [[topic.name for topic in call.message.topics or ()] for call in broker.calls(METADATA)]
    assert named.count(["t"]) > 1
    assert named.count(["u"]) == 1


def test_records_after_a_failed_batch_arrive(broker, connect, reports):
    """A failed batch leaves no gap in the sequence numbers."""
    client = connect(broker, timeout=0.2)
    with client.producer(delivery_timeout=0.3) as producer:
        send(producer, 2, reports)
        producer.flush(5)
        broker.faults.add(faults.drop_before(), api=PRODUCE, times=None)
        send(producer, 2, reports)
        producer.flush(5)
        broker.faults.clear()
        send(producer, 2, reports)
    assert [error is None for error in reports.errors] == [True, True, False, False, True, True]
    assert values(broker) == numbers(2) * 2


def test_too_large(start, connect, reports):
    """A batch that is too large is split, and only a record that is too large fails."""
    broker = start(settings={"max_message_bytes": 2000})
    with connect(broker).producer(linger=0.1) as producer:
        for n in range(20):
            producer.produce("t", b"%d" % n * (3000 if n == 7 else 200), on_delivery=reports)
    failed = [message.value()[:1] for error, message in reports if error is not None]
    assert failed == [b"7"]
    assert [value[:2] for value in values(broker)] == [(b"%d" % n * 2)[:2] for n in range(20) if n != 7]
    assert {error.code for error in reports.errors if error} == {ErrorCode.MESSAGE_TOO_LARGE}


@pytest.mark.parametrize("release", ["0.8.2", "0.10"])
def test_headers_on_an_old_broker(start, connect, reports, release):
    """Only records with headers fail; a content-type alone is dropped."""
    broker = start(release)
    with connect(broker).producer(linger=0.1) as producer:
        producer.produce("t", b"1", on_delivery=reports)
        producer.produce("t", b"2", headers=[("ce_id", b"1")], on_delivery=reports)
        producer.produce("t", b"3", headers=[("content-type", b"x")], on_delivery=reports)
    assert {m.value(): type(e) for e, m in reports} == {b"1": type(None), b"2": Unsupported, b"3": type(None)}
    assert values(broker) == [b"1", b"3"]


@pytest.mark.parametrize(
    "record",
    [
        {"topic": 5},
        {"topic": None},
        {"partition": "1"},
        {"value": 5},
        {"key": 1.5},
        {"timestamp": "x"},
        {"timestamp": -5},
        {"timestamp": 1 << 63},
        {"headers": [(b"a", b"b")]},
        {"headers": [("a", 5)]},
        {"headers": [("\ud800", b"b")]},
        {"headers": ["abc"]},
        {"value": "\ud800"},
    ],
    ids=str,
)
def test_invalid_records_are_refused(broker, client, reports, record):
    """`produce` raises, and the next record is sent."""
    with client.producer() as producer:
        with pytest.raises((TypeError, ValueError)):
            producer.produce(**{"topic": "t", **record})
        assert len(producer) == 0
        producer.produce("t", b"v", on_delivery=reports)
    assert reports.errors == [None]
    assert values(broker) == [b"v"]


@pytest.mark.parametrize("topic", ["", "\ud800", "a b", "x" * 300, "x" * 40_000])
def test_invalid_topics(broker, client, reports, topic):
    """Their records fail, and others arrive."""
    with client.producer(delivery_timeout=0.5) as producer:
        producer.produce(topic, b"v", on_delivery=reports)
        producer.produce("t", b"v", on_delivery=reports)
    assert sorted(error is None for error in reports.errors) == [False, True]
    assert values(broker) == [b"v"]


def test_invalid_partitions(broker, client, reports):
    """A number out of range, from the user or the partitioner, fails only its record."""
    with client.producer(delivery_timeout=0.3, partitioner=lambda _key, _partitions: 9) as producer:
        producer.produce("t", b"v", partition=7, on_delivery=reports)
        producer.produce("t", b"v", on_delivery=reports)
    assert [error.code for error in reports.errors if isinstance(error, BrokerError)] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    assert len(reports) == 2


def test_keys_choose_partitions(broker, client):
    """Equal keys have one partition, as in the Java client; null keys are spread."""
    broker.create_topic("t", 4)
    with client.producer() as producer:
        for _ in range(8):
            producer.produce("t", b"v", key=b"foobar")
            producer.produce("t", b"w")
    expected = (-790332482 & 0x7FFFFFFF) % 4
    found = [values(broker, "t", partition) for partition in range(4)]
    assert [part.count(b"v") for part in found] == [8 * (n == expected) for n in range(4)]
    assert [part.count(b"w") for part in found] == [2, 2, 2, 2]


def test_a_callback_that_raises(broker, client, reports):
    """`poll` raises its exception, and the next `poll` calls the other callbacks."""

    def bad(_error, _message):
        raise RuntimeError("bad report")

    with client.producer(linger=0.1) as producer:
        producer.produce("t", b"1", on_delivery=reports)
        producer.produce("t", b"2", on_delivery=bad)
        producer.produce("t", b"3", on_delivery=reports)
        with pytest.raises(RuntimeError, match="bad report"):
            producer.flush(5)
        assert producer.flush(5) == 0
    assert [message.value() for _, message in reports] == [b"1", b"3"]


def test_callbacks_may_produce(broker, client):
    """A callback may call `produce`, `poll` and `flush`."""
    with client.producer(linger=0) as producer:

        def again(_error, message):
            if message.value() < b"3":
                producer.produce("t", b"%d" % (int(message.value()) + 1), on_delivery=again)
                producer.poll(0)

        producer.produce("t", b"0", on_delivery=again)
        assert producer.flush(5) == 0
    assert values(broker) == numbers(4)


def test_flush_timeout(broker, client, reports):
    """`flush` returns the number left; `close` reports them as failed, soon."""
    broker.faults.add(faults.no_response(), api=PRODUCE, times=None)
    producer = client.producer()
    send(producer, 3, reports)
    assert producer.flush(0.2) == 3
    began = time.monotonic()
    assert producer.close(0.1) == 3
    assert time.monotonic() - began < 4
    assert len(reports) == 3
    assert all(isinstance(error, ProtocolError) for error in reports.errors)
    with pytest.raises(ClientError, match="closed"):
        producer.produce("t", b"v")
    assert producer.close() == 0


@pytest.mark.parametrize("stop", [True, False])
def test_closing_without_a_broker(start, connect, reports, stop):
    """`close` keeps its timeout if the broker is down, and all records are reported."""
    broker = start()
    client = connect(broker)
    producer = client.producer()
    if not stop:
        producer.produce("t", b"v")
        producer.flush(5)
    broker.stop()
    send(producer, 3, reports)
    began = time.monotonic()
    assert producer.close(0.2) == 3
    assert time.monotonic() - began < 4
    assert len(reports) == 3


def test_keyboard_interrupt_in_flush(broker, connect, reports):
    """It is raised at once, and the producer can be closed."""
    broker.faults.add(faults.no_response(), api=PRODUCE, times=None)
    producer = connect(broker).producer()
    send(producer, 2, reports)
    with interrupted(0.2):
        producer.flush()  # without a time-out
    producer.close(0)
    assert len(reports) == 2


def test_a_partitioner_that_raises(broker, client, reports, monkeypatch):
    """The sending thread ends, and `poll` and `close` raise instead of waiting forever."""
    seen = []
    monkeypatch.setattr(threading, "excepthook", seen.append)

    def bad(_key, _partitions):
        raise RuntimeError("bad partitioner")

    producer = client.producer(partitioner=bad)
    producer.produce("t", b"v", on_delivery=reports)
    with pytest.raises(ClientError, match="the sending thread has ended, records outstanding: 1"):
        producer.flush()
    with pytest.raises(ClientError, match="the sending thread has ended"):
        producer.close()
    assert [one.exc_type for one in seen] == [RuntimeError]


def test_an_idle_producer_does_nothing(broker, client):
    """Without records there are no requests, and no CPU time is used."""
    with client.producer() as producer:
        producer.produce("t", b"v")
        producer.flush(5)
        before, work = len(broker.calls()), time.process_time()
        time.sleep(0.3)
        assert len(broker.calls()) == before
        assert time.process_time() - work < 0.1


def test_many_threads_may_produce(broker, client, reports):
    """The records of each thread stay in order."""
    with client.producer(linger=0.001) as producer:

        def produce(name):
            for n in range(100):
                producer.produce("t", b"%d-%d" % (name, n), on_delivery=reports)

        threads = [threading.Thread(target=produce, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = values(broker)
    assert len(found) == len(reports) == 400
    for name in range(4):
        mine = [value for value in found if value.startswith(b"%d-" % name)]
        assert mine == [b"%d-%d" % (name, n) for n in range(100)]


def test_close_waits_for_records_without_acks(start, connect, reports):
    """With acks 0, closing waits for the response to a request sent after the records."""
    broker = start()
    broker.faults.add(faults.delay(0.3), api=PRODUCE)
    with connect(broker).producer(acks=0) as producer:
        send(producer, 3, reports)
    assert values(broker) == numbers(3)


def test_records_without_acks_after_an_idle_close(broker, client, reports):
    """With acks 0, a connection that the broker has closed is replaced before records are sent."""
    with client.producer(acks=0) as producer:
        for turn in range(1, 4):
            send(producer, 10, reports)
            assert producer.flush(5) == 0
            assert eventually(lambda turn=turn: len(values(broker)) == 10 * turn)
            (connection,) = producer._cluster._connections.values()
            broker.close_connections()
            assert connection.readable(5)
    assert reports.errors == [None] * 30


def test_records_without_acks_after_a_leader_moved(start, connect, reports):
    """With acks 0, a broker closes the connection for an error; the new leader gets later records."""
    broker = start(brokers=2)
    broker.create_topic("t")
    broker.move_leader("t", 0, 1)
    with connect(broker).producer(acks=0) as producer:
        send(producer, 1, reports)
        assert eventually(lambda: len(values(broker)) == 1 and producer.poll(0) is not None)
        broker.move_leader("t", 0, 2)

        def arrives():
            send(producer, 1, reports)
            producer.flush(5)
            return len(values(broker)) > 1

        assert eventually(arrives)


@pytest.mark.parametrize("acks", [2, -2, None, "all"])
def test_acks_are_0_1_or_all(client, acks):
    """Other numbers raise ValueError."""
    with pytest.raises(ValueError, match="acks must be 0, 1 or -1"):
        client.producer(acks=acks)


# --- silent leaders ----------------------------------------------------------------------


def test_a_silent_leader_delays_only_its_partitions(start, connect, reports):
    """Records of other leaders are delivered while one takes connections and says nothing."""
    broker = start(brokers=2)
    broker.create_topic("t", 2)
    broker.move_leader("t", 0, 1)
    broker.move_leader("t", 1, 2)
    fault = broker.faults.add(faults.no_response(), times=None, when=lambda call: call.node.id == 2)
    late = Reports()
    with connect(f"{broker.nodes[0].host}:{broker.nodes[0].port}", timeout=5.0).producer() as producer:
        producer.produce("t", b"late", partition=1, on_delivery=late)
        for turn in range(5):
            producer.produce("t", b"%d" % turn, partition=0, on_delivery=reports)
            assert eventually(lambda turn=turn: producer.poll(0) and len(reports) == turn + 1, 4.5)
        assert not late
        fault.remaining = 0
    assert (reports.errors, late.errors) == ([None] * 5, [None])
    assert values(broker, "t", 1) == [b"late"]


def test_a_request_in_flight_does_not_delay_others(start, connect, reports):
    """Batches of other partitions are sent to a leader that still owes a response."""
    broker, frames = start(), []
    broker.create_topic("t", 2)
    broker.faults.add(faults.delay(1.0), api=PRODUCE)
    client = connect(broker, trace=frames.append)
    with client.producer(linger=0) as producer:

        def sent():
            return [frame.direction for frame in frames if frame.data[4:6] == b"\0\0"].count("sent")

        producer.produce("t", b"first", partition=0, on_delivery=reports)
        assert eventually(lambda: sent() == 1)
        producer.produce("t", b"second", partition=1, on_delivery=reports)
        assert eventually(lambda: sent() == 2, 0.7)
        assert not reports
    assert reports.errors == [None, None]
    assert [values(broker, "t", n) for n in (0, 1)] == [[b"first"], [b"second"]]


# --- lost sequence numbers ---------------------------------------------------------------


def produced(broker):
    """Return id, epoch, first number and records of each batch that was sent."""
    for call in broker.calls(PRODUCE):
        (topic,) = call.message.topic_data
        for data in topic.partition_data:
            for batch in Batches(data.records):
                yield batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.count


def lost(code, start):
    """Answer with a code and the start of the log, without appending."""

    def fault(call, _answer):
        (topic,) = call.message.topic_data
        rows = [
            PartitionProduceResponse(
                index=data.index, error_code=code, base_offset=-1, log_start_offset=start
            )
            for data in topic.partition_data
        ]
        return ProduceResponse(responses=[TopicProduceResponse(name=topic.name, partition_responses=rows)])

    return fault


@pytest.mark.parametrize(
    "code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID], ids=lambda c: c.name
)
def test_lost_sequences_begin_again_in_a_new_epoch(broker, client, reports, code):
    """Errors 45 and 59: the batch is sent again from 0 in the next epoch, as by the Java client (KIP-360)."""
    with client.producer(linger=0.05) as producer:
        send(producer, 2, reports)
        producer.flush(5)
        broker.faults.add(lost(code, start=0), api=PRODUCE)
        send(producer, 3, reports)
        producer.flush(5)
        send(producer, 1, reports)
    assert reports.errors == [None] * 6
    rows = list(produced(broker))
    (producer_id,) = {row[0] for row in rows}
    assert [row[1:] for row in rows] == [(0, 0, 2), (0, 2, 3), (1, 0, 3), (1, 3, 1)]
    assert len(broker.calls(INIT)) == 1
    assert values(broker) == [*numbers(2), *numbers(3), *numbers(1)]
    assert producer_id >= 0


def test_an_unknown_log_start_is_retried_in_the_same_epoch(broker, client, reports):
    """Error 59 without the log's start says nothing yet: the batch is repeated unchanged."""
    with client.producer() as producer:
        send(producer, 1, reports)
        producer.flush(5)
        broker.faults.add(lost(ErrorCode.UNKNOWN_PRODUCER_ID, start=-1), api=PRODUCE)
        send(producer, 1, reports)
    assert reports.errors == [None, None]
    assert [row[1:] for row in produced(broker)] == [(0, 0, 1), (0, 1, 1), (0, 1, 1)]


def test_a_fenced_epoch_is_final_for_its_records(broker, client, reports):
    """Error 47 fails the batch, as in the Java client; later records are sent in the next epoch."""
    with client.producer() as producer:
        send(producer, 1, reports)
        producer.flush(5)
        broker.faults.add(faults.error(ErrorCode.INVALID_PRODUCER_EPOCH), api=PRODUCE)
        send(producer, 1, reports)
        producer.flush(5)
        send(producer, 1, reports)
    assert [getattr(error, "code", None) for error in reports.errors] == [
        None,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        None,
    ]
    assert [row[1:] for row in produced(broker)] == [(0, 0, 1), (0, 1, 1), (1, 0, 1)]


def test_after_the_last_epoch_comes_a_new_id(broker, client, reports, monkeypatch):
    """Epochs are int16: after the largest the producer asks for another id."""
    monkeypatch.setattr(_accumulator, "_MAX_EPOCH", 0)
    with client.producer() as producer:
        send(producer, 1, reports)
        producer.flush(5)
        broker.faults.add(lost(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, start=0), api=PRODUCE)
        send(producer, 1, reports)
    assert reports.errors == [None, None]
    (first, *_), _, (second, *rest) = produced(broker)
    assert (first != second, rest) == (True, [0, 0, 1])
    assert len(broker.calls(INIT)) == 2


# --- the size of requests ----------------------------------------------------------------


def test_requests_are_bounded(broker, client, reports):
    """The batches of many partitions are sent in requests of the size of a batch, as brokers limit frames."""
    broker.create_topic("t", 20)
    with client.producer(linger=0.3, batch_bytes=100_000) as producer:
        for partition in range(20):
            producer.produce("t", bytes(40_000), partition=partition, on_delivery=reports)
        producer.produce("t", bytes(300_000), partition=0, on_delivery=reports)
    assert reports.errors == [None] * 21
    sizes = [
        [len(data.records) for topic in call.message.topic_data for data in topic.partition_data]
        for call in broker.calls(PRODUCE)
    ]
    assert all(sum(request) <= 100_000 or len(request) == 1 for request in sizes), sizes
    assert len(sizes) < 18  # two in each, if they wait together


def test_a_lost_connection_repeats_what_was_sent_before_it(broker, client, reports):
    """If one of several requests meets a closed connection, all are repeated, and records are there once."""
    broker.create_topic("t", 20)
    broker.faults.add(faults.drop_after(), api=PRODUCE, times=2)
    with client.producer(linger=0.3, batch_bytes=100_000) as producer:
        for partition in range(20):
            producer.produce("t", bytes(40_000), partition=partition, on_delivery=reports)
    assert reports.errors == [None] * 20
    assert [len(values(broker, "t", partition)) for partition in range(20)] == [1] * 20


@pytest.mark.parametrize("release", ["0.9", "4.3"])
def test_new_partitions_are_used(start, connect, reports, release):
    """Records without a key go to partitions that a topic gets while the producer runs."""
    broker = start(release)
    broker.create_topic("t", 1)
    with connect(broker, metadata_max_age=0.1).producer(linger=0) as producer:

        def used():
            producer.produce("t", b"v", on_delivery=reports)
            assert producer.flush(20) == 0
            return values(broker, "t", 2) != []

        send(producer, 1, reports)
        assert producer.flush(20) == 0
        broker.add_partitions("t", 3)
        assert eventually(used)
    assert set(reports.errors) == {None}


def test_metadata_that_cannot_be_renewed_is_kept(broker, connect, reports):
    """If old metadata cannot be requested again, records are sent by the former."""
    client = connect(broker, metadata_max_age=0.05, timeout=0.3)
    with client.producer(linger=0, delivery_timeout=20) as producer:
        send(producer, 1, reports)
        assert producer.flush(20) == 0
        broker.faults.add(faults.error(ErrorCode.UNKNOWN_SERVER_ERROR), api=METADATA, times=3)
        for _ in range(5):
            time.sleep(0.06)
            send(producer, 1, reports)
            assert producer.flush(20) == 0
    assert reports.errors == [None] * 6
