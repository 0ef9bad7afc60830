"""Untrusted messages: each is an event of the SDK or an error of both libraries; what is read is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from cloudevents.core.bindings import kafka
from cloudevents.core.exceptions import CloudEventValidationError
from cloudevents.core.v1.event import CloudEvent
from cloudevents.v1 import kafka as kafka1
from cloudevents.v1.exceptions import GenericException
from cloudevents.v1.http import CloudEvent as CloudEvent1
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    BrokenData,
    DecodeError,
    Event,
    InvalidEvent,
    Record,
    from_record,
    sdk,
    to_record,
)
from cloudevents_kafka.record import to_bytes
from cloudevents_kafka.sdk import v1
from tests.support import strategies as make

keys = st.one_of(st.none(), st.binary(max_size=4), st.sampled_from(["k", "", "\x00", b"\xff", b"k"]))
records = st.one_of(make.hostile_records(), make.hostile_records(make.envelopes()))


def is_old(record: Record) -> bool:
    return b"0.3" in (record.value or b"") or any(value == b"0.3" for _, value in record.headers)


@contextmanager
def suppress_both(sdk_class: type[Exception]) -> Iterator[None]:
    """Suppress an error that is one of the SDK's and a `DecodeError`."""
    try:
        yield
    except DecodeError as error:
        if not isinstance(error, sdk_class) or not isinstance(getattr(error, "errors", {}), dict):
            raise


@make.examples(150)
@given(records, keys)
def test_any_message_of_version_2(record: Record, key: Any) -> None:
    """A message is an event, whose attributes are valid, or a `DecodeError` that is also the SDK's."""
    message = kafka.KafkaMessage(dict(record.headers), key, record.value)  # type: ignore[arg-type]
    for read in (sdk.from_kafka_event, sdk.from_binary_event, sdk.from_structured_event):
        if not is_old(record):
            with suppress_both(CloudEventValidationError):
                event = read(message)
                assert type(event) is CloudEvent
                with suppress(InvalidEvent):  # only readers accept what the SDK accepts
                    written = sdk.to_structured_event(event)
                    assert sdk.from_structured_event(written).get_id() == event.get_id()


@make.examples(150)
@given(records, keys)
def test_any_message_of_version_1(record: Record, key: Any) -> None:
    """A message is an event or a `DecodeError` that is also the SDK's, of each function."""
    message = kafka1.KafkaMessage(dict(record.headers), key, record.value)  # type: ignore[arg-type]
    for read in (v1.from_binary, v1.from_structured):
        if not is_old(record):
            with suppress_both(GenericException):
                event = read(message)
                assert type(event) is CloudEvent1
                with suppress(InvalidEvent):
                    assert v1.from_structured(v1.to_structured(event))["id"] == event["id"]


@make.examples(150)
@given(
    make.events(), st.sampled_from(["k", b"k", b"\xff", b"\x00"]), st.sampled_from(["binary", "structured"])
)
def test_what_is_read_is_written_with_its_attributes(event: Event, key: Any, mode: str) -> None:
    """An event that was read keeps attributes and key when it is written, by both versions."""
    record = to_record(event, mode=mode, key=key)  # type: ignore[arg-type]
    for functions, messages, suffix in ((sdk, kafka, "_event"), (v1, kafka1, "")):
        message = messages.KafkaMessage(dict(record.headers), key, record.value)  # type: ignore[attr-defined]
        try:
            read = getattr(functions, f"from_{mode}{suffix}")(message)
        except BrokenData:  # as the SDK's version 1
            assert functions is v1
            assert str(event.datacontenttype).partition(";")[0].endswith("json")
            continue
        again = getattr(functions, f"to_{mode}{suffix}")(read)
        written = from_record(again)
        assert {name: written.text(name) for name in event if name != "time"} == {
            name: event.text(name) for name in event if name != "time"
        }
        assert written.time == event.time
        expected = event.text("partitionkey") or key
        assert to_bytes(again.key) == to_bytes(expected)  # version 2 makes a text of UTF-8
