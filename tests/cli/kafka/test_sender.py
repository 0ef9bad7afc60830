"""A sender counts the answers of the brokers, and waits for a limited time."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from cloudevents_kafka import Record
from cloudevents_kafka.cli.kafka.sender import TopicSender
from cloudevents_kafka.cli.kafka.session import BrokerSession, TopicNotAllowed
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerFailure
from cloudevents_kafka.cli.terminal.signals import Interrupts

RECORD = Record(value=b"v", topic="t")
MESSAGE = Message(topic="t", partition=0, offset=7)
TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large")


class StubProducer:
    """A producer that raises the prepared errors first, and answers when it is flushed."""

    def __init__(
        self, *errors: BaseException, answer: KafkaError | None = None, silent: bool = False
    ) -> None:
        self.errors = list(errors)
        self.answer = answer
        self.silent = silent
        self.waiting = []

    def produce(self, topic, *, on_delivery, **record):
        if self.errors:
            raise self.errors.pop(0)
        self.waiting.append(on_delivery)

    def poll(self, timeout):
        return 0

    def flush(self, timeout):
        if not self.silent:
            while self.waiting:
                self.waiting.pop(0)(self.answer, MESSAGE)
        return len(self.waiting)


class StubSession(BrokerSession):
    """A session that has one topic and counts how often it is looked up."""

    lookups = 0

    def partitions(self, client, topic):
        self.lookups += 1
        if topic == "secret":
            raise TopicNotAllowed("no")
        if topic != "t":
            raise BadUsage(f"no topic {topic}")
        return [0]


@pytest.fixture
def sender_for():
    """A function that returns a sender to a producer, with its session and the list of its reports."""

    def build(producer):
        session = StubSession(Settings((("test", {"bootstrap.servers": "h:1"}),)), 0.01, Interrupts())
        reports = []
        sender = TopicSender(producer, session, lambda *report: reports.append(report))
        return sender, session, reports

    return build


def test_delivered_and_failed_records_are_counted(sender_for):
    """Each answer is counted; one with an error is reported with the origin of its record."""
    sender, session, reports = sender_for(StubProducer())
    sender.send(RECORD, "a:1")
    assert (sender.sent, sender.unanswered) == (1, 1)
    sender.flush()
    assert (sender.delivered, sender.unanswered, session.lookups, reports) == (1, 0, 1, [])
    sender, _, reports = sender_for(StubProducer(answer=TOO_LARGE))
    sender.send(RECORD, "a:2")
    sender.flush()
    assert (sender.failed, sender.delivered, reports) == (1, 0, [("a:2", "not delivered: too large")])


def test_a_refused_record_is_undelivered(sender_for):
    """A record that the client refuses is undelivered; a fatal error ends the command."""
    sender, _, reports = sender_for(StubProducer(KafkaException(TOO_LARGE)))
    sender.send(RECORD, "a:1")
    assert (sender.failed, reports) == (1, [("a:1", "not delivered: too large")])
    sender, _, _ = sender_for(StubProducer(KafkaException(KafkaError(KafkaError._FENCED, "fenced", True))))
    with pytest.raises(BrokerFailure, match="failed: fenced"):
        sender.send(RECORD, "a:1")


@pytest.mark.parametrize("full", [False, True])
def test_a_fatal_error_that_a_poll_raises_ends_the_command(sender_for, full):
    """The next call of the client raises it, and each later record would fail."""
    stub = StubProducer(*[BufferError()] * full)
    sender, _, _ = sender_for(stub)

    def poll(_):
        raise KafkaException(KafkaError(45, "lost order", fatal=True))

    stub.poll = poll
    with pytest.raises(BrokerFailure, match="failed: lost order"):
        sender.send(RECORD, "a:1")
    sender, _, reports = sender_for(StubProducer(KafkaException(KafkaError(KafkaError._FATAL, "has ended"))))
    with pytest.raises(BrokerFailure, match="failed: has ended"):
        sender.send(RECORD, "a:1")
    assert reports == []


def test_a_full_queue_is_waited_for(sender_for):
    """A full queue is waited for until the timeout."""
    sender, _, _ = sender_for(StubProducer(BufferError()))
    sender.send(RECORD, "a:1")
    assert sender.unanswered == 1


def test_silence_is_a_failure(sender_for, capsys):
    """Brokers that do not answer are a failure; the number of open records is on stderr."""
    sender, _, _ = sender_for(StubProducer(silent=True))
    sender.send(RECORD, "a:1")
    with pytest.raises(BrokerFailure, match=r"did not answer within 0\.01 s for 1 of 1 record"):
        sender.flush()
    assert "1 record may or may not be delivered" in capsys.readouterr().err


def test_topics_are_looked_up_once(sender_for):
    """Each topic is looked up once; a missing one is bad usage each time."""
    sender, session, _ = sender_for(StubProducer())
    for topic in ("x", "x"):
        with pytest.raises(BadUsage, match="no topic x"):
            sender.send(Record(topic=topic), "a:1")
    for _ in range(2):
        sender.check_topic("t")
    assert (session.lookups, sender.sent) == (2, 0)


def test_a_topic_that_may_not_be_described_is_sent_to(sender_for):
    """The broker decides about each record of a topic that the user may not describe; it is asked once."""
    sender, session, _ = sender_for(StubProducer())
    for partition in (None, 7):
        sender.send(Record(value=b"v", topic="secret", partition=partition), "a:1")
    sender.flush()
    assert (session.lookups, sender.delivered) == (1, 2)


def test_missing_partitions_are_bad_usage(sender_for):
    """A partition that the topic does not have is bad usage before a record is sent."""
    sender, _, _ = sender_for(StubProducer())
    with pytest.raises(BadUsage, match="topic 't' has no partition 7; it has partition 0"):
        sender.send(Record(value=b"v", topic="t", partition=7), "a:1")
    assert sender.sent == 0


@pytest.mark.parametrize("answer", [None, TOO_LARGE])
def test_answers_are_counted_though_printing_fails(sender_for, capsys, answer):
    """If a position or a reason cannot be printed, all answers are counted before the error is raised."""
    tries = []

    def fail(*texts):
        tries.append(texts)
        raise BrokenPipeError

    _, session, _ = sender_for(None)
    sender = TopicSender(StubProducer(answer=answer), session, fail, fail)
    for _ in range(3):
        sender.send(RECORD, "a:1")
    with pytest.raises(BrokenPipeError):
        sender.flush()
    assert (sender.delivered + sender.failed, len(tries), capsys.readouterr().err) == (3, 1, "")
    for then in (sender.poll, lambda: sender.send(RECORD, "a:4")):
        with pytest.raises(BrokenPipeError):
            then()
