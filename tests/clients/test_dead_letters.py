"""DeadLetters, with a fake client."""

from __future__ import annotations

import asyncio
import pickle
import re
from typing import Any

import pytest
from aiokafka.errors import MessageSizeTooLargeError
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cloudevents_kafka import (
    AsyncEventProducer,
    DeadLetter,
    DeadLetterError,
    DeadLetters,
    Event,
    EventProducer,
    Record,
    Undecodable,
    dead_letter,
    decode,
    to_record,
)
from cloudevents_kafka.clients.dead_letters import deliver, deliver_awaited, without_value
from cloudevents_kafka.testing import FakeProducer
from tests.support.cases import each
from tests.support.strategies import hostile_records

RECORD = Record(
    key=b"\xff",
    value=b"{",
    headers=[("x", None), ("ce_id", b"1"), ("x", b"\xff")],
    topic="orders",
    partition=2,
    offset=1741,
    timestamp=1_234,
)


def letters(topic: str = "orders.dead") -> DeadLetters:
    return DeadLetters(EventProducer(FakeProducer()), topic=topic)


def sent(by: DeadLetters, topic: str | None = None) -> Record:
    """Return the last record that was sent, as it is read from its topic."""
    by.producer.flush()
    return [Record.of(message) for message in by.producer.producer.log][-1]


def reason(record: Record) -> DeadLetter:
    letter = DeadLetter.of(record)
    assert letter is not None
    return letter


