"""Cases of events that are written: encoded, transcoded, relayed, compared, sent with a key and by HTTP."""

from __future__ import annotations

import json
from typing import ClassVar, Final, Literal

from msgspec import Struct, field

from cloudevents_kafka.binding import (
    ContentMode,
    KeyMapper,
    attribute_key,
    from_record,
    partition_key,
    to_record,
)
from cloudevents_kafka.conformance._case import (
    MODES,
    MODES_AND_FORMATS,
    Case,
    CaseFailed,
    Format,
    require,
    require_equal,
)
from cloudevents_kafka.conformance._compare import check_record, check_value, require_same, texts
from cloudevents_kafka.conformance.notation import (
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
from cloudevents_kafka.errors import EncodeError, InvalidEvent
from cloudevents_kafka.event import Event
from cloudevents_kafka.producer import EventProducer
from cloudevents_kafka.record import Record
from cloudevents_kafka.testing import FakeProducer

_PRODUCE: Final = {"0.8": 0, "0.9": 1, "0.10": 2, "0.11": 3}
"""The newest version of the Produce request that brokers of a version accept."""


class EncodeCase(Case, tag="encode"):
    """An event to write."""

    one_of: ClassVar = ("record", "refused")
    event: EventNotation
    mode: ContentMode
    format: Format | None = None
    headers: HeaderPairs = field(default_factory=list)
    broker: Literal["0.8", "0.9", "0.10", "0.11"] | None = None
    record: WrittenRecord | None = None
    refused: bool = False

    def encode(self) -> Record:
        """Return the record of the event."""
        headers = as_headers(self.headers)
        return to_record(as_event(self.event), mode=self.mode, format=self.format, headers=headers)

    def _check(self) -> None:
        """Compare the record, as it arrives by a broker if the case names one."""
        try:
            record = self.encode()
            if self.broker is not None:
                record = _through_broker(record, self.broker)
        except (EncodeError, InvalidEvent) as error:
            require(self.refused, f"must be written: {error}")
            return
        if self.refused or self.record is None:
            raise CaseFailed(f"must be refused, but was written as {record}")
        check_record(record, self.record)


def _through_broker(record: Record, broker: str) -> Record:
    """Return what arrives of a record by a broker of a version; `EncodeError` if it refuses the record."""
    from cloudevents_kafka.protocol import client, records  # slow to import
    from cloudevents_kafka.protocol.errors import Unsupported

    version = _PRODUCE[broker]
    sent = records.Record(key=record.key, value=record.value, headers=record.headers)
    queued = client.QueuedRecord("t", 0, sent, None, client.Deadline(0))
    try:
        client.check_headers(queued, version)
    except Unsupported as error:
        raise EncodeError(str(error)) from error
    batch = client.ProducerBatch(("t", 0), [queued], client.NO_PRODUCER_ID, -1)
    (arrived,) = records.Batches(batch.encode(version, records.Codec.NONE)).records()
    return Record(key=arrived.key, value=arrived.value, headers=list(arrived.headers))


class TranscodeCase(Case, tag="transcode"):
    """A record to read and to write in another mode or format."""

    record: RecordNotation
    mode: ContentMode
    result: WrittenRecord
    format: Format | None = None

    def _check(self) -> None:
        event = from_record(as_record(self.record))
        check_record(to_record(event, mode=self.mode, format=self.format), self.result)


class RelayCase(Case, tag="relay"):
    """A record to read and to write unchanged."""

    record: RecordNotation

    def _check(self) -> None:
        record = as_record(self.record)
        again = to_record(from_record(record), like=record)
        found = again.key, again.value, again.headers
        require_equal(found, (record.key, record.value, record.headers), "the record")


class RoundTripCase(Case, tag="round-trip"):
    """An event to write and read in every mode and format."""

    event: EventNotation

    def _check(self) -> None:
        event = as_event(self.event)
        for mode, format in MODES_AND_FORMATS:
            again = from_record(to_record(event, mode=mode, format=format))
            require_equal(again, event, f"the event after {format or mode}")


class EqualCase(Case, tag="equal"):
    """Two events to compare."""

    events: tuple[EventNotation, EventNotation]
    equal: bool

    def _check(self) -> None:
        one, other = map(as_event, self.events)
        require_equal(one == other, self.equal, "whether they are equal")


class AttributeMapper(Struct, forbid_unknown_fields=True):
    """A key mapper that uses an attribute."""

    attribute: str


class KeyCase(Case, tag="key"):
    """An event to send with a key or a key mapper."""

    event: EventNotation
    key: Bytes | None
    mapper: Literal["partitionkey"] | AttributeMapper | None
    record_key: Bytes | None
    partition: int | None = None

    def _check(self) -> None:
        """Check key and partition of the sent record, and that the event is not changed."""
        event = as_event(self.event)
        before = (dict(event.attributes), event.payload)
        for mode in MODES:
            record = self._send(event, mode)
            require_equal(record.key, self.record_key, "the key")
            if self.partition is not None:
                require_equal(record.partition, self.partition, "the partition")
            require_equal((dict(event.attributes), event.payload), before, "the event afterwards")
            require_equal(texts(from_record(record)), texts(event), f"the event sent in {mode} mode")

    def _send(self, event: Event, mode: ContentMode) -> Record:
        mapper: KeyMapper | None = None if self.mapper is None else partition_key
        if isinstance(self.mapper, AttributeMapper):
            mapper = attribute_key(self.mapper.attribute)
        client = FakeProducer()
        with EventProducer(client, topic="t", mode=mode, key_mapper=mapper) as producer:
            producer.send(event, key=self.key, partition=self.partition)
        (message,) = client.log
        return Record.of(message)


class HttpMessage(Struct, forbid_unknown_fields=True):
    """An HTTP message; the names of its headers are in lower case."""

    headers: dict[str, str]
    body: Written


class HttpCase(Case, tag="http"):
    """An HTTP message that the binding of the official SDK reads and writes, with the library's events."""

    one_of: ClassVar = ("event", "refused")
    message: HttpMessage
    mode: ContentMode
    event: EventNotation | None = None
    refused: bool = False

    def _check(self) -> None:
        """Read the message as the expected event and write it as the same message, or refuse it."""
        from cloudevents.core.bindings import http  # slow to import
        from cloudevents.core.exceptions import BaseCloudEventException
        from cloudevents.core.formats.json import JSONFormat

        headers, body, json_format = self.message.headers, self.message.body, JSONFormat()
        content = json.dumps(body.content).encode() if body.form == "json" else body.content
        try:
            found = Event.of(http.from_http(http.HTTPMessage(headers, content), json_format))
        except (BaseCloudEventException, AttributeError, TypeError, ValueError) as error:  # as the SDK raises
            require(self.refused, f"must be read: {error}")
            return
        if self.refused or self.event is None:
            raise CaseFailed(f"must be refused, but was read as {found}")
        event = as_event(self.event)
        require_equal(texts(found), texts(event), "the event")
        require_same(found.data, event.data, "the data")
        write = http.to_binary if self.mode == "binary" else http.to_structured
        written = write(event, json_format)
        require_equal({name.lower(): text for name, text in written.headers.items()}, headers, "the headers")
        check_value(written.body, body)
