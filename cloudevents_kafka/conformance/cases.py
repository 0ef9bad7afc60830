"""How a case of each kind is run: quietly where the library does as it says, else `Unmet`."""

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
from cloudevents_kafka.conformance.assertions import (
    Unmet,
    faults,
    judge_attribute,
    judge_both,
    judge_record,
    need,
    same,
    verdict_of,
)
from cloudevents_kafka.conformance.broker_versions import carried
from cloudevents_kafka.conformance.dataset import Case
from cloudevents_kafka.conformance.entry_points import MINIMUM, Given, attempts
from cloudevents_kafka.conformance.extensions import run_moment, run_relation, run_sequence, run_size
from cloudevents_kafka.conformance.http import run_http
from cloudevents_kafka.conformance.modes import WAYS
from cloudevents_kafka.conformance.notation import as_bytes, as_event, as_headers, as_record
from cloudevents_kafka.conformance.signing import run_forward, run_sign, run_verify
from cloudevents_kafka.errors import CloudEventsKafkaError, EncodeError, InvalidEvent, NotAnEvent
from cloudevents_kafka.event import Event
from cloudevents_kafka.producer import EventProducer
from cloudevents_kafka.record import Record
from cloudevents_kafka.testing import FakeProducer

_MODES: Final[tuple[ContentMode, ...]] = ("binary", "structured")

_JSON: Final = "application/cloudevents+json"
_BATCH: Final = "application/cloudevents-batch+json"


def run(case: Case) -> None:
    """Run a case of any kind; raises `Unmet`, and nothing else for a case the schema accepts."""
    try:
        KINDS[case["kind"]](case)
    except CloudEventsKafkaError as error:
        raise Unmet(f"must go well, not end in {type(error).__name__}: {error}") from error
    except (LookupError, ValueError) as error:  # the schema does not say all that a case has to have
        raise Unmet(f"must make sense: {type(error).__name__}: {error}") from error


def accepts(case: Case) -> bool:
    """Tell whether a case is one of something that is good, or of something that is refused."""
    if case["kind"] == "decode":
        return bool(case["strict"]["verdict"] == "event")
    if case["kind"] in {"moment", "size"}:
        return not case.get("over", case.get("too_large"))
    if case["kind"] == "sequence":
        good = {"unnumbered", "first", "next", *(["same"] if "attribute" in case else [])}
        return good.issuperset(case["orders"])
    if case["kind"] == "sniff":
        return case["mode"] in _MODES
    told = {
        "attribute": "accepted",
        "construct": "accepted",
        "forward": "signed",
        "json-batch": "accepted",
        "media-type": "is_json",
        "relation": "holds",
        "verify": "verified",
    }
    if case["kind"] in told:
        return bool(case[told[case["kind"]]])
    return not case.get("refused", False) and bool(case.get("equal", True))


# --- attributes and events -----------------------------------------------------


def _entering(case: Case) -> None:
    for door, given in attempts(case):
        try:
            enter(case, given)
        except (Unmet, CloudEventsKafkaError) as error:
            raise Unmet(f"by way of {door}: {error}") from error


def enter(case: Case, given: Given) -> None:
    """Try an attribute or an event by one door: accepted with its values, or refused naming the faults."""
    if case["accepted"]:
        judge = _judge_attribute if case["kind"] == "attribute" else _judge_event
        judge(_event_of(given), case)
        return
    expected = _faults_of(case)
    try:
        event = _event_of(given)
    except InvalidEvent as error:
        found = faults(error.problems)
        need(expected is None or found == expected, f"the fault must be {expected}: {error}")
    except NotAnEvent as error:  # a record without a required header has a word of its own
        need(_lacks_a_required_one(case), f"must be a broken event: {error}")
    else:
        raise Unmet(f"must be refused, but gave {event}")


def _lacks_a_required_one(case: Case) -> bool:
    if case["kind"] == "construct":
        return bool(MINIMUM.keys() - case["event"]["attributes"].keys())
    return bool(case.get("absent")) and case["attribute"] in MINIMUM


def _faults_of(case: Case) -> set[str | None] | None:
    """Name what has to be at fault; None where that is left open."""
    if "faults" in case:
        return set(case["faults"])
    fault = case.get("fault", case["attribute"])
    return None if fault is None else {fault}


def _event_of(given: Given) -> Event:
    return from_record(given) if isinstance(given, Record) else Event(**given)


def _judge_attribute(event: Event, case: Case) -> None:
    name = case["attribute"]
    if case.get("absent"):
        need(name not in event and event.get(name) is None, f"{name} must be absent: {event}")
        return
    judge_attribute(event, name, case.get("text", case.get("value")))
    if "typed" in case:
        judge_attribute(event, name, case["typed"])
    for mode in _MODES:
        same(
            from_record(to_record(event, mode=mode)).text(name), event.text(name), f"{name} after {mode} mode"
        )


