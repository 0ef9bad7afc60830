"""The headers of a client's message, by messages of the shapes that clients have."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    AsyncEventConsumer,
    BrokenEvent,
    ConsumeError,
    DeadLetter,
    Decoded,
    Event,
    EventConsumer,
    NotAnEvent,
    Record,
    Undecodable,
    dead_letter,
    decode,
    from_record,
    sniff,
    to_record,
)
from cloudevents_kafka.message_headers import UnreadHeaders, headers_of
from cloudevents_kafka.testing import FakeConsumer, FakeLog, FakeMessage
from tests.support.cases import each

GOOD = to_record(Event(id="1", source="/shop", type="order.placed")).headers
REASON = r"header names must be UTF-8, got b'ce_\xff' (K-06, Kafka binding 3.2.3)"


def bad_message() -> FakeMessage:
    return FakeMessage("orders", b"17", b"customer-4", [*GOOD, ("ce_\udcff", b"x")], offset=7, timestamp=9)


class Once(FakeMessage):
    """A message that counts the calls of ``headers``."""

    calls = 0

    def headers(self) -> Any:
        self.calls += 1
        return super().headers()


def test_all_else_of_a_message_is_kept() -> None:
    """The record has the key, the value, the place and the timestamp; its error has the name and clause."""
    item = decode(bad_message())
    assert isinstance(item, Undecodable)
    record = item.record
    assert (record.key, record.value, record.where, record.timestamp) == (
        *(b"customer-4", b"17", "orders[0]@7", 9),
    )
    assert record.headers == []
    assert repr(record).endswith(
        r"headers=<unread: header names must be UTF-8, got b'ce_\xff'>, where='orders[0]@7')"
    )
    assert isinstance(item.error, BrokenEvent)
    assert str(item.error) == f"orders[0]@7: broken CloudEvent: {REASON}"


def test_the_record_stays_unread() -> None:
    """A copy of the record, and the record in another process, have the same error."""
    record = Record.of(bad_message())
    copies = [
        record,
        Record.of(record),
        pickle.loads(pickle.dumps(record)),
        msgspec.structs.replace(record, topic="others"),
        Record.of({"value": record.value, "headers": record.headers}),
    ]
    for lenient in (False, True):
        for copy in copies:
            item = decode(copy, lenient=lenient)
            assert isinstance(item, Undecodable)
            assert item.error.clauses == ("K-06",)
            with pytest.raises(BrokenEvent, match="header names must be UTF-8"):
                from_record(copy, lenient=lenient)
    assert sniff(bad_message()).reason == r"header names must be UTF-8, got b'ce_\xff'"


def test_a_dead_letter_has_the_key_and_the_value() -> None:
    """Its headers are those of the letter."""
    letter = dead_letter(decode(bad_message()), topic="orders.dead")
    assert (letter.key, letter.value) == (b"customer-4", b"17")
    found = DeadLetter.of(letter)
    assert found is not None
    assert (found.offset, found.clause) == (7, "K-06")
    assert REASON.removesuffix(" (K-06, Kafka binding 3.2.3)") in (found.error or "")


@given(st.lists(st.booleans(), max_size=30), st.integers(1, 7))
def test_headers_are_asked_for_once(bad: list[bool], size: int) -> None:
    """Each message has one call, and each record is an item at its place, in any mix of both kinds."""
    messages = [
        Once("orders", b"17", headers=[*GOOD, ("ce_\udcff", b"")] if is_bad else GOOD) for is_bad in bad
    ]
    events = EventConsumer(FakeConsumer(FakeLog(messages)))
    events.consumer.subscribe(["orders"])
    items = [item for batch in events.batches(size, 0.01, idle_timeout=0) for item in batch]
    assert [isinstance(item, Undecodable) for item in items] == bad
    assert [item.record.offset for item in items] == list(range(len(bad)))
    assert {message.calls for message in messages} <= {1}


def test_headers_of_messages_that_wait_are_asked_for_once() -> None:
    """Neither a record that raises an error nor the close asks for those of the messages behind it."""
    kinds = [GOOD, [], GOOD, GOOD]
    messages = [Once("orders", b"17", headers=headers) for headers in kinds]
    with EventConsumer(FakeConsumer(FakeLog(messages)), strict=True) as events:
        events.consumer.subscribe(["orders"])
        batches = events.batches(4, 0.01)
        assert len(next(batches)) == 1
        with pytest.raises(NotAnEvent):
            next(batches)
        assert (item := events.poll()) is not None
        assert item.record.offset == 2
    assert [message.calls for message in messages[2:]] == [1, 0]


@each(
    "headers",
    [None, [], (), {}, [("a", None)], [["a", b"1"]], (("a", b"1"),), {"a": b"1"}, [("a", b"1")] * 3],
)
def test_whole_headers_are_returned_as_they_are(headers: Any) -> None:
    """A list of a client that was read before is the same list; nothing is an empty list."""

    class Message:
        def headers(self) -> Any:
            return headers

    assert headers_of(Message()) == (headers or [])
    assert not isinstance(headers_of(Message()), UnreadHeaders)


def test_other_errors_of_a_message_are_raised() -> None:
    """A fault of a user's class stays an error of that class."""

    class Message:
        def headers(self) -> Any:
            raise AttributeError("parts")

    with pytest.raises(AttributeError):
        headers_of(Message())


def test_a_good_record_after_a_bad_one_is_an_event() -> None:
    """Nothing of the error is left."""
    assert isinstance(decode(bad_message()), Undecodable)
    assert isinstance(decode(FakeMessage("orders", b"17", headers=GOOD)), Decoded)


class Instrumented(FakeConsumer):
    """A client that reads the headers of what it returns, as OpenTelemetry's instrumentation does."""

    def poll(self, timeout: float = -1) -> Any:
        message = super().poll(timeout)
        if message is not None:
            message.headers()
        return message

    def consume(self, num_messages: int = 1, timeout: float = -1) -> Any:
        messages = super().consume(num_messages, timeout)
        for message in messages:
            message.headers()
        return messages


async def read_by_asyncio(client: FakeConsumer) -> None:
    async with AsyncEventConsumer(client) as events:
        async for _ in events.items(idle_timeout=1):
            pass


@each(
    "read",
    [
        lambda client: EventConsumer(client).poll(),
        lambda client: EventConsumer(client).run(print, on_failure="skip", idle_timeout=1),
        lambda client: next(EventConsumer(client).batches()),
        lambda client: asyncio.run(read_by_asyncio(client)),
    ],
)
def test_a_client_that_reads_headers_itself_is_explained(read: Callable[[FakeConsumer], object]) -> None:
    """Its record is lost to this library, so the error says what reads headers, and what to do."""
    client = Instrumented(FakeLog([bad_message()]))
    client.subscribe(["orders"])
    with pytest.raises(
        ConsumeError, match=r"UTF-8, got b'ce_\\xff' in .* OpenTelemetry's .*; turn this instrumentation off"
    ):
        read(client)


def test_another_error_of_the_interpreter_is_raised_itself() -> None:
    """It has nothing to do with the names of headers."""

    class Failing(FakeConsumer):
        def poll(self, timeout: float = -1) -> Any:
            raise SystemError("other")

    with pytest.raises(SystemError, match="other"):
        EventConsumer(Failing([])).poll()
