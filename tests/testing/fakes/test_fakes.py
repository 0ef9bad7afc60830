"""The fakes behave as confluent-kafka does: most cases run against both.

confluent-kafka runs on librdkafka's mock cluster, in this process.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage, FakeProducer

_numbers = count(1)


@dataclass
class Real:
    """The real client on a mock cluster of one broker."""

    host: Producer
    servers: str
    name: str = "real"

    def producer(self, **extra):
        return Producer({"bootstrap.servers": self.servers, "log_level": 0, **extra})

    def transactional(self):
        return self.producer(**{"transactional.id": f"tx-{next(_numbers)}"})

    def stuck(self):
        """Return a producer that never delivers, with room for two messages."""
        return Producer(
            {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "queue.buffering.max.messages": 2}
        )

    def consumer(self, group, *, auto_commit=True, auto_offset_store=True):
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": auto_commit,
                "enable.auto.offset.store": auto_offset_store,
                "log_level": 0,
            }
        )


@dataclass
class Fake:
    """The fakes on one log, with the offsets of groups."""

    log: FakeLog = field(default_factory=FakeLog)
    groups: dict = field(default_factory=dict)
    name: str = "fake"

    def producer(self):
        return FakeProducer(self.log)

    def transactional(self):
        return FakeProducer(self.log, transactional=True)

    def stuck(self):
        producer = FakeProducer(self.log, queue_limit=2)
        producer.hold = True
        return producer

    def consumer(self, group, **options):
        return FakeConsumer(self.log, offsets=self.groups.setdefault(group, {}), **options)


@pytest.fixture(scope="module")
def mock_cluster():
    """Return one mock cluster for all cases, because it starts slowly."""
    host = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    broker = next(iter(host.list_topics(timeout=10).brokers.values()))
    return Real(host, f"{broker.host}:{broker.port}")


@pytest.fixture(params=["real", "fake"])
def kafka(request):
    """Return the real client, then the fakes."""
    return request.getfixturevalue("mock_cluster") if request.param == "real" else Fake()


@pytest.fixture
def topic():
    """Return a new name."""
    return f"topic-{next(_numbers)}"


def read(consumer, number, seconds=10.0):
    """Return ``number`` messages, or those that arrive in time."""
    found = []
    deadline = time.monotonic() + seconds
    while len(found) < number and time.monotonic() < deadline:
        found += consumer.consume(number - len(found), 0.2)
    return found


def written(kafka, topic, *values):
    """Produce values to partition 0, and wait for their delivery."""
    producer = kafka.producer()
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(10) == 0


def on_start(kafka, topic, group="g", **extra):
    """Return a consumer of partition 0 from its start."""
    consumer = kafka.consumer(f"{group}-{topic}", **extra)
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer


RECORDS = {
    "all": (
        {"value": b"v", "key": b"k", "headers": [("a", b"1"), ("a", None)]},
        b"k",
        b"v",
        [("a", b"1"), ("a", None)],
    ),
    "text": (
        {"value": "é", "key": "é", "headers": [("é", "é")]},
        b"\xc3\xa9",
        b"\xc3\xa9",
        [("é", b"\xc3\xa9")],
    ),
    "nothing": ({}, None, None, None),
    "empty": ({"value": b"", "key": b"", "headers": []}, b"", b"", None),
    "mapping": ({"headers": {"a": b"1", "b": None}}, None, None, [("a", b"1"), ("b", None)]),
    "bytes header key": ({"headers": [(b"a", b"1")]}, None, None, [("b'a'", b"1")]),
}


@pytest.mark.parametrize("case", RECORDS)
def test_message(kafka, topic, case):
    """A consumed message has the key, value and headers of the real client."""
    given, key, value, headers = RECORDS[case]
    producer = kafka.producer()
    assert producer.produce(topic, partition=0, timestamp=1234, **given) is None
    assert producer.flush(10) == 0
    (message,) = read(on_start(kafka, topic), 1)
    assert (message.key(), message.value(), message.headers()) == (key, value, headers)
    assert (message.topic(), message.partition(), message.offset()) == (topic, 0, 0)
    assert (message.timestamp(), message.error(), message.leader_epoch()) == ((1, 1234), None, 0)
    assert message.latency() is None
    assert len(message) == len(value or b"")


REFUSED = {
    "value": {"value": 1},
    "key": {"key": 1},
    "bytearray": {"value": bytearray(b"v")},
    "view": {"key": memoryview(b"v")},
    "header value": {"headers": [("a", 1)]},
    "headers as a tuple": {"headers": (("a", b"1"),)},
    "headers as text": {"headers": "a"},
    "header of one": {"headers": [("a",)]},
    "list in a mapping": {"headers": {"a": [b"1"]}},
    "unknown name": {"nonsense": 1},
}


@pytest.mark.parametrize("case", REFUSED)
def test_type_errors(kafka, topic, case):
    """Types that the client refuses with TypeError are refused, and nothing is queued."""
    producer = kafka.producer()
    with pytest.raises(TypeError):
        producer.produce(topic, **REFUSED[case])
    assert len(producer) == 0


def test_topic_must_be_text(kafka):
    """The TypeError has the client's text."""
    with pytest.raises(TypeError, match="argument 1 must be str, not None"):
        kafka.producer().produce(None)


