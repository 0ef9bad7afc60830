"""What a case expects, held against what the library gives; `Unmet` where they differ."""

from __future__ import annotations

import io
import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os.path import commonprefix
from typing import Any, Final

from cloudevents_kafka import registry
from cloudevents_kafka.attributes.types import AttributeType, AttributeValue
from cloudevents_kafka.binding import Decoded, Undecodable, decode, sniff
from cloudevents_kafka.conformance.dataset import Case
from cloudevents_kafka.conformance.notation import as_bytes, as_data, as_headers, as_record, as_value
from cloudevents_kafka.errors import Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats import protobuf_decoder
from cloudevents_kafka.record import Record

_PART: Final = 120  # of a value, in signs
_BEFORE: Final = 120  # characters in front of what must not be told


class Unmet(AssertionError):
    """The library does not do what a case expects; says what it does instead."""


def need(condition: object, what: str) -> None:
    """Raise `Unmet` where a condition does not hold; ``what`` says what it is and what was seen."""
    if not condition:
        raise Unmet(what)


def same(found: object, expected: object, what: str) -> None:
    """Raise `Unmet` where two values differ."""
    if found != expected:
        raise Unmet(unlike(found, expected, what))


def unlike(found: object, expected: object, what: str) -> str:
    """Say that two values differ; of long ones, just what is around the first difference."""
    texts = [repr(expected), repr(found)]
    alike = len(commonprefix(texts))  # noqa: RUF071  # sign by sign is what is wanted
    start = max(0, alike - _PART // 4) if max(map(len, texts)) > _PART else 0
    return f"{what} must be {_part(texts[0], start)}, not {_part(texts[1], start)}"


def _part(text: str, start: int) -> str:
    end = start + _PART
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def judge_both(case: Case) -> None:
    """Judge a record read strictly and, where the case says so, leniently."""
    record = as_record(case["record"])
    with _heeding(case.get("heeds", {})):
        judge(record, case["strict"], lenient=False)
        if "lenient" in case:
            _judge_leniently(record, case["lenient"])
        if "secret" in case:
            _judge_silence(record, case["secret"])


@contextmanager
def _heeding(labels: Mapping[str, Iterable[str]]) -> Iterator[None]:
    """Have values of attributes refused, in this block, that are none of those or a list with another one."""
    with registry.temporarily():
        for name, known in labels.items():
            registry.register_extension(name, AttributeType.STRING, accepts=_all_of(known))
        yield


def _all_of(known: Iterable[str]) -> Callable[[AttributeValue], bool]:
    labels = frozenset(known)
    return lambda value: labels.issuperset(entry.strip() for entry in str(value).split(","))


def _judge_silence(record: Record, secret: str) -> None:
    """Look for a secret in all that a program may print of a record and of what became of it."""
    for lenient in (False, True):
        outcome = decode(record, lenient=lenient)
        told = f"{record!r} {outcome!r} {outcome}"
        if isinstance(outcome, Undecodable):
            told += "".join(traceback.format_exception(outcome.error))
        at = told.find(secret)
        need(at < 0, f"{secret!r} must not be told, but is in …{told[max(at - _BEFORE, 0) : at]}")


def _judge_leniently(record: Record, expected: Case) -> None:
    try:
        judge(record, expected, lenient=True)
    except Unmet as error:
        raise Unmet(f"read leniently, {error}") from None


def judge(record: Record, expected: Case, *, lenient: bool) -> None:
    """Decode a record and hold the outcome against an expectation."""
    outcome = decode(record, lenient=lenient)
    if (verdict := verdict_of(outcome)) != expected["verdict"]:
        seen = outcome.error if isinstance(outcome, Undecodable) else outcome.event
        raise Unmet(f"{unlike(verdict, expected['verdict'], 'the verdict')}: {seen}")
    need(outcome.record is record, "the record must go with the outcome")
    if isinstance(outcome, Undecodable):
        _judge_faults(outcome, expected.get("attributes_at_fault", []))
        return
    judge_event(outcome.event, expected)
    as_is = outcome.event.payload == record.value
    same(as_is, expected["mode"] == "binary", "whether the payload is the value")
    if lenient and "tolerated" in expected:
        same(faults(outcome.tolerated), set(expected["tolerated"]), "what was let pass")
    if not lenient:
        same(outcome.tolerated, (), "what was let pass")
        same(sniff(record.headers).mode, expected["mode"], "the mode")


def verdict_of(outcome: Decoded | Undecodable) -> str:
    """Name an outcome by the word that all vector files use."""
    return outcome.error.verdict if isinstance(outcome, Undecodable) else "event"


def faults(problems: Iterable[Problem]) -> set[str | None]:
    """Name what problems are about."""
    return {problem.attribute for problem in problems}


def _judge_faults(outcome: Undecodable, expected: list[str]) -> None:
    need(str(outcome.error), "an error must say something")
    if expected:
        found = faults(outcome.error.problems)
        need(found == set(expected), f"{unlike(found, set(expected), 'what is at fault')}: {outcome.error}")


def judge_event(event: Event, expected: Case) -> None:
    """Hold an event's attributes, payload and value against an expectation."""
    same(sorted(event.attributes), sorted(expected["attributes"]), "the attributes")
    for name, value in expected["attributes"].items():
        judge_attribute(event, name, value)
    same(event.payload, as_bytes(expected["data"]), "the data")
    if "value" in expected:
        value = as_data(expected["value"])
        need(same_json(event.data, value), unlike(event.data, value, "the decoded data"))


def judge_attribute(event: Event, name: str, expected: Any) -> None:
    """Hold an attribute against a canonical text, or a value of JSON's own."""
    found = event.text(name) if isinstance(expected, str) else event.get(name)
    need(same_json(found, as_value(expected)), unlike(found, expected, name))


def judge_record(record: Record, expected: Case) -> None:
    """Hold a written record against an expectation; the order of headers does not count."""
    same(record.key, as_bytes(expected["key"]), "the key")
    headers = sorted(as_headers(expected["headers"]), key=repr)
    same(sorted(record.headers, key=repr), headers, "the headers")
    judge_value(record.value, expected["value"])


def judge_value(value: bytes | None, expected: Any) -> None:
    """Hold a written value against bytes, a JSON value, or a datum or message in any map order."""
    if not isinstance(expected, dict) or {"text", "repeat"} & expected.keys():
        same(value, as_bytes(expected), "the value")
        return
    ((form, wanted),) = expected.items()
    if value is None:
        raise Unmet(unlike(None, expected, "the value"))
    if form == "json":
        found = _json(value)
        need(same_json(found, wanted), unlike(found, wanted, "the value"))
        return
    read, raw = {"avro": _datum, "protobuf": _fields}[form], bytes.fromhex(wanted)
    need(
        len(value) == len(raw) and same_json(read(value), read(raw)),
        unlike(value.hex(), wanted, f"the {form} value, in any order,"),
    )


def _json(value: bytes) -> Any:
    try:
        return json.loads(value, object_pairs_hook=_once)
    except ValueError as error:
        raise Unmet(f"the value must be JSON, not {value.hex()}: {error}") from None


def _fields(value: bytes) -> list[list[Any]]:
    try:
        return [sorted(fields, key=repr) for fields in protobuf_decoder.read(value)]
    except protobuf_decoder.Malformed as error:
        raise Unmet(f"the value must be a message, not {value.hex()}: {error}") from None


def _datum(value: bytes) -> Any:
    import fastavro  # which takes a while to load

    from cloudevents_kafka.formats.avro import SCHEMA

    try:
        return fastavro.schemaless_reader(io.BytesIO(value), SCHEMA, None)
    except (EOFError, LookupError, OverflowError, ValueError) as error:
        raise Unmet(f"the value must be a datum, not {value.hex()}: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    need(len(members) == len(pairs), f"a member occurs twice: {pairs}")
    return members


def same_json(one: Any, other: Any) -> bool:
    """Compare values with their types: ``True`` is not 1, and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
