"""Caches and learned names that threads share change no outcome, whenever a thread switches."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from cloudevents.v1.http import CloudEvent

from cloudevents_kafka import Event, Record, decode, to_record
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.primitives import bounded
from tests.support.interleaving import instructions, interrupted
from tests.support.samples import one_in

HEADERS = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/shop"), ("ce_type", b"t")]
JSON = ("content-type", b"application/cloudevents+json")
HEAD = b'{"specversion":"1.0","id":"1","source":"/shop","type":"t"'
EVENT = Event(
    id="1", source="/shop", type="t", time="2026-01-01T00:00:00Z", tries=3, subject="é", data={"a": 1}
)
IN_FORMATS = [to_record(EVENT, mode="structured", format=name) for name in formats.writable()]
RECORDS = {
    "binary": Record(headers=[*HEADERS, ("ce_region", b"eu"), ("ce_sampledrate", b"5")], value=b"17"),
    "binary in other letters": Record(headers=[(name.title(), value) for name, value in HEADERS], value=b"1"),
    "binary with deviations": Record(headers=[*HEADERS, ("ce_time", b"2026-01-01 00:00:00"), ("ce_n", None)]),
    "binary with a repeated value": Record(headers=[*HEADERS, ("ce_deprecated", b"True"), ("ce_Odd", b"x")]),
    "binary with a foreign header twice": Record(headers=[*HEADERS, ("x", b"y"), ("x", b"z")]),
    "binary with a copy": Record(headers=[*HEADERS, ("ce_datacontenttype", b"text/plain")], value=b"x"),
    "structured": Record(headers=[JSON], value=HEAD + b',"subject":"\xc3\xa9","tries":3,"data":[1]}'),
    "structured, a name twice": Record(headers=[JSON], value=HEAD + b',"tries":3,"tries":4}'),
    "structured in other letters": Record(headers=[JSON], value=HEAD + b',"traceID":"x","Time":null}'),
    "structured with objects": Record(headers=[JSON], value=HEAD + b',"x":{"a":[1, 2]},"y":"z"}'),
    "without a content-type": Record(headers=[("x", b"y")], value=HEAD + b',"dataschema":"no uri"}'),
    "no event": Record(headers=[("ce-x", b"y")], value=b"17"),
    **{f"format {number}": record for number, record in enumerate(IN_FORMATS)},
}
SAMPLE = (("structured", True), ("binary", False))
OTHERS = [
    Record(headers=[*HEADERS, ("ce_other", b"1"), ("CE_More", b"x"), ("foreign", b"y")], value=b"1"),
    Record(headers=[JSON], value=HEAD.replace(b"shop", b"x") + b',"tries":"x","other":true,"userID":"5"}'),
    Record(headers=[("a", b"b")], value=HEAD + b',"deprecated":"TRUE","o":{}}'),
]


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches of one entry, so that each new entry removes the others."""
    monkeypatch.setattr(bounded.remember, "__defaults__", (1,))
    monkeypatch.setattr(bounded, "MAX_ENTRIES", 1)


def read_others() -> None:
    """Read records that fill and empty caches, as another thread may."""
    for other in OTHERS:
        decode(other)
        decode(other, lenient=True)


def check_every_moment(call: Callable[[], Any]) -> None:
    """Compare what a call returns with what it returns if others are read before any of its instructions."""
    expected = repr(call())
    for number in instructions():
        found: list[Any] = []
        reached = interrupted(lambda found=found: found.append(call()), number, read_others)
        assert repr(found[0]) == expected, number
        if not reached:
            break


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize(("name", "lenient"), one_in(2, SAMPLE, members=2))
def test_a_record_is_read_as_it_is_alone(name: str, *, lenient: bool) -> None:
    """The outcome of a record is the same if other records are read between any two of its instructions."""
    check_every_moment(lambda: decode(RECORDS[name], lenient=lenient))


@pytest.mark.release
@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize(
    ("name", "lenient"), [each for each in product(RECORDS, (False, True)) if each not in SAMPLE]
)
def test_each_record_is_read_as_it_is_alone(name: str, *, lenient: bool) -> None:
    """The same holds for records of each kind and format."""
    check_every_moment(lambda: decode(RECORDS[name], lenient=lenient))


@pytest.mark.usefixtures("small_caches")
@pytest.mark.release
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_an_event_is_written_as_it_is_alone(mode: Any) -> None:
    """An event, also one of the official SDK, is written alike if others are read meanwhile."""
    event = CloudEvent({"id": "1", "source": "/shop", "type": "t", "region": "eu", "tries": 3}, b"x")
    time = event["time"]

    def write() -> Record:
        event["time"] = time
        return to_record(event, mode=mode)

    check_every_moment(write)