def test_a_dead_letter_has_its_record_and_one_set_of_headers() -> None:
    """Key, value and headers are as they were, then comes where from, when, attempt and error."""
    dead = letters()
    delivery = dead.send(RECORD, ValueError("no such customer"), attempt=3)
    record = sent(dead)
    assert delivery.result().topic == "orders.dead"
    assert (record.key, record.value) == (RECORD.key, RECORD.value)
    assert record.headers[:3] == RECORD.headers
    letter = reason(record)
    assert (letter.topic, letter.partition, letter.offset, letter.timestamp) == ("orders", 2, 1741, 1_234)
    assert (letter.attempt, letter.error, letter.clause) == (3, "ValueError: no such customer", None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", letter.time or "")
    assert [name for name, _ in record.headers[3:]] == [
        *("dlq_topic", "dlq_partition", "dlq_offset", "dlq_timestamp", "dlq_time", "dlq_attempt", "dlq_error")
    ]


def test_the_reason_of_an_undecodable_is_its_error() -> None:
    """The error has the rule without the place, and the clauses are a header."""
    broken = to_record(Event(id="1", source="/s", type="t"))
    broken = Record(headers=[(n, b"" if n == "ce_id" else v) for n, v in broken.headers], topic="t", offset=5)
    item = decode(broken)
    assert isinstance(item, Undecodable)
    dead = letters()
    dead.send(item)
    letter = reason(sent(dead))
    assert (letter.error or "").startswith("BrokenEvent: broken CloudEvent: id: ")
    assert letter.clause == "R-02"


def test_a_second_failure_replaces_the_first() -> None:
    """A record that was sent back and fails again has one set of headers; its attempts are added."""
    dead = letters()
    dead.send(RECORD, ValueError("first"), attempt=3)
    again = Record(headers=sent(dead).headers, topic="orders", partition=0, offset=7)
    dead.send(again, KeyError("second"), attempt=2)
    record = sent(dead)
    letter = reason(record)
    assert (letter.partition, letter.offset, letter.attempt) == (0, 7, 5)
    assert letter.error == "KeyError: 'second'"
    assert letter.timestamp is None
    names = [name for name, _ in record.headers]
    assert len(names) - len(set(names)) == 1  # x, which repeats in the record
    assert record.headers[:3] == RECORD.headers


def test_a_dead_letter_that_fails_in_its_topic_still_comes_from_the_first() -> None:
    """Where it came from stays, so that it can be sent back there."""
    dead = letters()
    dead.send(RECORD, "first")
    dead.send(sent(dead), "second")
    letter = reason(sent(dead))
    assert (letter.topic, letter.partition, letter.offset, letter.timestamp) == ("orders", 2, 1741, 1_234)
    assert (letter.attempt, letter.error) == (2, "second")


@given(hostile_records(), st.text(), st.integers(1, 1 << 40))
def test_any_record_and_error_can_be_sent(record: Record, text: str, attempt: int) -> None:
    """No header, message or value of a record prevents its dead letter, or changes what it had."""
    dead = letters()
    dead.send(record, RuntimeError(text), attempt=attempt)
    dead.send(sent(dead), RuntimeError(text), attempt=1)
    found = sent(dead)
    ours = {"dlq_attempt", "dlq_error", "dlq_time"}
    assert (found.key, found.value) == (record.key, record.value)
    whole = [
        (name.partition("\0")[0], value) for name, value in record.headers
    ]  # as the client writes a name
    assert [h for h in found.headers if h[0] not in ours] == whole
    assert reason(found).attempt == attempt + 1


@each("value", [None, b"", b"\xff", b"-1", b"1.5", b"9" * 30, "²".encode()])
def test_malformed_numbers_are_not_known(value: bytes | None) -> None:
    """Headers of a dead letter are untrusted input."""
    letter = reason(Record(headers=[("dlq_attempt", value), ("dlq_topic", value)]))
    assert letter.attempt is None
    dead = letters()
    dead.send(Record(headers=[("dlq_attempt", value)]), "again")
    assert reason(sent(dead)).attempt == 1


def test_long_errors_are_cut() -> None:
    """An error of any length has a header of at most 1,000 characters."""
    dead = letters()
    dead.send(RECORD, RuntimeError("x" * 5_000 + "\udcff"))
    assert len(reason(sent(dead)).error or "") == 1_000


def test_a_record_without_the_headers_is_not_a_dead_letter() -> None:
    """Other headers that start alike do not make one."""
    assert DeadLetter.of(Record(headers=[("dlq_other", b"1")])) is None


@each(
    ("call", "error", "message"),
    [
        (lambda: letters().send(RECORD), TypeError, "error must be the reason"),
        (lambda: letters(""), ValueError, "topic must be the name"),
        (lambda: DeadLetters(FakeProducer(), topic="t"), TypeError, "producer must be an EventProducer"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_refused(call: Any, error: type[Exception], message: str) -> None:
    """Errors name the argument."""
    with pytest.raises(error, match=message):
        call()


def test_the_error_of_a_dead_letter_survives_pickle() -> None:
    """It has the record and its error then, too."""
    error = DeadLetterError("why", RECORD, ValueError("no customer"))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is DeadLetterError
    assert str(again) == str(error)
    assert str(error) == "orders[2]@1741: no dead letter: why; the record failed with ValueError: no customer"
    assert (again.record, str(again.error), again.failed) == (RECORD, "no customer", ())


class Strict(FakeProducer):
    """A client, or its broker, that refuses messages of more than 500 bytes."""

    def __init__(self, *, by_broker: bool) -> None:
        super().__init__()
        self.by_broker = by_broker

    def produce(self, topic: str, value: Any = None, key: Any = None, **options: Any) -> None:
        if Record(value=value, key=key, headers=options["headers"]).wire_size() > 500:
            if not self.by_broker:
                raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
            self.fail_next("MSG_SIZE_TOO_LARGE")
        super().produce(topic, value, key, **options)


def large() -> Undecodable:
    item = decode(replace(RECORD, value=bytes(1_000)))
    assert isinstance(item, Undecodable)
    return item


@pytest.mark.parametrize("by_broker", [False, True])
def test_a_letter_that_is_too_large_is_sent_without_its_value(*, by_broker: bool) -> None:
    """Its headers say where the record is, and how large its value was, which was left out."""
    dead = DeadLetters(EventProducer(Strict(by_broker=by_broker)), topic="orders.dead")
    deliver(dead, large(), ValueError("no"), attempt=2)
    record = sent(dead)
    letter = reason(record)
    assert (record.key, record.value, record.headers[:3]) == (RECORD.key, None, RECORD.headers)
    assert (letter.topic, letter.partition, letter.offset) == ("orders", 2, 1741)
    assert (letter.value_size, letter.attempt, letter.error) == (1_000, 2, "ValueError: no")
    assert len(dead.producer.producer.log) == 1
    if not by_broker:
        delivery = dead.send(large(), ValueError("no"))
        assert delivery.result().record.value is None
    dead.producer.close()


def test_another_record_takes_the_place_of_a_letter_that_is_too_large() -> None:
    """A function returns the record to send, or None to leave the value out."""
    asked: list[Record] = []

    def store(letter: Record) -> Record | None:
        asked.append(letter)
        return replace(letter, value=b"s3://letters/1") if len(asked) == 1 else None

    dead = DeadLetters(EventProducer(Strict(by_broker=False)), topic="orders.dead", too_large=store)
    deliver(dead, large(), ValueError("no"), attempt=1)
    record = sent(dead)
    assert (record.value, reason(record).value_size) == (b"s3://letters/1", None)
    dead.send(large(), ValueError("no"))
    assert (sent(dead).value, reason(sent(dead)).value_size) == (None, 1_000)
    assert [(len(each.value or b""), reason(each).offset) for each in asked] == [(1_000, 1741)] * 2
    dead.send(RECORD, "small")
    assert len(asked) == 2


@each("by_broker", [False, True])
@each("has_value", [False, True])
def test_a_letter_that_stays_too_large_is_an_error(*, by_broker: bool, has_value: bool) -> None:
    """Without a value nothing can be left out: the error has the size of what was sent last."""
    item = decode(Record(value=bytes(1_000) if has_value else None, headers=[("x", bytes(2_000))], offset=1))
    assert isinstance(item, Undecodable)
    dead = DeadLetters(EventProducer(Strict(by_broker=by_broker)), topic="orders.dead")
    with pytest.raises(DeadLetterError, match=r"TOO_LARGE.*; it has 2,\d\d\d bytes, .* and start again"):
        deliver(dead, item, ValueError("no"), attempt=1)
    dead.producer.close()


def test_the_size_of_a_value_stays_if_the_letter_fails_again() -> None:
    """A letter without its value, read from its topic, keeps the size; one with a value has none."""
    first = without_value(dead_letter(RECORD, "first", topic="orders.dead"))
    again = dead_letter(first, "second", topic="orders.dead")
    assert (reason(first).value_size, reason(again).value_size) == (1, 1)
    filled = dead_letter(replace(first, value=b"{"), "third", topic="orders.dead")
    assert reason(filled).value_size is None


def test_other_failures_are_not_tried_again() -> None:
    """A letter is shortened only if it is too large."""
    dead = letters()
    dead.producer.producer.fail_next("_MSG_TIMED_OUT")
    with pytest.raises(DeadLetterError, match="_MSG_TIMED_OUT"):
        deliver(dead, large(), ValueError("no"), attempt=1)
    assert len(dead.producer.producer.log) == 0


class Aiokafka:
    """A client of aiokafka's shape, which refuses values of more than 100 bytes."""

    def __init__(self) -> None:
        self.log: list[Record] = []

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def send(self, topic: str, *, value: bytes | None, key: bytes | None, headers: Any) -> Any:
        assert not (value is key is None)
        if len(value or b"") > 100:
            raise MessageSizeTooLargeError("larger than max_request_size")
        self.log.append(Record(key=key, value=value, headers=headers, topic=topic))
        future = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future


async def send_by_aiokafka(record: Record, **options: Any) -> Record:
    """Return what aiokafka has sent for a record that is not an event."""
    client, item = Aiokafka(), decode(record)
    assert isinstance(item, Undecodable)
    dead = DeadLetters(AsyncEventProducer(client), topic="orders.dead", **options)
    await deliver_awaited(dead, item, ValueError("no"), attempt=1)
    [record] = client.log
    return record


@each("key", [b"k", None])
def test_a_letter_that_is_too_large_for_aiokafka_is_sent_without_its_value(key: bytes | None) -> None:
    """If it has no key either, its key is empty, because aiokafka sends no record without both."""
    record = asyncio.run(send_by_aiokafka(replace(RECORD, key=key, value=bytes(500))))
    assert (record.key, record.value, reason(record).value_size) == (key or b"", None, 500)


def test_another_record_takes_the_place_of_a_letter_that_is_too_large_for_aiokafka() -> None:
    """The function gets the letter with its value."""

    def store(letter: Record) -> Record:
        return replace(letter, value=str(len(letter.value or b"")).encode())

    record = asyncio.run(send_by_aiokafka(replace(RECORD, value=bytes(500)), too_large=store))
    assert (record.value, reason(record).value_size) == (b"500", None)


def test_a_record_without_key_and_value_is_a_letter_by_aiokafka_too() -> None:
    """Its key is then empty, and its value stays null, so that an event without data stays the same event."""
    record = asyncio.run(send_by_aiokafka(replace(RECORD, key=None, value=None)))
    assert (record.key, record.value, reason(record).offset) == (b"", None, 1741)
    assert reason(record).value_size is None