def test_delivery_report(kafka, topic):
    """A delivery report has topic, partition, offset, key and value, but no headers."""
    producer, reports = kafka.producer(), []
    producer.produce(
        topic, b"v", b"k", 0, headers=[("a", b"1")], on_delivery=lambda *report: reports.append(report)
    )
    assert len(producer) == 1
    assert producer
    assert producer.flush(10) == 0
    ((error, message),) = reports
    assert error is None
    assert (message.topic(), message.partition(), message.offset()) == (topic, 0, 0)
    assert (message.key(), message.value(), message.headers()) == (b"k", b"v", None)


def test_callback_is_an_alias(kafka, topic):
    """`callback` is the older name of `on_delivery`."""
    producer, reports = kafka.producer(), []
    producer.produce(topic, b"v", callback=lambda *report: reports.append(report))
    producer.flush(10)
    assert len(reports) == 1


def test_queue_full_and_purge(kafka, topic):
    """A full queue raises BufferError; the next poll reports purged messages as failed."""
    producer, reports = kafka.stuck(), []
    for value in (b"1", b"2"):
        producer.produce(topic, value, headers=[("a", b"1")], on_delivery=lambda *pair: reports.append(pair))
    with pytest.raises(BufferError, match=r"^Local: Queue full$"):
        producer.produce(topic, b"3")
    assert producer.flush(0.05) > 0
    producer.purge()
    assert reports == []
    producer.poll(1)
    assert [message.value() for _, message in reports] == [b"1", b"2"]
    for error, message in reports:
        assert error.code() == KafkaError._PURGE_QUEUE
        assert message.error().code() == KafkaError._PURGE_QUEUE
        assert (message.offset(), message.headers()) == (None, None)
    # A real producer's length also counts errors of connections that no poll has taken yet.
    assert producer.flush(1) == 0


def test_with_closes(kafka, topic):
    """A producer's ``with`` block ends with all messages sent; later calls are refused."""
    with kafka.producer() as producer:
        producer.produce(topic, b"v", partition=0)
    with pytest.raises(RuntimeError, match=r"^Producer has been closed$"):
        producer.produce(topic, b"v")
    assert len(read(on_start(kafka, topic), 1)) == 1


def test_transactions(kafka, topic):
    """Consumers read committed messages, and never aborted ones."""
    producer = kafka.transactional()
    with pytest.raises(KafkaException):
        producer.begin_transaction()
    producer.init_transactions(10)
    with pytest.raises(KafkaException):
        producer.produce(topic, b"outside")
    producer.begin_transaction()
    producer.produce(topic, b"aborted", partition=0)
    producer.abort_transaction(10)
    producer.begin_transaction()
    with pytest.raises(KafkaException):
        producer.begin_transaction()
    producer.produce(topic, b"committed", partition=0)
    producer.commit_transaction(10)
    with pytest.raises(KafkaException):
        producer.abort_transaction(10)
    (message,) = read(on_start(kafka, topic), 1)
    assert message.value() == b"committed"


def test_aborted_messages_are_reported(kafka, topic):
    """Messages that an abort finds in the queue are reported as purged."""
    producer, reports = kafka.transactional(), []
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, b"v", on_delivery=lambda *report: reports.append(report))
    producer.abort_transaction(10)
    producer.poll(0)
    ((error, _),) = reports
    assert error.code() == KafkaError._PURGE_QUEUE


