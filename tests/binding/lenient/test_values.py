"""Corrections that lenient reading has learned: they change no outcome, and are bounded."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from conformance import Dataset
from conformance._dataset import KINDS
from conformance.notation import as_record

from cloudevents_kafka import AttributeType, Decoded, Record, decode, register_extension
from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.binding.lenient import _headers, _json
from tests.support import strategies as make

CE = make.required_headers
JSON = ("content-type", b"application/cloudevents+json")
HEAD = b'{"specversion":"1.0","id":"1","source":"/","type":"t"'


def read(headers: Any, value: bytes | None = None) -> Decoded:
    result = decode(Record(headers=headers, value=value), lenient=True)
    assert isinstance(result, Decoded), result
    return result


def test_outcomes_do_not_depend_on_earlier_records() -> None:
    """What a reader learned from other records, or from the same one, changes nothing."""
    cases = [case for _, case in Dataset().all_cases if type(case) is KINDS["decode"]]
    records = [as_record(case.record) for case in cases]
    assert len(records) > 100
    outcomes = [repr(decode(record, lenient=True)) for record in records]
    for step in (1, 7, 11):
        for index in [*range(0, len(records), step), *reversed(range(len(records)))]:
            for _ in range(3):
                assert repr(decode(records[index], lenient=True)) == outcomes[index]


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("kind", [AttributeType.STRING, AttributeType.INTEGER])
def test_a_registration_ends_what_was_learned(kind: AttributeType) -> None:
    """A correction under other rules is not repeated."""
    headers = [*CE, ("ce_deprecated", b"True")]
    assert [[p.clause for p in read(headers).tolerated] for _ in range(3)] == [["T-03"]] * 3
    register_extension("deprecated", kind)
    clauses = [] if kind is AttributeType.STRING else ["T-05"]
    assert [[p.clause for p in read(headers).tolerated] for _ in range(3)] == [clauses] * 3


def test_what_is_learned_is_bounded() -> None:
    """Many deviations do not stay in memory, and long ones are not kept at all."""
    for number in range(5000):
        value = HEAD + b',"dataschema":"%d","X%d":"v"}'
        read([], value % (number, number))
        read([("content-type", b"a/b%d" % number)], HEAD + b',"x%d":{}}' % number)
        read([*CE, (f"CE-x{number}", b"v"), ("ce_datacontenttype", b"a/b%d" % number)])
    long = b"x" * 10**5
    read([], HEAD + b',"dataschema":"%b","X%b":"v"}' % (long, long))
    read([*CE, ("CE-" + long.decode(), b"v"), ("ce_datacontenttype", b"a/" + long)])
    learned = current.table.corrections
    filled: list[dict[Any, Any]] = [
        learned["dataschema"],
        _json.without_format,
        _headers._names,
        _headers._attributes,
    ]
    assert min(map(len, filled)) > 1
    for cache in [*filled, *learned.values()]:  # other tests may have filled these
        assert len(cache) <= 4096
        assert max((len(key or "") for key in cache), default=0) <= 256
    renamings = _json.renamings
    assert 1 < len(renamings) <= 64
    assert max(map(len, renamings)) <= 64
    assert max(len(name) for names in renamings for name in names) <= 64


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("sampledrate", '"5"', 5),
        ("sampledrate", '"5', '"5'),
        ("sampledrate", '5"', '5"'),
        ("sampledrate", '""', '""'),
        ("sampledrate", '"', '"'),
        ("sampledrate", '"0"', '"0"'),
        ("time", "2018-04-05 17:31:00Z", None),
        ("time", '"2018-04-05 17:31:00.5+01:00"', None),
        ("time", '"2018-04-05T17:31:00Z"', None),
        ("time", "2018-04-05 17:31:00", None),
        ("deprecated", "TRUE", True),
        ("deprecated", '"True"', True),
        ("deprecated", "yes", "yes"),
        ("dataschema", '"a:b"', "a:b"),
    ],
)
def test_a_text_is_corrected_if_its_value_is_clear(name: str, text: str, value: Any) -> None:
    """Quotation marks are removed and capitals of a Boolean become small; a time is left out as it came."""
    for _ in range(2):  # the second time the correction is known
        item = read([*CE, (f"ce_{name}", text.encode())])
        found = item.event.text(name) if name in {"time", "dataschema"} else item.event[name]
        assert (found, type(found)) == (value, type(value))
        assert [problem.attribute for problem in item.tolerated] == [name]


@pytest.mark.parametrize(
    ("name", "member", "value"),
    [
        ("dssematerial", b"true", b"\xb6\xbb\x9e"),
        ("dssematerial", b"5", "5"),
        ("sampledrate", b"true", "true"),
        ("deprecated", b"1", "1"),
    ],
)
def test_the_text_of_a_value_of_another_type_is_checked(name: str, member: bytes, value: Any) -> None:
    """If it is valid, it is a value of the attribute's type, so a copy of the event is the same."""
    head = b'{"specversion":"1.0","id":"1","source":"/","type":"t"'
    record = Record(value=head + b',"%b":%b}' % (name.encode(), member), headers=[JSON])
    item = decode(record, lenient=True)
    assert isinstance(item, Decoded)
    assert item.event[name] == value
    assert item.event.replace() == item.event


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (" a/b", "a/b"),
        ("\ta/b", "a/b"),
        (" a/b; charset=utf-8 ", "a/b; charset=utf-8"),
        ('"a/b"', "a/b"),
        (' " a/b "', "a/b"),
        ('"a/b; x=\\"y\\""', 'a/b; x="y"'),
        ('"a/b; x="y""', 'a/b; x="y"'),
        (" a", " a"),
        ('"a/b', '"a/b'),
        ('"a/bc', '"a/bc'),
        ('"', '"'),
    ],
)
def test_a_content_type_is_read_equally_in_a_header_and_in_a_member(text: str, found: str) -> None:
    """Quotation marks and blanks around it are removed if the text between them is a content type."""
    member = msgspec.json.encode({"datacontenttype": text, "data_base64": ""})[1:]
    for _ in range(2):  # the second time the correction of the member is known
        for item in (
            read([*CE, ("content-type", text.encode())], b""),
            read([("content-type", b"application/cloudevents+json")], HEAD + b"," + member),
        ):
            assert item.event.datacontenttype == found
            assert [problem.attribute for problem in item.tolerated] == ["datacontenttype"]


def test_json_data_of_a_content_type_after_a_blank_has_no_problem() -> None:
    """The data of the member's corrected content type may be any JSON."""
    value = HEAD + b',"datacontenttype":" application/json","data":{"a":1}}'
    for _ in range(2):
        item = read([("content-type", b"application/cloudevents+json")], value)
        assert (item.event.datacontenttype, item.event.payload) == ("application/json", b'{"a":1}')
        assert [problem.clause for problem in item.tolerated] == ["R-07"]
