"""The errors of clients: which are gone through, which are raised, and who decides."""

from __future__ import annotations

import logging
import re
from itertools import chain, islice
from typing import Any

import pytest
from confluent_kafka import KafkaError

from cloudevents_kafka import ConsumeError, Decoded, Event, EventConsumer, to_record
from cloudevents_kafka.clients._errors import MENDED, PARTITION_EOF
from cloudevents_kafka.testing import FakeConsumer, FakeMessage
from tests.support.cases import each


def failing(*codes: str, **options: Any) -> EventConsumer[FakeConsumer]:
    """Return a consumer of two events whose client returns errors before them."""
    records = [to_record(Event(id=str(n), source="/s", type="t")) for n in range(2)]
    client = FakeConsumer([FakeMessage("orders", record.value, headers=record.headers) for record in records])
    client.subscribe(["orders"])
    client.fail_next(*codes)
    return EventConsumer(client, **options)


def ids(events: EventConsumer[Any], *, batches: bool = False) -> list[str]:
    lists = events.batches(10, 0.01, idle_timeout=1)
    found = chain.from_iterable(lists) if batches else events.items(idle_timeout=1)
    return [item.event.id for item in islice(found, 2) if isinstance(item, Decoded)]


_OF_CLIENT, _OF_FINAL = (ConsumeError.__doc__ or "").split("All other errors are final")
NAMES = sorted(set(re.findall(r"\b(?:_[A-Z_]+|[A-Z]+_[A-Z_]+)\b", _OF_CLIENT)))
"""The errors that the client mends, as a user reads them."""


def test_the_table_has_the_numbers_of_the_client() -> None:
    """Each name in the docstring, and no other, has its number in the table."""
    assert len(NAMES) > 30
    assert {getattr(KafkaError, name) for name in NAMES} == MENDED
    assert PARTITION_EOF == KafkaError._PARTITION_EOF


def test_the_docstring_lists_which_is_which() -> None:
    """A user reads in it the usual final errors, too."""
    assert FINAL.keys() - {"UNKNOWN"} <= set(re.findall(r"\w+", _OF_FINAL))


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("code", NAMES)
def test_what_the_client_mends_is_logged(
    code: str, *, batches: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Iteration goes on, and the log says what the client said."""
    assert ids(failing(code, "_PARTITION_EOF"), batches=batches) == ["0", "1"]
    ((name, level, message),) = caplog.record_tuples
    assert (name, level) == ("cloudevents_kafka.consumer", logging.WARNING)
    assert code in message
    assert message.endswith("; reading goes on")


FINAL = {
    "TOPIC_AUTHORIZATION_FAILED": "grant the client READ and DESCRIBE on the topic",
    "GROUP_AUTHORIZATION_FAILED": "grant the client READ on the group",
    "_AUTO_OFFSET_RESET": "seek to an offset of the partition",
    "MSG_SIZE_TOO_LARGE": "receive.message.max.bytes",
    "_FATAL": "close the consumer and create another",
    "INCONSISTENT_GROUP_PROTOCOL": "the consumer failed",
    "UNKNOWN": "the consumer failed",
    "_BAD_MSG": "the consumer failed",
}


@each("batches", [False, True])
@each("code", FINAL)
def test_what_is_final_is_raised(code: str, *, batches: bool) -> None:
    """The error says what to do, and iterating again returns the records."""
    events = failing(code)
    with pytest.raises(ConsumeError, match=FINAL[code]) as caught:
        ids(events, batches=batches)
    assert caught.value.final
    assert ids(events, batches=batches) == ["0", "1"]


@pytest.mark.parametrize("batches", [False, True])
def test_on_error_decides(*, batches: bool, caplog: pytest.LogCaptureFixture) -> None:
    """True goes on, False raises, and None leaves the decision to the consumer."""
    seen: list[tuple[bool, bool | None]] = []
    decisions = iter([True, True, None, False])

    def decide(error: ConsumeError) -> bool | None:
        seen.append((error.final, next(decisions)))
        return seen[-1][1]

    codes = ["TOPIC_AUTHORIZATION_FAILED", "_TRANSPORT", "_TRANSPORT", "_TRANSPORT"]
    events = failing(*codes, on_error=decide)
    with pytest.raises(ConsumeError, match="_TRANSPORT"):
        ids(events, batches=batches)
    assert seen == [(True, True), (False, True), (False, None), (False, False)]
    assert len(caplog.records) == 1
    assert ids(events, batches=batches) == ["0", "1"]


def test_a_fatal_error_is_raised_in_any_case() -> None:
    """After it the client returns nothing, so a loop would not end."""

    class Fatal:
        def error(self) -> KafkaError:
            return KafkaError(KafkaError.FENCED_INSTANCE_ID, "fenced", fatal=True)

        def topic(self) -> None:
            return None

        partition = offset = topic

    class Fenced(FakeConsumer):
        def poll(self, timeout: float = -1) -> Any:
            return Fatal()

    with pytest.raises(ConsumeError, match="FENCED_INSTANCE_ID"):
        EventConsumer(Fenced(), on_error=lambda error: True).poll()


def test_the_error_names_its_place() -> None:
    """Topic, partition and offset are in the message, as far as the client names them."""

    class Corrupt(FakeConsumer):
        def poll(self, timeout: float = -1) -> Any:
            return FakeMessage("orders", partition=2, offset=7, error=KafkaError(KafkaError._BAD_MSG))

    with pytest.raises(ConsumeError, match=r"^orders\[2\]@7: the consumer failed: .*_BAD_MSG") as caught:
        EventConsumer(Corrupt()).poll()
    assert caught.value.where == "orders[2]@7"


def test_on_error_may_seek() -> None:
    """What was gathered behind the error is dropped by a seek in the function."""
    events: EventConsumer[FakeConsumer]

    def decide(error: ConsumeError) -> bool:
        events.discard()
        return True

    events = failing("_AUTO_OFFSET_RESET", on_error=decide)
    assert ids(events, batches=True) == []