def test_offsets_are_of_the_transaction(kafka, topic):
    """Offsets that are sent to a transaction are committed with it, and forgotten if it is aborted.

    The mock cluster accepts them, and forgets them; the soak shows that a real broker does not.
    """
    written(kafka, topic, b"0", b"1", b"2")
    part = TopicPartition(topic, 0)
    consumer = kafka.consumer(topic, auto_commit=False)
    consumer.subscribe([topic])
    assert len(read(consumer, 3)) == 3
    producer = kafka.transactional()
    producer.init_transactions(10)
    for end, expected in ((producer.abort_transaction, -1001), (producer.commit_transaction, 2)):
        producer.begin_transaction()
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 2)], metadata, 10)
        end(10)
        assert consumer.committed([part], 10)[0].offset in {
            expected,
            -1001 if kafka.name == "real" else expected,
        }
    consumer.close()


def test_offsets_need_a_transaction(kafka, topic):
    """Offsets are refused outside of a transaction."""
    consumer, producer = kafka.consumer(topic), kafka.transactional()
    producer.init_transactions(10)
    with pytest.raises(KafkaException) as caught:
        producer.send_offsets_to_transaction(
            [TopicPartition(topic, 0, 2)], consumer.consumer_group_metadata(), 10
        )
    assert caught.value.args[0].code() == KafkaError._STATE
    consumer.close()


def test_failing_transactions():
    """After a failed delivery, or by `fail_transaction`, a transaction can only be aborted."""
    log = FakeLog([FakeMessage("t", b"1")])
    consumer, producer = FakeConsumer(log), FakeProducer(transactional=True)
    producer.init_transactions()
    for break_it in (
        lambda: producer.fail_next("_MSG_TIMED_OUT"),
        lambda: producer.fail_transaction("_TIMED_OUT"),
    ):
        producer.begin_transaction()
        break_it()
        producer.produce("t", b"1")
        with pytest.raises(KafkaException) as caught:
            producer.commit_transaction()
        assert caught.value.args[0].txn_requires_abort()
        with pytest.raises(KafkaException):
            producer.produce("t", b"2")
        producer.abort_transaction()
    producer.begin_transaction()
    metadata = consumer.consumer_group_metadata()
    consumer.rebalance()
    with pytest.raises(KafkaException) as caught:
        producer.send_offsets_to_transaction([], metadata)
    assert caught.value.args[0].code() == KafkaError.ILLEGAL_GENERATION
    producer.abort_transaction()
    producer.begin_transaction()
    producer.fail_transaction("_FENCED", fatal=True)
    for _ in range(2):
        with pytest.raises(KafkaException) as caught:
            producer.commit_transaction()
        assert caught.value.args[0].fatal()
    with pytest.raises(KafkaException):
        producer.abort_transaction()
    assert len(producer.log) == 0


def test_nothing_to_read(kafka, topic):
    """`poll` returns None and `consume` an empty list without messages."""
    written(kafka, topic, b"1")
    consumer = on_start(kafka, topic)
    assert len(read(consumer, 1)) == 1
    assert consumer.poll(0.01) is None
    assert consumer.consume(5, 0.01) == []
    assert consumer.consume(0, 0.01) == []


@pytest.mark.parametrize("number", [-1, 1_000_001])
def test_number_of_messages(kafka, number):
    """`consume` refuses numbers out of range with the client's text."""
    with pytest.raises(ValueError, match=r"^num_messages must be between 0 and 1000000 \(1M\)$"):
        kafka.consumer("numbers").consume(number)


def test_subscribe(kafka, topic):
    """A subscription reads from the start, and `on_assign` receives the partitions."""
    written(kafka, topic, b"1", b"2")
    given = []
    consumer = kafka.consumer(topic)
    consumer.subscribe([topic], on_assign=lambda _, parts: given.extend(parts))
    assert [message.value() for message in read(consumer, 2)] == [b"1", b"2"]
    assert TopicPartition(topic, 0) in given
    assert {part.topic for part in consumer.assignment()} == {topic}
    consumer.unsubscribe()
    consumer.close()


def becomes_position(consumer, part, offset):
    """Wait until the next offset to read is this one."""
    deadline = time.monotonic() + 10
    while (found := consumer.position([part])[0].offset) != offset and time.monotonic() < deadline:
        time.sleep(0.02)
    assert found == offset


