"""Run a case of any kind: return if the library does what it says, else raise `CaseFailed`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from cloudevents_kafka.binding import (
    ContentMode,
    KeyMapper,
    attribute_key,
    decode,
    from_record,
    partition_key,
    sniff,
    to_record,
)
from cloudevents_kafka.conformance._assertions import (
    CaseFailed,
    attributes_of,
    check_attribute,
    check_decode,
    check_record,
    require,
    require_equal,
    texts,
    verdict_of,
)
from cloudevents_kafka.conformance._entry_points import MINIMUM, EntryCase, Input, inputs
from cloudevents_kafka.conformance._extensions import run_moment, run_relation, run_sequence, run_size
from cloudevents_kafka.conformance._http import run_http
from cloudevents_kafka.conformance._signing import run_forward, run_sign, run_verify
from cloudevents_kafka.conformance._vectors import (
    MODES,
    MODES_AND_FORMATS,
    AttributeMapper,
    Case,
    ConstructCase,
    EncodeCase,
    EqualCase,
    JsonBatchCase,
    KeyCase,
    MediaTypeCase,
    RelayCase,
    RoundTripCase,
    SniffCase,
    TranscodeCase,
)
from cloudevents_kafka.conformance.notation import as_bytes, as_event, as_headers, as_record, as_value
from cloudevents_kafka.errors import CloudEventsKafkaError, EncodeError, InvalidEvent, NotAnEvent
from cloudevents_kafka.event import Event
from cloudevents_kafka.producer import EventProducer
from cloudevents_kafka.record import Record
from cloudevents_kafka.testing import FakeProducer

_JSON: Final = "application/cloudevents+json"
_BATCH: Final = "application/cloudevents-batch+json"
_PRODUCE: Final = {"0.8": 0, "0.9": 1, "0.10": 2, "0.11": 3}
"""The newest version of the Produce request that brokers of a version accept."""


def run(case: Case) -> None:
    """Run a case of any kind; raises `CaseFailed` and no other error."""
    try:
        RUNNERS[case.kind](case)
    except CloudEventsKafkaError as error:
        raise CaseFailed(f"must succeed, got {type(error).__name__}: {error}") from error
    except (LookupError, ValueError) as error:  # a value of the right type may still make no sense
        raise CaseFailed(f"the case must be valid, got {type(error).__name__}: {error}") from error


# --- attributes and events -----------------------------------------------------


def _run_entry_points(case: EntryCase) -> None:
    for name, given in inputs(case):
        try:
            enter(case, given)
        except (CaseFailed, CloudEventsKafkaError) as error:
            raise CaseFailed(f"{name}: {error}") from error


def enter(case: EntryCase, given: Input) -> None:
    """Construct or read the event of a case by one entry point, or check the attributes at fault."""
    if case.accepted:
        _check_accepted(_event(given), case)
        return
    expected = _faults(case)
    try:
        event = _event(given)
    except InvalidEvent as error:
        found = attributes_of(error.problems)
        require(expected is None or found == expected, f"the fault must be {expected}: {error}")
    except NotAnEvent as error:  # K-09: a record without a required header is not an event
        require(_is_incomplete(case), f"must be a broken event: {error}")
    else:
        raise CaseFailed(f"must be refused, but was accepted as {event}")


def _is_incomplete(case: EntryCase) -> bool:
    if isinstance(case, ConstructCase):
        return bool(MINIMUM.keys() - case.event.attributes.keys())
    return case.absent and case.attribute in MINIMUM


def _faults(case: EntryCase) -> set[str | None] | None:
    """Return the attributes at fault, or None if the case leaves them open."""
    if isinstance(case, ConstructCase):
        return set(case.faults or ())
    if case.fault is None:
        return None
    return {case.fault if isinstance(case.fault, str) else case.attribute}


def _event(given: Input) -> Event:
    return from_record(given) if isinstance(given, Record) else Event(**given)


def _check_accepted(event: Event, case: EntryCase) -> None:
    if isinstance(case, ConstructCase):
        require_equal(texts(event), texts(as_event(case.event)), "the attributes")
        return
    name = case.attribute
    if case.absent:
        require(name not in event and event.get(name) is None, f"{name} must be absent: {event}")
        return
    check_attribute(event, name, as_value(case.value) if case.text is None else case.text)
    if case.typed is not None:
        check_attribute(event, name, case.typed)
    for mode in MODES:
        again = from_record(to_record(event, mode=mode))
        require_equal(again.text(name), event.text(name), f"{name} after {mode} mode")


def _run_equal(case: EqualCase) -> None:
    one, other = map(as_event, case.events)
    require_equal(one == other, case.equal, "whether they are equal")


def _run_round_trip(case: RoundTripCase) -> None:
    event = as_event(case.event)
    for mode, format in MODES_AND_FORMATS:
        again = from_record(to_record(event, mode=mode, format=format))
        require_equal(again, event, f"the event after {format or mode}")


# --- records -------------------------------------------------------------------


def _run_sniff(case: SniffCase) -> None:
    require_equal(sniff(as_headers(case.headers)).mode, case.mode, "the mode")


def _run_encode(case: EncodeCase) -> None:
    headers = as_headers(case.headers)
    try:
        record = to_record(as_event(case.event), mode=case.mode, format=case.format, headers=headers)
        if case.broker is not None:
            record = _through_broker(record, case.broker)
    except (EncodeError, InvalidEvent) as error:
        require(case.refused, f"must be written: {error}")
        return
    if case.refused or case.record is None:
        raise CaseFailed(f"must be refused, but was written as {record}")
    check_record(record, case.record)


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


def _run_transcode(case: TranscodeCase) -> None:
    event = from_record(as_record(case.record))
    check_record(to_record(event, mode=case.mode, format=case.format), case.result)


def _run_relay(case: RelayCase) -> None:
    record = as_record(case.record)
    again = to_record(from_record(record), like=record)
    found = again.key, again.value, again.headers
    require_equal(found, (record.key, record.value, record.headers), "the record")


def _run_key(case: KeyCase) -> None:
    event = as_event(case.event)
    before = (dict(event.attributes), event.payload)
    for mode in MODES:
        record = _send(event, mode, case)
        require_equal(record.key, as_bytes(case.record_key), "the key")
        if case.partition is not None:
            require_equal(record.partition, case.partition, "the partition")
        require_equal((dict(event.attributes), event.payload), before, "the event afterwards")
        require_equal(texts(from_record(record)), texts(event), f"the event sent in {mode} mode")


def _send(event: Event, mode: ContentMode, case: KeyCase) -> Record:
    client = FakeProducer()
    with EventProducer(client, topic="t", mode=mode, key_mapper=_mapper(case.mapper)) as producer:
        producer.send(event, key=as_bytes(case.key), partition=case.partition)
    (message,) = client.log
    return Record.of(message)


def _mapper(notation: str | AttributeMapper | None) -> KeyMapper | None:
    if isinstance(notation, AttributeMapper):
        return attribute_key(notation.attribute)
    return None if notation is None else partition_key


# --- JSON ------------------------------------------------------------------------


def _run_media_type(case: MediaTypeCase) -> None:
    """Check that data is any JSON value with a JSON type, and a string with another (J-12)."""
    base = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    envelope = {**base, "datacontenttype": case.media_type, "data": {"a": 1}}
    verdict = verdict_of(decode(_structured(_JSON, json.dumps(envelope))))
    expected = "event" if case.is_json else "broken-event"
    require_equal(verdict, expected, "the verdict on an object as data")
    try:
        event = Event(**base, datacontenttype=case.media_type, data={"a": 1})
    except InvalidEvent as error:
        require(not case.is_json, f"must be a JSON type: {error}")
    else:
        require(case.is_json, f"must not be a JSON type, but {event} was constructed")


def _run_json_batch(case: JsonBatchCase) -> None:
    """Check that a batch is refused on Kafka (K-01), and that it is valid if its elements are events."""
    require_equal(verdict_of(decode(_structured(_BATCH, case.batch))), "batch", "the verdict")
    require_equal(_is_valid_batch(case.batch), case.accepted, "whether the batch is valid")


def _is_valid_batch(text: str) -> bool:
    try:
        elements = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(elements, list):
        return False
    outcomes = [decode(_structured(_JSON, json.dumps(element))) for element in elements]
    return all(verdict_of(outcome) == "event" for outcome in outcomes)


def _structured(content_type: str, text: str) -> Record:
    return Record(value=text.encode(), headers=[("content-type", content_type.encode())])


RUNNERS: Final[dict[str, Callable[[Any], None]]] = {
    "attribute": _run_entry_points,
    "construct": _run_entry_points,
    "decode": check_decode,
    "encode": _run_encode,
    "equal": _run_equal,
    "forward": run_forward,
    "http": run_http,
    "json-batch": _run_json_batch,
    "key": _run_key,
    "media-type": _run_media_type,
    "moment": run_moment,
    "relation": run_relation,
    "relay": _run_relay,
    "round-trip": _run_round_trip,
    "sequence": run_sequence,
    "sign": run_sign,
    "size": run_size,
    "sniff": _run_sniff,
    "transcode": _run_transcode,
    "verify": run_verify,
}
"""The function that runs a case, by kind."""
