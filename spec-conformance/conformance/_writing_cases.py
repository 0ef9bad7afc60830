"""Cases of events that are written: encoded, transcoded, relayed, compared, sent with a key and by HTTP."""

from __future__ import annotations

import json
from typing import Final, Literal

from msgspec import Struct

from cloudevents_kafka.binding import (
    ContentMode,
    attribute_key,
    from_record,
    partition_key,
    to_record,
)
from cloudevents_kafka.clients.producer import EventProducer
from cloudevents_kafka.errors import EncodeError, InvalidEvent
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record
from cloudevents_kafka.testing import FakeLog, FakeProducer
from conformance._case import (
    MODES,
    MODES_AND_FORMATS,
    CaseFailed,
    Format,
    kind,
    require,
    require_equal,
)
from conformance._compare import check_record, check_value, require_same, texts
from conformance.notation import (
    Bytes,
    EventNotation,
    HeaderPairs,
    RecordNotation,
    Written,
    WrittenRecord,
    as_event,
    as_headers,
    as_record,
)

_PRODUCE: Final = {"0.8": 0, "0.9": 1, "0.10": 2, "0.11": 3}
"""The newest version of the Produce request that brokers of a version accept."""


@kind("encode", accepts=lambda case: not case.refused, one_of=("record", "refused"))
def check_encode(
    event: EventNotation,
    mode: ContentMode,
    format: Format | None = None,
    *,
    headers: HeaderPairs | None = None,
    broker: Literal["0.8", "0.9", "0.10", "0.11"] | None = None,
    record: WrittenRecord | None = None,
    refused: bool = False,
) -> None:
    """Write an event, and compare the record, as it arrives by a broker if the case names one."""
    try:
        written = encoded(event, mode, format, headers)
        if broker is not None:
            written = _through_broker(written, broker)
    except (EncodeError, InvalidEvent) as error:
        require(refused, f"must be written: {error}")
        return
    if refused or record is None:
        raise CaseFailed(f"must be refused, but was written as {written}")
    check_record(written, record)


def encoded(
    event: EventNotation, mode: ContentMode, format: str | None, headers: HeaderPairs | None
) -> Record:
    """Return the record of an event with more headers."""
    return to_record(as_event(event), mode=mode, format=format, headers=as_headers(headers or []))


def _through_broker(record: Record, broker: str) -> Record:
    """Return what a broker of a version delivers of a record; raise `EncodeError` if it refuses it."""
    from cloudevents_kafka.protocol import client, records  # slow to import
    from cloudevents_kafka.protocol.errors import Unsupported

    version = _PRODUCE[broker]
    sent = records.Record(key=record.key, value=record.value, headers=record.headers)
    try:
        client.check_headers("t", sent, version)
    except Unsupported as error:
        raise EncodeError(str(error)) from error
    (arrived,) = records.Batches(client.encode_records([sent], version, records.Codec.NONE)).records()
    return Record(key=arrived.key, value=arrived.value, headers=list(arrived.headers))


@kind("transcode")
def check_transcode(
    record: RecordNotation, mode: ContentMode, result: WrittenRecord, format: Format | None = None
) -> None:
    """Read a record and write it in another mode or format."""
    event = from_record(as_record(record))
    check_record(to_record(event, mode=mode, format=format), result)


@kind("relay")
def check_relay(record: RecordNotation) -> None:
    """Read a record and write it unchanged."""
    read = as_record(record)
    again = to_record(from_record(read), like=read)
    require_equal((again.key, again.value, again.headers), (read.key, read.value, read.headers), "the record")


@kind("round-trip")
def check_round_trip(event: EventNotation) -> None:
    """Write and read an event in every mode and format."""
    written = as_event(event)
    for mode, format in MODES_AND_FORMATS:
        again = from_record(to_record(written, mode=mode, format=format))
        require_equal(again, written, f"the event after {format or mode}")


@kind("equal", accepts=lambda case: case.equal)
def check_equal(events: tuple[EventNotation, EventNotation], *, equal: bool) -> None:
    """Compare two events."""
    first, second = map(as_event, events)
    require_equal(first == second, equal, "whether they are equal")


class AttributeMapper(Struct, forbid_unknown_fields=True):
    """A key mapper that uses an attribute."""

    attribute: str


@kind("key")
def check_key(
    event: EventNotation,
    key: Bytes | None,
    mapper: Literal["partitionkey"] | AttributeMapper | None,
    record_key: Bytes | None,
    partition: int | None = None,
) -> None:
    """Check key and partition of a sent record, and that the event is not changed."""
    sent = as_event(event)
    before = dict(sent.attributes), sent.payload
    key_mapper = attribute_key(mapper.attribute) if isinstance(mapper, AttributeMapper) else partition_key
    for mode in MODES:
        client = FakeProducer(FakeLog(partitions=4))
        with EventProducer(
            client, topic="t", mode=mode, key_mapper=key_mapper if mapper else None
        ) as producer:
            producer.send(sent, key=key, partition=partition)
        (record,) = map(Record.of, client.log)
        require_equal(record.key, record_key, "the key")
        if partition is not None:
            require_equal(record.partition, partition, "the partition")
        require_equal((dict(sent.attributes), sent.payload), before, "the event afterwards")
        require_equal(texts(from_record(record)), texts(sent), f"the event sent in {mode} mode")


class HttpMessage(Struct, forbid_unknown_fields=True):
    """An HTTP message; the names of its headers are in lower case."""

    headers: dict[str, str]
    body: Written


@kind("http", accepts=lambda case: not case.refused, one_of=("event", "refused"))
def check_http(
    message: HttpMessage, mode: ContentMode, event: EventNotation | None = None, *, refused: bool = False
) -> None:
    """Read a message by the official SDK, with the library's events, and write it again."""
    from cloudevents.core.bindings import http  # slow to import
    from cloudevents.core.exceptions import BaseCloudEventException
    from cloudevents.core.formats.json import JSONFormat

    headers, body, json_format = message.headers, message.body, JSONFormat()
    content = json.dumps(body.content).encode() if body.form == "json" else body.content
    try:
        found = Event.of(http.from_http(http.HTTPMessage(headers, content), json_format))
    except (BaseCloudEventException, AttributeError, TypeError, ValueError) as error:  # as the SDK raises
        require(refused, f"must be read: {error}")
        return
    if refused or event is None:
        raise CaseFailed(f"must be refused, but was read as {found}")
    expected = as_event(event)
    require_equal(texts(found), texts(expected), "the event")
    require_same(found.data, expected.data, "the data")
    write = http.to_binary if mode == "binary" else http.to_structured
    written = write(expected, json_format)
    require_equal({name.lower(): text for name, text in written.headers.items()}, headers, "the headers")
    check_value(written.body, body)