def test_a_pause_stays_over_an_assignment(kafka, topic):
    """A partition that is paused is not read after it was unassigned and assigned, until `resume`."""
    written(kafka, topic, b"0", b"1")
    consumer, part = on_start(kafka, topic), TopicPartition(topic, 0)
    assert len(read(consumer, 1)) == 1
    consumer.pause([part])
    consumer.unassign()
    consumer.assign([TopicPartition(topic, 0, 1)])
    assert consumer.poll(1) is None
    consumer.resume([part])
    assert [message.offset() for message in read(consumer, 1)] == [1]


def test_seek_pause_resume(kafka, topic):
    """`seek` goes back, `pause` stops, and `resume` continues at the same offset."""
    written(kafka, topic, b"0", b"1", b"2")
    consumer, part = on_start(kafka, topic), TopicPartition(topic, 0)
    assert len(read(consumer, 3)) == 3
    assert consumer.position([part])[0].offset == 3
    consumer.seek(TopicPartition(topic, 0, 1))
    becomes_position(consumer, part, -1001)  # the client does not wait
    assert [message.offset() for message in read(consumer, 1)] == [1]
    consumer.pause([part])
    assert consumer.poll(0.2) is None
    consumer.resume([part])
    assert [message.offset() for message in read(consumer, 1)] == [2]
    assert consumer.position([part])[0].offset == 3
    consumer.unassign()
    becomes_position(consumer, part, -1001)  # the client does not wait
    assert consumer.assignment() == []
    with pytest.raises(KafkaException, match="Failed to seek to offset 2"):
        consumer.seek(TopicPartition(topic, 0, 2))


def test_no_seek_in_on_assign(kafka, topic):
    """A partition that is only offered cannot be sought, but `on_assign` may assign it from an offset."""
    written(kafka, topic, b"0", b"1", b"2")
    errors = []

    def assigned(client, parts):
        with pytest.raises(KafkaException, match="Failed to seek to offset 1") as caught:
            client.seek(TopicPartition(topic, 0, 1))
        errors.append(caught.value)
        client.assign([TopicPartition(topic, part.partition, 1) for part in parts])

    consumer = kafka.consumer(f"g-{topic}")
    consumer.subscribe([topic], on_assign=assigned)
    assert [message.offset() for message in read(consumer, 1)] == [1]
    assert len(errors) == 1
    consumer.seek(TopicPartition(topic, 0, 0))
    assert [message.offset() for message in read(consumer, 1)] == [0]


def test_commit(kafka, topic):
    """Commits by message, by offsets and of all positions return the next offset to read."""
    written(kafka, topic, b"0", b"1", b"2")
    part = TopicPartition(topic, 0)
    consumer = on_start(kafka, topic, auto_commit=False)
    assert consumer.committed([part], 10)[0].offset == -1001
    messages = read(consumer, 3)
    assert [part.offset for part in consumer.commit(message=messages[0], asynchronous=False)] == [1]
    assert consumer.committed([part], 10)[0].offset == 1
    assert [part.offset for part in consumer.commit(asynchronous=False)] == [3]
    assert consumer.position([part])[0].offset == 3
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    assert [(each.offset, each.metadata) for each in consumer.committed([part], 10)] == [(2, None)]
    consumer.commit(offsets=[TopicPartition(topic, 0, 2, "by me")], asynchronous=False)
    assert [(each.offset, each.metadata) for each in consumer.committed([part], 10)] == [(2, "by me")]
    assert consumer.get_watermark_offsets(part) == (0, 3)
    with pytest.raises(ValueError, match="mutually exclusive"):
        consumer.commit(message=messages[0], offsets=[])
    assert consumer.commit() is None
    consumer.close()


def becomes_committed(consumer, part, offset):
    """Wait until the offset of a group is committed."""
    deadline = time.monotonic() + 10
    while (found := consumer.committed([part], 10)[0].offset) != offset and time.monotonic() < deadline:
        time.sleep(0.02)
    assert found == offset


def test_unassigning_commits(kafka, topic):
    """With automatic commits, positions are committed when they are unassigned, and not again by close."""
    written(kafka, topic, b"0", b"1", b"2")
    part = TopicPartition(topic, 0)
    for auto_commit, committed in ((False, -1001), (True, 2)):
        consumer = on_start(kafka, topic, f"g{auto_commit}", auto_commit=auto_commit)
        read(consumer, 2)
        consumer.unassign()
        becomes_committed(consumer, part, committed)  # the client does not wait
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        consumer.close()
        consumer = kafka.consumer(f"g{auto_commit}-{topic}")
        assert consumer.committed([part], 10)[0].offset == 1
        consumer.close()