def _judge_event(event: Event, case: Case) -> None:
    same(_texts(event), _texts(as_event(case["event"])), "the attributes")


def _equal(case: Case) -> None:
    one, other = map(as_event, case["events"])
    same(one == other, case["equal"], "whether they are equal")


def _round_trip(case: Case) -> None:
    event = as_event(case["event"])
    for mode, form in WAYS:
        again = from_record(to_record(event, mode=mode, format=form))
        same(again, event, f"the event after {form or mode}")


# --- records -------------------------------------------------------------------


def _sniff(case: Case) -> None:
    same(sniff(as_headers(case["headers"])).mode, case["mode"], "the mode")


def _encode(case: Case) -> None:
    headers = as_headers(case.get("headers", []))
    try:
        event = as_event(case["event"])
        record = to_record(event, mode=case["mode"], format=case.get("format"), headers=headers)
        if "broker" in case:
            record = carried(record, case["broker"])
    except (EncodeError, InvalidEvent) as error:
        need(case.get("refused"), f"must be written: {error}")
    else:
        need(not case.get("refused"), f"must be refused, but was written as {record}")
        judge_record(record, case["record"])


def _transcode(case: Case) -> None:
    event = from_record(as_record(case["record"]))
    judge_record(to_record(event, mode=case["mode"], format=case.get("format")), case["result"])


def _relay(case: Case) -> None:
    record = as_record(case["record"])
    again = to_record(from_record(record), like=record)
    same((again.key, again.value, again.headers), (record.key, record.value, record.headers), "the record")


def _key(case: Case) -> None:
    event = as_event(case["event"])
    before = (dict(event.attributes), event.payload)
    for mode in _MODES:
        record = _sent(event, mode, case)
        same(record.key, as_bytes(case["record_key"]), "the key")
        same(record.partition, case.get("partition", record.partition), "the partition")
        same((dict(event.attributes), event.payload), before, "the event afterwards")
        same(_texts(from_record(record)), _texts(event), f"the event that was sent in {mode} mode")


def _sent(event: Event, mode: ContentMode, case: Case) -> Record:
    client = FakeProducer()
    with EventProducer(client, topic="t", mode=mode, key_mapper=_mapper(case["mapper"])) as producer:
        producer.send(event, key=as_bytes(case["key"]), partition=case.get("partition"))
    (message,) = client.log
    return Record.of(message)


def _texts(event: Event) -> dict[str, str | None]:
    return {name: event.text(name) for name in event}


def _mapper(notation: str | dict[str, str] | None) -> KeyMapper | None:
    if isinstance(notation, dict):
        return attribute_key(notation["attribute"])
    return {None: None, "partitionkey": partition_key}[notation]


# --- JSON ------------------------------------------------------------------------


def _media_type(case: Case) -> None:
    """Under a JSON type data is any JSON value; under another it is a string."""
    base = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    envelope = {**base, "datacontenttype": case["media_type"], "data": {"a": 1}}
    outcome = decode(_structured(_JSON, json.dumps(envelope)))
    same(
        verdict_of(outcome),
        "event" if case["is_json"] else "broken-event",
        "the verdict on an object as data",
    )
    try:
        made = Event(**base, datacontenttype=case["media_type"], data={"a": 1})
    except InvalidEvent as error:
        need(not case["is_json"], f"must be a JSON type: {error}")
    else:
        need(case["is_json"], f"must not be a JSON type, but {made} was made")


def _json_batch(case: Case) -> None:
    """Refuse a batch on Kafka as a batch; its elements are events, or the batch is bad."""
    same(verdict_of(decode(_structured(_BATCH, case["batch"]))), "batch", "the verdict")
    same(_is_good_batch(case["batch"]), case["accepted"], "whether it is a good batch")


def _is_good_batch(text: str) -> bool:
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


KINDS: Final[dict[str, Callable[[Any], None]]] = {
    "attribute": _entering,
    "construct": _entering,
    "decode": judge_both,
    "encode": _encode,
    "equal": _equal,
    "forward": run_forward,
    "http": run_http,
    "json-batch": _json_batch,
    "key": _key,
    "media-type": _media_type,
    "moment": run_moment,
    "relation": run_relation,
    "relay": _relay,
    "round-trip": _round_trip,
    "sequence": run_sequence,
    "sign": run_sign,
    "size": run_size,
    "sniff": _sniff,
    "transcode": _transcode,
    "verify": run_verify,
}
"""Kinds of case, by name, each with what runs one."""
