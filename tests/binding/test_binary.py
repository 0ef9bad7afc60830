"""Binary mode: the bytes of headers and values, and the events read from them."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from cloudevents_kafka import BrokenEvent, Decoded, EncodeError, Event, Record, decode, from_record, to_record
from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.binding import _binary, _headers
from tests.support import strategies as make
from tests.support.cases import each

CE = make.required_headers


def least(**more: Any) -> Event:
    return Event(**{"id": "1", "source": "/", "type": "t", **more})


@each(
    ("event", "added", "value"),
    [
        (least(), [], None),
        (least(data=b""), [], b""),
        (least(data=b"\xff\x00"), [], b"\xff\x00"),
        (least(datacontenttype="text/plain"), [("content-type", b"text/plain")], None),
        (least(datacontenttype="text/plain", data="é"), [("content-type", b"text/plain")], b"\xc3\xa9"),
        (
            least(datacontenttype="text/plain;charset=latin-1", data="é"),
            [("content-type", b"text/plain;charset=latin-1")],
            b"\xe9",
        ),
        (
            least(datacontenttype="application/json", data="hi"),
            [("content-type", b"application/json")],
            b'"hi"',
        ),
        (least(data={"a": 1}), [("content-type", b"application/json")], b'{"a":1}'),
        (least(data="I'm"), [("content-type", b"application/json")], b'"I\'m"'),
        (least(data=True), [("content-type", b"application/json")], b"true"),
        (least(x=True, y=False, z=0), [("ce_x", b"true"), ("ce_y", b"false"), ("ce_z", b"0")], None),
        (
            least(x=b"Ma", y=b"", z=-(2**31)),
            [("ce_x", b"TWE="), ("ce_y", b""), ("ce_z", b"-2147483648")],
            None,
        ),
        (least(x='Euro € 😀 a%20b "q"'), [("ce_x", b'Euro \xe2\x82\xac \xf0\x9f\x98\x80 a%20b "q"')], None),
        (least(time=datetime(2018, 4, 5, tzinfo=UTC)), [("ce_time", b"2018-04-05T00:00:00Z")], None),
        (least(time="2018-04-05t00:00:00.10-00:00"), [("ce_time", b"2018-04-05t00:00:00.10-00:00")], None),
        (least(partitionkey="p"), [("ce_partitionkey", b"p")], None),
        (least(x=""), [("ce_x", b"")], None),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_records_byte_for_byte(event: Event, added: Any, value: bytes | None) -> None:
    """Headers are canonical texts in UTF-8, unquoted; absent data is null; no key or header is added."""
    record = to_record(event)
    assert record.headers == [*CE, *added]
    assert record.value == value
    assert record.key is None
    again = from_record(record)
    assert again.payload == event.payload
    assert {n: again.text(n) for n in event} == {n: event.text(n) for n in event}


def test_a_content_type_of_event_formats_is_refused() -> None:
    """Receivers would read the record as a structured one."""
    for content_type in ("application/cloudevents+json", "Application/CloudEvents"):
        with pytest.raises(EncodeError, match="K-20"):
            to_record(least(datacontenttype=content_type, data=b"{}"))


@each(
    ("added", "clauses"),
    [
        ([("ce_id", b"1")], ["N-05"]),
        ([("ce_id", b"1"), ("ce_id", b"2"), ("ce_id", b"3"), ("ce_x", b""), ("ce_x", b"")], ["N-05", "N-05"]),
        ([("content-type", b"a/b"), ("content-type", b"a/b")], ["N-05"]),
        ([("ce_subject", b"\xff")], ["K-06"]),
        ([("content-type", b"\xff")], ["K-06"]),
        ([("ce_SUBJECT", b"x")], ["N-01"]),
        ([("ce_my_ext", b"x")], ["N-01"]),
        ([("ce_data", b"x")], ["N-04"]),
        ([("ce_datacontenttype", b"a/b")], ["K-04"]),
        ([("ce_datacontenttype", b"")], ["K-04"]),
        ([("ce_datacontenttype", b"a/b"), ("content-type", b"a/c")], ["K-04"]),
        ([("ce_subject", b"")], ["R-12"]),
        ([("ce_x", b"\x00")], ["T-06"]),
        ([("ce_sampledrate", b"0")], ["X-05"]),
        ([("ce_time", b"noon"), ("ce_x", b"\x00"), ("ce_data", b"")], ["T-12", "T-06", "N-04"]),
        ([("content-type", b"xyz"), ("ce_datacontenttype", b"a/b")], ["K-04", "R-07"]),
        ([("ce_datacontenttype", b"a/b"), ("ce_datacontenttype", b"a/b")], ["N-05", "K-04"]),
        ([("ce_time", b"noon"), ("ce_time", b"later")], ["N-05", "T-12"]),
        ([("ce_time", b"\xff"), ("ce_time", b"later")], ["K-06", "N-05", "T-12"]),
        ([("ce_my_ext", b"x"), ("ce_my_ext", b"y")], ["N-05", "N-01"]),
        ([("ce_data", b"x"), ("ce_data", b"\xff")], ["K-06", "N-05", "N-04"]),
        ([("ce_datacontenttype", b"\xff"), ("ce_time", b"noon")], ["K-06", "T-12"]),
        ([("ce_time", b"noon"), ("ce_datacontenttype", b"\xff"), ("content-type", b"a/b")], ["K-06", "T-12"]),
        ([("ce_datacontenttype", b"a/b"), ("ce_datacontenttype", b"a/c")], ["N-05", "K-04"]),
        ([("foo", b""), ("ce_subject", None), ("ce_time", b"noon")], ["T-12"]),
    ],
)
def test_all_broken_headers_are_reported(added: Any, clauses: list[str]) -> None:
    """Each broken header is a problem with its clause; the error has the record."""
    record = Record(headers=[*CE, *added], value=b"x")
    with pytest.raises(BrokenEvent) as caught:
        from_record(record)
    assert [p.clause for p in caught.value.problems] == clauses
    assert caught.value.record is record


@each(
    "added",
    [
        [("ce_", b"\xff")],
        [("ce_subject", None)],
        [("content-type", None)],
        [("traceparent", b"\xff"), ("foo", None), ("foo", b""), ("", b"")],
        [("CE_ID", b"2"), ("Content-Type", b"a/b"), ("ce-id", b"3"), ("cE_x", b"")],
        [(b"ce_id", b"2"), (5, b""), (None, None)],
    ],
)
def test_other_headers_are_not_attributes(added: Any) -> None:
    """Other headers and null headers neither break the event nor change it, in any order."""
    for headers in ([*CE, *added], [*added, *CE]):
        for _ in range(2):  # the second time their names are known
            assert from_record(Record(headers=headers)) == least()


@each("name", ["Ce_x", "ce-" + "x" * 300, "CONTENT-TYPE"])
def test_nearly_right_names_are_foreign_but_for_lenient_reading(name: str) -> None:
    """Strict reading ignores a header with nearly a name of the binding, and lenient reading reports it."""
    record = Record(headers=[*CE, (name, b"a/b")])
    for _ in range(2):  # the second time its name is known
        assert from_record(record) == least()
        found = decode(record, lenient=True)
        assert isinstance(found, Decoded)
        assert [problem.attribute for problem in found.tolerated] == [name]
        assert len(found.event.attributes) == len(CE) + 1


# What is the attribute in a header: "" if its name is invalid, None for others, "?" for a nearly right name.
ATTRIBUTES = {
    "ce_id": "id",
    "content-type": "datacontenttype",
    "ce_datacontenttype": "a copy",
    "ce_time": "time",
    "ce_sampledrate": "sampledrate",
    "ce_x": "x",
    "ce_X": "",
    "ce_": None,
    "foo": None,
    "CE_y": "?",
    "Content-Type": "?",
}


def texts_of(headers: list[tuple[str, Any]], *, lenient: bool) -> dict[str, str] | None:
    """Return the attributes in headers, None if one breaks a rule."""
    texts: dict[str, str] = {}
    for header, value in headers:
        name = ATTRIBUTES[header]
        if value is None or name is None or (name == "?" and not lenient):
            continue
        if name in texts or name in {"", "?"} or type(value) is not bytes or value == b"\xff":
            return None
        texts[name] = value.decode()
    named = texts.get("datacontenttype")
    return texts if texts.get("a copy", named) == named else None


def test_headers_are_read_in_one_way_from_any_cache() -> None:
    """The reader of valid headers has the same attributes and rules for names that are new and known."""
    table, chance, seen = current.table, random.Random(48), Counter[bool]()
    for _ in range(5000):
        if chance.random() < 0.2:
            for cache in (table.header_names, table.header_checks, _binary._misspelled):
                cache.clear()
        values = [b"a/b", b"a/b", b"a/b", b"a", None, *([b"\xff", "a/b"] if chance.random() < 0.2 else [])]
        names = chance.choices([*ATTRIBUTES], k=chance.randrange(6))
        headers = [(name, chance.choice(values)) for name in names]
        for lenient in (False, True):
            expected = texts_of(headers, lenient=lenient)
            found = _binary.read_headers(headers, table, lenient)
            seen[found is None] += 1
            if expected is None:
                assert found is None, headers
                continue
            assert found is not None, headers
            rules = [name for name in expected if name == "a copy" or name in table.checks]
            assert len(found[1] or ()) == len(rules), headers
            expected.pop("a copy", None)
            assert found[0] == expected, headers
    assert min(seen.values()) > 1000


def test_a_tombstone_is_an_event_without_data_both_ways() -> None:
    """A null value is absent data, an empty value is data of 0 bytes."""
    assert from_record(Record(headers=CE, value=None)).payload is None
    assert from_record(Record(headers=CE, value=b"")).payload == b""
    assert to_record(least()).value is None


def test_a_content_type_is_not_guessed() -> None:
    """Without a content type, bytes that look like JSON stay bytes."""
    event = from_record(Record(headers=CE, value=b"123"))
    assert event.data == b"123"
    assert event.datacontenttype is None


def test_caches_of_header_names_are_bounded() -> None:
    """The caches of header names are bounded in number and in length."""
    for number in range(5000):
        from_record(Record(headers=[*CE, (f"h{number}", b""), (f"ce_h{number}", b"")]))
        assert _headers.header_of(f"h{number}") == f"ce_h{number}"
    from_record(Record(headers=[*CE, ("h" * 10**6, b"")]))
    assert len(current.table.header_names) <= 4096
    assert len(_headers.header_names) <= 4096
    assert max(map(len, current.table.header_names)) <= 256


@each("lenient", [False, True])
@each("name", ["id", "source"])
def test_a_required_header_that_is_not_utf8_is_not_missing(name: str, *, lenient: bool) -> None:
    """The header is present, so only its own problem is reported."""
    bad = {f"ce_{name}": b"\xff"}
    headers = [(header, bad.get(header, value)) for header, value in make.required_headers]
    with pytest.raises(BrokenEvent) as caught:
        from_record(Record(headers=headers), lenient=lenient)
    assert [(p.attribute, p.clause) for p in caught.value.problems] == [(f"ce_{name}", "K-06")]