def test_nothing_to_commit(kafka, topic):
    """A synchronous commit without offsets is an error, and so is storing nothing."""
    consumer = kafka.consumer(topic)
    with pytest.raises(KafkaException) as caught:
        consumer.commit(asynchronous=False)
    assert caught.value.args[0].code() == KafkaError._NO_OFFSET
    with pytest.raises(ValueError, match=r"^expected either message or offsets$"):
        consumer.store_offsets()
    with pytest.raises(KafkaException, match="StoreOffsets failed") as caught:
        consumer.store_offsets(offsets=[TopicPartition(topic, 0, 1)])
    assert caught.value.args[0].code() == KafkaError._INVALID_ARG


def test_stored_offsets(kafka, topic):
    """With `enable.auto.offset.store` false, a commit has the offsets that the program stored."""
    written(kafka, topic, b"0", b"1", b"2")
    consumer = on_start(kafka, topic, auto_commit=False, auto_offset_store=False)
    assert len(read(consumer, 3)) == 3
    consumer.store_offsets(offsets=[TopicPartition(topic, 0, 2)])
    assert [part.offset for part in consumer.commit(asynchronous=False)] == [2]
    consumer.close()


def test_rebalances():
    """`rebalance` revokes all partitions, and the next read assigns them from the committed offsets."""
    calls = []
    log = FakeLog([FakeMessage("t", b"v") for _ in range(3)])
    consumer = FakeConsumer(log, auto_commit=False)
    callbacks = {
        name: lambda _, parts, name=name: calls.append((name, [part.topic for part in parts]))
        for name in ("on_assign", "on_revoke", "on_lost")
    }
    consumer.subscribe(["t"], **callbacks)
    assert len(consumer.consume(2, 0)) == 2
    consumer.commit(offsets=[TopicPartition("t", 0, 1)])
    consumer.rebalance()
    assert consumer.position([TopicPartition("t", 0)])[0].offset == -1001
    assert consumer.poll(0).offset() == 1
    consumer.rebalance(lost=True)
    assert consumer.poll(0).offset() == 1
    consumer.close()
    names = ["on_assign", "on_revoke", "on_assign", "on_lost", "on_assign", "on_revoke"]
    assert calls == [(name, ["t"]) for name in names]


@pytest.mark.parametrize(("auto_commit", "first"), [(True, b"1"), (False, b"0")])
def test_restart(kafka, topic, auto_commit, first):
    """A second consumer of the group continues at the committed offset, automatic or not."""
    written(kafka, topic, b"0", b"1")
    for expected in (b"0", first):
        consumer = kafka.consumer(topic, auto_commit=auto_commit)
        consumer.assign([TopicPartition(topic, 0)])
        (message,) = read(consumer, 1)
        assert message.value() == expected
        consumer.close()


CLOSED = {
    "poll": lambda consumer: consumer.poll(0),
    "consume": lambda consumer: consumer.consume(1, 0),
    "subscribe": lambda consumer: consumer.subscribe(["t"]),
    "commit": lambda consumer: consumer.commit(),
    "assignment": lambda consumer: consumer.assignment(),
}


def test_closed_consumer(kafka):
    """A closed consumer refuses all calls except `close`."""
    with kafka.consumer("closed") as consumer:
        pass
    consumer.close()
    for call in CLOSED.values():
        with pytest.raises(RuntimeError, match=r"^Consumer closed$"):
            call(consumer)


def test_failing_deliveries():
    """`fail_next` fails that many deliveries, in order, with real errors."""
    producer, reports = FakeProducer(), []
    producer.fail_next("_MSG_TIMED_OUT", "MSG_SIZE_TOO_LARGE")
    for value in (b"1", b"2", b"3"):
        producer.produce("t", value, on_delivery=lambda *report: reports.append(report))
    assert producer.poll(0) == 3
    codes = [error and error.code() for error, _ in reports]
    assert codes == [KafkaError._MSG_TIMED_OUT, KafkaError.MSG_SIZE_TOO_LARGE, None]
    assert [message.value() for message in producer.log] == [b"3"]


def test_failing_reads():
    """`fail_next` returns error messages first."""
    consumer = FakeConsumer([FakeMessage("t", b"1")])
    consumer.subscribe(["^t"])
    consumer.fail_next("_ALL_BROKERS_DOWN")
    assert consumer.poll().error().code() == KafkaError._ALL_BROKERS_DOWN
    assert consumer.poll().value() == b"1"
    assert consumer.poll() is None


