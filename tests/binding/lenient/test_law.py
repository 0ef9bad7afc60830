"""The law of lenient reading: only what cannot be an event is refused, and no value is lost."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any, Final

import pytest

from cloudevents_kafka import Decoded, Record, decode, to_record
from cloudevents_kafka.attributes.types import REQUIRED, canonical_text
from cloudevents_kafka.binding._headers import CONTENT_TYPE, fold_name, header_of
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import LeftOut, Problem
from cloudevents_kafka.event import raw_parts
from tests.support import strategies as make
from tests.support.cases import each

_VALID: Final[dict[str, Any]] = {
    "specversion": "1.0",
    "id": "1",
    "source": "/shop",
    "type": "t",
    "datacontenttype": "application/json",
    "dataschema": "urn:x",
    "subject": "s",
    "time": "2018-04-05T17:31:00Z",
    "partitionkey": "k",
    "sampledrate": 5,
    "deprecated": True,
    "tracestate": "a=1",
    "traceparent": "p",
    "myext": "v",
    "number": 7,
}
_NAMES: Final = (
    *("my_ext", "tabular-id", "a.b", "Subject", "dataSchema", "data_schema", "é", "", "Data", "T-ime", "x"),
    *(
        "expirytime",
        "authid",
        "dssematerial",
        "dataref",
        "sentms",
        "MYEXT",
        "MY-EXT",
        "x y",
        "\u212a",
        "n" * 70,
    ),
    *(name for name in _VALID if name not in REQUIRED),
)
_TEXTS: Final = (
    *(
        "",
        "v",
        "é",
        "\n",
        "a\nb",
        "\x7f",
        "\ufdd0",
        "True",
        "5",
        '"v"',
        '""',
        '"',
        "#",
        "a b",
        "%zz",
        "text/plain",
    ),
    *("2023-01-25T19:07:06.370582GMT", "2022-01-05T10:00", "2022-02-24T13:25:16+0000", "2018-07-23 09:51:00"),
    *(
        "2018-04-05T17:31:00+00:00Z",
        "1576245885912",
        "2018-04-05 17:31:00Z",
        "text/plain; charset=none",
        "x" * 300,
    ),
    *("application/json; charset=utf-16", "text/plain; charset=us-ascii", ' "text/plain"', "applicationjson"),
)
_SCALARS: Final = (
    *(None, True, False, 0, -1, 17, 0.5, -0.0, 1e300, 2**31, -(2**31) - 1, 2**63, 10**400, 1767607200000),
    *_TEXTS,
)
_DATA: Final = (None, b'{"n":1}', b'"gr\xc3\xbc\xc3\x9fe"', b"null", b"1.50")


def _json_value(luck: random.Random, depth: int = 0) -> Any:
    kind = luck.random()
    if depth > 3 or kind < 0.7:
        return luck.choice(_SCALARS)
    if kind < 0.85:
        return [_json_value(luck, depth + 1) for _ in range(luck.randrange(3))]
    return {luck.choice(_TEXTS): _json_value(luck, depth + 1) for _ in range(luck.randrange(3))}


def _replaced(luck: random.Random) -> list[str]:
    return luck.sample(_NAMES, luck.choice((1, 1, 2)))


def _seen(problems: Iterable[Problem]) -> list[str]:
    return [str(one.seen) for one in problems if not isinstance(one, LeftOut)]


def _is_kept(text: str | bytes, item: Decoded) -> bool:
    """Return whether a value is in the event, is reported whole, or is in a report of what was corrected."""
    kept = {canonical_text(value) for value in raw_parts(item.event)[0].values()}
    left_out = {one.value for one in item.tolerated if isinstance(one, LeftOut)}
    return text in kept or text in left_out or any(repr(text)[1:40] in seen for seen in _seen(item.tolerated))


def _check(item: Any, values: dict[str, str | bytes]) -> None:
    assert isinstance(item, Decoded), (values, item)
    assert (item.event.time is None) == ("time" not in item.event)
    assert {name: item.event[name] for name in ("id", "source", "type")} == {
        "id": "1",
        "source": "/shop",
        "type": "t",
    }
    lost = {name: value for name, value in values.items() if not _is_kept(value, item)}
    assert not lost, (lost, item)


def _dense(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.release) for seed in range(2, 12))]
)
def test_no_member_is_lost(seed: int) -> None:
    """With any JSON values of optional members, under any names, an event is read and no value is lost."""
    luck = random.Random(seed)
    for _ in range(make.scaled(20_000)):
        values = {name: _json_value(luck) for name in _replaced(luck)}
        members = [
            f"{json.dumps(name)}:{_dense_json(value)}" for name, value in ({**_VALID, **values}).items()
        ]
        data = luck.choice(_DATA)
        head = "{" + ",".join(luck.sample(members, len(members)))
        value = head.encode() + (b"}" if data is None else b',"data":' + data + b"}")
        headers = luck.choice(([], [(CONTENT_TYPE, b"application/cloudevents+json")]))
        item = decode(Record(value=value, headers=headers), lenient=True)
        _check(item, {name: _dense(member) for name, member in values.items() if member is not None})


def left_out_of(item: Decoded) -> list[tuple[str | None, Any]]:
    return [(one.attribute, one.value) for one in item.tolerated if isinstance(one, LeftOut)]


@pytest.mark.parametrize("headers", [[], [(CONTENT_TYPE, b"application/cloudevents+json")]])
@each(
    ("members", "attribute", "value"),
    [
        (rb'"subject":"\ud800"', "subject", r'"\ud800"'),
        (rb'"subject":{"a":"\ud800"}', "subject", r'{"a":"\ud800"}'),
        (rb'"s\u0075bject" : [ "\uDC00" ]', "subject", r'[ "\uDC00" ]'),
        (rb'"\ud800":"v"', r"\ud800", "v"),
        (rb'"\ud800":"\udfff"', r"\ud800", r'"\udfff"'),
        (rb'"x":"\ud800","x":"ok"', "x", r'"\ud800"'),
        (rb'"x":"ok","x":"\ud800"', "x", r'"\ud800"'),
    ],
)
def test_a_member_that_has_no_python_value_is_left_out(
    members: bytes, attribute: str, value: str, headers: Any
) -> None:
    """A lone surrogate in an optional member leaves out this member only, and forwarding keeps the member."""
    head = b'{"specversion":"1.0","id":"1","source":"/shop","type":"t",%b,"data":"\\ud801"}'
    record = Record(value=head % members, headers=headers)
    item = decode(record, lenient=True)
    assert isinstance(item, Decoded), item
    assert left_out_of(item) == [(attribute, value)]
    assert item.event.payload == rb'"\ud801"'
    assert item.event.get("x") == ("ok" if attribute == "x" else None)
    again = decode(to_record(item.event.replace(id="2"), like=record), lenient=True)
    assert isinstance(again, Decoded), again
    assert again.event == item.event.replace(id="2")
    assert left_out_of(again) == left_out_of(item)


def test_text_with_a_lone_surrogate_stays_json() -> None:
    """Data that no charset can express is kept as JSON, under any content type."""
    head = rb'{"specversion":"1.0","id":"1","source":"/shop","type":"t","datacontenttype":"text/plain",'
    for headers in ([], [(CONTENT_TYPE, b"application/cloudevents+json")]):
        record = Record(value=head + rb'"data":"\ud800"}', headers=headers)
        item = decode(record, lenient=True)
        assert isinstance(item, Decoded), item
        assert (item.event.payload, item.event.kind) == (rb'"\ud800"', DataKind.JSON)
        again = to_record(item.event.replace(id="2"), like=record)
        assert again.value == (record.value or b"").replace(b'"id":"1"', b'"id":"2"')


def _dense_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.release) for seed in range(2, 12))]
)
def test_no_header_is_lost(seed: int) -> None:
    """With any bytes in optional headers, under any names, an event is read and no value is lost."""
    luck = random.Random(seed)
    for _ in range(make.scaled(20_000)):
        names = [name for name in _replaced(luck) if name]
        values = {header_of(name): _bytes(luck) for name in names}
        headers = {header_of(name): canonical_text(value).encode() for name, value in _VALID.items()} | values
        pairs = luck.sample([*headers.items()], len(headers))
        item = decode(Record(value=luck.choice(_DATA), headers=pairs), lenient=True)
        _check(item, {name: _text_or_bytes(value) for name, value in values.items()})
        assert item.mode == "binary"


def _bytes(luck: random.Random) -> bytes:
    return luck.choice((luck.randbytes(luck.randrange(5)), luck.choice(_TEXTS).encode()))


def _text_or_bytes(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def test_names_that_are_folded() -> None:
    """Letters become small, and - _ . go where the result is an extension; nothing else is changed."""
    assert [fold_name(name) for name in ("my_Ext", "a.b-c", "dataSchema", "ID")] == [
        "myext",
        "abc",
        "dataschema",
        "id",
    ]
    assert [fold_name(name) for name in ("data_schema", "-", "Data", "é", "I-D", "a b", "")] == [None] * 7