def test_size_of_messages():
    """`max_bytes` is that of ``message.max.bytes``."""
    producer = FakeProducer(max_bytes=100)
    with pytest.raises(KafkaException, match="Message size too large"):
        producer.produce("t", bytes(65))
    producer.produce("t", bytes(64))
    FakeProducer(max_bytes=4_000_000).produce("t", bytes(3_000_000))


def test_partitions_of_a_log():
    """A topic has the partitions of its log, and those of the messages that it began with."""
    producer, codes = FakeProducer(FakeLog([FakeMessage("a", partition=5)], partitions=2)), []
    for topic, partition in (("a", 5), ("a", 6), ("b", 1), ("b", 2)):
        producer.produce(
            topic, partition=partition, on_delivery=lambda error, _: codes.append(error and error.name())
        )
    producer.flush()
    assert codes == [None, "_UNKNOWN_PARTITION"] * 2
    assert {name: len(each.partitions) for name, each in producer.list_topics().topics.items()} == {
        "a": 6,
        "b": 2,
    }


def test_incremental_assignments_in_callbacks():
    """`on_assign` may assign from other offsets, and `on_revoke` unassign, as in a cooperative group."""
    consumer = FakeConsumer([FakeMessage("t", b"%d" % number, partition=number % 2) for number in range(6)])
    consumer.subscribe(
        ["t"],
        on_assign=lambda client, parts: client.incremental_assign(
            [TopicPartition(part.topic, part.partition, 2) for part in parts]
        ),
        on_revoke=lambda client, parts: client.incremental_unassign(parts),
    )
    assert [message.value() for message in consumer.consume(9)] == [b"4", b"5"]
    consumer.incremental_unassign([TopicPartition("t", 0)])
    assert consumer.offsets == {("t", 0): 3}
    assert [part.partition for part in consumer.assignment()] == [1]
    consumer.close()
    assert consumer.offsets == {("t", 0): 3, ("t", 1): 3}


def test_a_member_of_a_group():
    """A subscribed consumer has an id, which is empty, so that programs do not look for other members."""
    consumer = FakeConsumer([FakeMessage("t", b"1")])
    assert consumer.memberid() is None
    consumer.subscribe(["t"])
    assert consumer.memberid() == ""


def test_offsets_beyond_the_end():
    """Reading begins again as `auto_offset_reset` says."""
    for reset, values in (("earliest", [b"1", b"2"]), ("latest", [b"2"])):
        log = FakeLog([FakeMessage("t", b"1")])
        consumer = FakeConsumer(log, offsets={("t", 0): 7}, auto_offset_reset=reset)
        consumer.subscribe(["t"])
        read = consumer.consume(1)
        log.append(FakeMessage("t", b"2"))
        assert [message.value() for message in [*read, *consumer.consume(2)]] == values


def test_log_spreads_keys():
    """A key has one partition, and offsets count by partition."""
    producer = FakeProducer(FakeLog(partitions=3))
    for number in range(30):
        producer.produce("t", b"v", b"%d" % (number % 10))
    producer.flush()
    places = {}
    for message in producer.log:
        places.setdefault(message.key(), set()).add(message.partition())
    assert all(len(partitions) == 1 for partitions in places.values())
    assert len(producer.log.topic_partitions()) == 3
    assert len(producer.log) == 30


def test_threads_share_a_producer():
    """Each message is delivered and reported once, with its own offset, on any thread."""
    reported = []

    def work(number):
        for n in range(500):
            producer.produce(
                "t", value=f"{number}-{n}", on_delivery=lambda _, message: reported.append(message)
            )
            producer.poll(0)

    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        producer = FakeProducer()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        producer.flush()
    finally:
        sys.setswitchinterval(switching)
    assert sorted(message.offset() for message in reported) == list(range(4000))
    assert len({message.value() for message in producer.log}) == 4000


def test_threads_share_a_log():
    """A log says whether a topic has messages while another thread adds topics."""
    log = FakeLog()
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as pool:
            added = pool.submit(lambda: [log.append(FakeMessage(f"t{number}")) for number in range(5000)])
            while not added.done():
                assert not log.has_topic("none")
            added.result()
    finally:
        sys.setswitchinterval(switching)
    assert log.has_topic("t4999")
