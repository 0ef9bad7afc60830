"""Lenient reading: accepted deviations are reported, nothing is invented, all else is refused."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from cloudevents_kafka import (
    BrokenEvent,
    Decoded,
    EncodeError,
    Event,
    InvalidEvent,
    NotAnEvent,
    Problem,
    Record,
    Undecodable,
    UnsupportedFormat,
    Verdict,
    decode,
    from_record,
    register_format,
    sniff,
    to_record,
)
from cloudevents_kafka.binding import _decode
from cloudevents_kafka.binding.lenient import _read
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.event import raw_parts, unchecked_event
from cloudevents_kafka.formats import json_decoder
from cloudevents_kafka.formats.avro import SCHEMA
from cloudevents_kafka.formats.base import InvalidAttributes
from cloudevents_kafka.formats.registry import Format, find
from cloudevents_kafka.record import Headers
from tests.formats.official import MIN, bytes_field, entry
from tests.support import lenient_table
from tests.support import strategies as make
from tests.support.cases import each

CE = make.required_headers
JSON = ("content-type", b"application/cloudevents+json")
HEAD = b'{"specversion":"1.0","id":"1","source":"/","type":"t"'


def read(headers: Any, value: bytes | None = None) -> Decoded:
    result = decode(Record(headers=headers, value=value), lenient=True)
    assert isinstance(result, Decoded), result
    return result


def found_format(name: str) -> Format:
    form = find(name)
    assert form is not None
    return form


@each(
    ("headers", "attribute", "text", "clauses"),
    [
        ([*CE, ("CE_SUBJECT", b"x")], "subject", "x", ["K-05"]),
        ([*CE, ("ce-subject", b"x")], "subject", "x", ["K-05"]),
        ([*CE, ("Content-Type", b"a/b")], "datacontenttype", "a/b", ["K-05"]),
        ([*CE, ("ce_subject", b"x"), ("CE_SUBJECT", b"y")], "subject", "x", ["K-05"]),
        ([*CE, ("CE_SUBJECT", b"y"), ("ce_subject", b"x")], "subject", "x", ["K-05"]),
        ([*CE, ("ce_id", b"2")], "id", "2", ["N-05"]),
        ([*CE, ("ce_datacontenttype", b"a/b")], "datacontenttype", "a/b", ["K-04"]),
        ([*CE, ("ce_datacontenttype", b"a/b"), ("content-type", b"a/c")], "datacontenttype", "a/c", ["K-04"]),
        ([*CE, ("ce_datacontenttype", b"a/b"), ("content-type", b"a/b")], "datacontenttype", "a/b", []),
        ([*CE, ("ce_data", b"x")], "data", None, ["N-04"]),
        ([*CE, ("ce_my_ext", b"x")], "myext", "x", ["N-01"]),
        ([*CE, ("ce_tabular-id", b"x")], "tabularid", "x", ["N-01"]),
        ([*CE, ("ce_é", b"x")], "é", None, ["N-01"]),
        ([*CE, ("ce_x", b"\xff")], "x", None, ["K-06"]),
        ([*CE, ("ce_x", b"a\nb")], "x", None, ["T-06"]),
        ([*CE, ("ce_time", b"2023-01-25T19:07:06.370582GMT")], "time", None, ["T-12"]),
        ([*CE, ("ce_time", b"2018-04-05T17:31Z")], "time", None, ["T-12"]),
        ([*CE, ("ce_time", b"2018-04-05T17:31:00+0000")], "time", None, ["T-12"]),
        ([*CE, ("ce_time", b"2018-04-05T17:31:00+00:00Z")], "time", None, ["T-12"]),
        ([*CE, ("ce_time", b"2018-04-05T17:31:00")], "time", None, ["T-12"]),
        ([*CE, ("ce_time", b"1576245885912")], "time", None, ["T-12"]),
        ([*CE, ("content-type", b'"a/b"')], "datacontenttype", "a/b", ["R-07"]),
        ([*CE, ("ce_subject", b"")], "subject", None, ["R-12"]),
        ([*CE, ("content-type", b"")], "datacontenttype", None, ["R-07"]),
        ([*CE, ("content-type", b"xyz")], "datacontenttype", "xyz", ["R-07"]),
        ([*CE, ("ce_time", b"2018-04-05 17:31:00Z")], "time", None, ["T-12"]),
        ([*CE, ("ce_dataschema", b"rel/path")], "dataschema", "rel/path", ["T-10"]),
        ([*CE, ("ce_dataschema", b"http://a b")], "dataschema", "http://a b", ["T-10"]),
        ([*CE, ("ce_dataschema", b'"urn:x"')], "dataschema", "urn:x", ["T-10"]),
        ([*CE, ("ce_dataschema", b'"')], "dataschema", '"', ["T-10"]),
        ([*CE, ("ce_time", b'"2018-04-05T17:31:00Z"')], "time", None, ["T-12"]),
        ([*CE, ("ce_deprecated", b"True")], "deprecated", "true", ["T-03"]),
        ([*CE, ("ce_deprecated", b"False")], "deprecated", "False", ["T-03"]),
        ([*CE, ("ce_sampledrate", b'"5"')], "sampledrate", "5", ["T-05"]),
        ([*CE, ("ce_subject", b'"x"')], "subject", '"x"', []),
        ([*CE, ("cloudEvents:subject", b"x")], "subject", "x", ["K-05"]),
        ([*CE, ("cloudEvents_subject", b"x")], "subject", "x", ["K-05"]),
        ([*CE, ("ce_expirytime", b"soon")], "expirytime", "soon", ["T-12"]),
        ([*CE, ("ce_subject", None)], "subject", None, []),
        ([*CE, ("foo", b"\xff")], "foo", None, []),
    ],
    ids=lambda value: repr(value)[-60:],
)
def test_accepted_headers(headers: Any, attribute: str, text: str | None, clauses: list[str]) -> None:
    """Values are corrected, invalid attributes are removed, and each deviation is reported."""
    result = read(headers)
    assert result.event.text(attribute) == text
    assert [p.clause for p in result.tolerated] == clauses
    assert all(map(str, result.tolerated))


@each(
    ("headers", "expected"),
    [
        ([("ce_subject", b"x"), ("CE_SUBJECT", b"y")], ["ignored: ce_subject is present"]),
        ([("CE_SUBJECT", b"y"), ("ce_subject", b"x")], ["ignored: ce_subject is present"]),
        ([("CE_SUBJECT", b"x"), ("ce-subject", b"x")], ["read as ce_subject", "read as ce_subject"]),
        ([("ce_subject", None), ("CE_SUBJECT", b"x")], ["read as ce_subject"]),
    ],
)
def test_ignored_headers_are_reported(headers: Any, expected: list[str]) -> None:
    """Of two headers for one attribute, the report names the ignored one."""
    result = read([*CE, *headers])
    assert result.event.subject == "x"
    assert len(result.tolerated) == len(expected)
    for problem, words in zip(result.tolerated, expected, strict=True):
        assert words in str(problem)


@each(
    "record",
    [
        Record(headers=[("foo", b"x")], value=b"{}", topic="t", offset=1),
        Record(headers=CE[:3]),
        Record(headers=[("content-type", b"application/cloudevents-batch+json")], value=b"[]"),
        Record(headers=[("content-type", b"application/cloudevents+xml")], value=b"<a/>"),
    ],
)
def test_strict_and_lenient_errors_are_equal(record: Record) -> None:
    """Strict and lenient reading raise the same error for a record that both refuse."""
    strict, lenient = (decode(record, lenient=lenient) for lenient in (False, True))
    assert isinstance(strict, Undecodable)
    assert isinstance(lenient, Undecodable)
    assert type(strict.error) is type(lenient.error)
    assert str(strict.error) == str(lenient.error)


@each(
    ("members", "attribute", "text", "clauses"),
    [
        (b',"x":{"a":[1]}', "x", '{"a":[1]}', ["J-03"]),
        (b',"x":[]', "x", "[]", ["J-03"]),
        (b',"x":{ "a" : 1.00,\n"a":1e2, "b":"\\u00e9" }', "x", '{"a":1.00,"a":1e2,"b":"\\u00e9"}', ["J-03"]),
        (b',"X":[1,{"y":0.10000000000000001}]', "x", '[1,{"y":0.10000000000000001}]', ["N-01", "J-03"]),
        (b',"myExt":"v"', "myext", "v", ["N-01"]),
        (b',"myExt":"v","myext":"w"', "myext", "w", ["N-01"]),
        (b',"myExt":"v","MYEXT":"v"', "myext", "v", ["N-01", "N-01"]),
        (b',"myExt":[1]', "myext", "[1]", ["N-01", "J-03"]),
        (b',"dataSchema":"#"', "dataschema", "#", ["N-01", "T-10"]),
        (b',"MYEXT":null,"myExt":[1]', "myext", "[1]", ["N-01", "J-03"]),
        (b',"\xe2\x84\xaa":[2],"K":[1]', "k", "[1]", ["N-01", "J-03", "N-01"]),
        (b',"Data":1', "data", None, ["N-01"]),
        (b',"\xe2\x84\xaa":1', "k", None, ["N-01"]),
        (b',"expirytime":"2018-04-05 17:31:00Z"', "expirytime", "2018-04-05 17:31:00Z", ["T-12"]),
        (b',"my_ext":{}', "myext", "{}", ["N-01", "J-03"]),
        (b',"data_schema":{}', "dataschema", None, ["N-01"]),
        (b',"x":0.50', "x", "0.50", ["J-03"]),
        (b',"sentms":1767607200000', "sentms", "1767607200000", ["J-03"]),
        (b',"subject":123', "subject", "123", ["R-12"]),
        (b',"subject":{"a": 1}', "subject", '{"a":1}', ["J-03"]),
        (b',"time":1576245885912', "time", None, ["J-03", "T-12"]),
        (b',"time":[]', "time", None, ["J-03", "T-12"]),
        (b',"x":"a\\nb"', "x", None, ["T-06"]),
        (b',"x":"v","x":"w"', "x", "w", ["N-05"]),
        (b',"myExt":"v","MYEXT":"w"', "myext", None, ["N-01", "N-01"]),
        (b',"datacontenttype":"text/plain; charset=none","data":"x"', "subject", None, ["J-16"]),
        (b',"subject":""', "subject", None, ["R-12"]),
        (b',"partitionkey":5', "partitionkey", "5", ["T-06"]),
        (b',"time":"2018-04-05 17:31:00Z"', "time", None, ["T-12"]),
        (b',"datacontenttype":"xyz"', "datacontenttype", "xyz", ["R-07"]),
    ],
)
def test_accepted_members(members: bytes, attribute: str, text: str | None, clauses: list[str]) -> None:
    """Members of JSON are corrected as headers are; objects and lists are kept as their text."""
    result = read([JSON], HEAD + members + b"}")
    assert result.event.text(attribute) == text
    assert [p.clause for p in result.tolerated] == clauses


@each(
    ("members", "payload", "kind"),
    [
        (b',"datacontenttype":"text/plain","data":{"a": 1}', b'{"a": 1}', DataKind.JSON),
        (b',"datacontenttype":"text/plain","data":5', b"5", DataKind.JSON),
        (b',"datacontenttype":"text/plain","data":null', None, DataKind.BYTES),
    ],
)
def test_data_of_another_type_is_kept_as_json(members: bytes, payload: bytes | None, kind: DataKind) -> None:
    """Data that must be a string is kept as JSON."""
    result = read([JSON], HEAD + members + b"}")
    assert (result.event.payload, result.event.kind) == (payload, kind)
    assert [p.clause for p in result.tolerated] == ["J-16"]


@each("headers", [[], [JSON], [("content-type", b"application/json")]])
@each(
    ("member", "payload", "kind"),
    [
        (b'"dataContentType":"text/plain"', b"x", DataKind.TEXT),
        (b'"datacontenttype":"\\"application/json\\""', b'"x"', DataKind.JSON),
        (b'"datacontenttype":""', b'"x"', DataKind.JSON),
    ],
)
def test_data_has_the_corrected_content_type(
    headers: Any, member: bytes, payload: bytes, kind: DataKind
) -> None:
    """A content type that is corrected decides how data is read."""
    result = read(headers, HEAD + b"," + member + b',"data":"x"}')
    assert (result.event.payload, result.event.kind) == (payload, kind)


@each("form", ["protobuf", "avro"])
@each(
    ("name", "content_type", "read_type", "text", "data"),
    [
        ("dataContentType", "text/plain", "text/plain", "é", "é"),
        ("dataContentType", "text/plain;charset=latin1", "text/plain;charset=latin1", "é", "é"),
        ("DataContentType", "a/b;charset=none", "a/b;charset=none", "é", "é"),
        ("datacontenttype", '"text/plain;charset=latin1"', "text/plain;charset=latin1", "é", "é"),
        ("datacontenttype", ' text/plain;x="\x85"', None, "é", "é"),
        ("datacontenttype", 'text/plain;charset=latin1;x="\x85"', None, "é", "é"),
        ("dataContentType", 'text/plain;charset=utf-16;x="\ufdd0"', None, "17", "17"),
    ],
)
def test_text_in_other_formats_has_the_corrected_content_type(
    form: str, name: str, content_type: str, read_type: str | None, text: str, data: str
) -> None:
    """Text is read with the content type of the event, or as UTF-8 if the content type is left out."""
    if form == "protobuf":
        value = MIN + entry(name, bytes_field(3, content_type.encode())) + bytes_field(7, text.encode())
    else:
        out = io.BytesIO()
        attributes = {**make.GOOD, name: content_type}
        fastavro.schemaless_writer(
            out, fastavro.parse_schema(SCHEMA), {"attribute": attributes, "data": text}
        )
        value = out.getvalue()
    headers: Headers = [("content-type", f"application/cloudevents+{form}".encode())]
    event = read(headers, value).event
    assert (event.datacontenttype, event.data) == (read_type, data)
    if "none" in content_type:
        return
    changed = event.replace(type="changed")
    like = Record(value=value, headers=headers)
    for again in (to_record(changed, like=like), to_record(changed), to_record(changed, mode="structured")):
        assert from_record(again, lenient=True).data in (data, data.encode())


def test_json_text_in_protobuf_has_the_corrected_content_type() -> None:
    """JSON is read as JSON if the name of its content type has capitals."""
    value = MIN + entry("dataContentType", bytes_field(3, b"application/json")) + bytes_field(7, b'{"a":1}')
    assert read([("content-type", b"application/cloudevents+protobuf")], value).event.data == {"a": 1}


def test_a_corrected_member_has_the_type_of_its_attribute() -> None:
    """A number under the name of a text in other letters is read as under the name itself."""
    for members, clauses in ((b',"PartitionKey":5', ["N-01", "T-06"]), (b',"SampleDRate":5', ["N-01"])):
        assert [p.clause for p in read([JSON], HEAD + members + b"}").tolerated] == clauses
    with pytest.raises(BrokenEvent):
        from_record(Record(headers=[JSON], value=HEAD.replace(b'"id":"1"', b'"ID":5') + b"}"), lenient=True)


def test_records_after_a_corrected_one_are_read_as_before() -> None:
    """A reader that was ready for a deviation returns the same event, with the value it was read from."""
    valid = HEAD + b',"data":1}'
    for more in (b',"myExt":"v","data":1}', b',"x":{"a":1},"data":1}', b',"dataschema":"rel"}'):
        deviating = HEAD + more
        for value in (valid, deviating, valid, valid, deviating, deviating):
            result = read([JSON], value)
            assert (result.tolerated == ()) == (value == valid)
            assert raw_parts(result.event)[1] == (("json", value) if value == valid else None)


@each(
    ("members", "clauses"),
    [
        (b',"x":{ "a" : 1 }', ["J-03"]),
        (b',"x":[],"data":[1]', ["J-03"]),
        (b',"y":null,"myExt":{},"n":5', ["N-01", "J-03"]),
        (b',"myExt":"v","x":{},"dataschema":"rel"', ["N-01", "J-03", "T-10"]),
        (b',"x":{},"datacontenttype":"text/plain","data":null', ["J-03", "J-16"]),
        (b',"x":{},"sampledrate":[]', ["J-03", "J-03", "T-05"]),
    ],
)
def test_objects_are_read_alike_after_any_record(members: bytes, clauses: list[str]) -> None:
    """Objects and lists are kept as text with the same problems after any other record."""
    value = HEAD + members + b"}"
    results = []
    for before in (b"}", b',"z":[1]}', b',"Z":"v"}', b',"dataschema":"#"}'):
        read([JSON], HEAD + before)
        results.append(read([JSON], value))
    assert [problem.clause for problem in results[0].tolerated] == clauses
    assert len({repr(result) for result in results}) == 1


@each(
    "members",
    [
        b',"x":{},"id":"2"',
        b',"x":{},"data":1,"data":1',
        b',"x":{},"data_base64":{}',
        b',"x":{},"subject":"\xff"',
        b',"x":{},"data":"\xff"',
        b',"x":{"\xff":1}',
        b',"x":{},"\xff":1',
    ],
)
def test_objects_do_not_hide_what_is_refused(members: bytes) -> None:
    """A record with an object is refused for its other faults, also after others with objects."""
    errors = []
    for before in (b"}", b',"x":{}}', b',"X":"v"}'):
        read([JSON], HEAD + before)
        with pytest.raises(BrokenEvent) as caught:
            from_record(Record(headers=[JSON], value=HEAD + members + b"}"), lenient=True)
        errors.append(caught.value.problems)
    assert errors[0] == errors[1] == errors[2]


@each("name", ["\u212a", "é", "", "X", "x-y"])
def test_invalid_names_are_reported_as_they_are(name: str) -> None:
    """A reader that has met an invalid name does not take another name for it."""
    for known in (name, "\u212a\u212a", "", name):
        member = b',"%b":"v"' % known.encode()
        (problem,) = read([JSON], HEAD + member + b"}").tolerated
        assert problem.attribute == known


def test_a_required_member_must_have_its_name_in_json_without_a_content_type() -> None:
    """Only a complete event is read as one if nothing else marks it."""
    more = b',"x_y":1}'
    for value in (HEAD.replace(b'"source"', b'"Source"') + b"}", HEAD.replace(b'"id"', b'"ID"') + more):
        for _ in range(2):
            assert isinstance(decode(Record(value=value), lenient=True), Undecodable)
            read([JSON], value)


@pytest.mark.parametrize("names", [["ce-subject"], ["CE_SUBJECT", "ce-x"]])
def test_an_empty_extension_does_not_hide_a_valid_event(names: list[str]) -> None:
    """An extension that may be empty is valid, so that other headers cannot make the event invalid."""
    headers = [*CE, ("ce_dataref", b""), *[(name, b"\x7f") for name in names]]
    assert read(headers).event == from_record(Record(headers=headers[:5]))


@each(
    ("headers", "value", "clauses"),
    [
        ([], HEAD + b"}", ["K-09"]),
        ([("content-type", b"application/cloudevents")], HEAD + b"}", ["K-10"]),
        ([JSON], b"\xef\xbb\xbf" + HEAD + b"}", ["J-01"]),
        ([("Content-Type", b"application/cloudevents+json")], HEAD + b"}", ["K-05"]),
        ([("ce_datacontenttype", b"application/cloudevents+json")], HEAD + b"}", ["K-04"]),
        ([("content-type", b"application/json; charset=utf-8")], HEAD + b"}", ["K-15"]),
        ([("content-type", b"application/xml")], HEAD + b',"data":"<a/>"}', ["K-15"]),
    ],
)
def test_accepted_structured_records(headers: Any, value: bytes, clauses: list[str]) -> None:
    """A JSON event with a wrong or missing content-type is read as a JSON event."""
    result = read(headers, value)
    assert [p.clause for p in result.tolerated] == clauses
    assert result.event.id == "1"


@each(
    ("headers", "value", "error"),
    [
        (CE[:3], None, NotAnEvent),
        ([], b'{"type":"t","source":"/"}', NotAnEvent),
        ([], b"\xff", NotAnEvent),
        ([], None, NotAnEvent),
        ([("content-type", b"application/json")], HEAD[:-8] + b"}", NotAnEvent),
        ([("content-type", b"application/json")], b"[" + HEAD + b"}]", NotAnEvent),
        ([("content-type", b"application/json")], HEAD.replace(b"1.0", b"0.3") + b"}", NotAnEvent),
        ([("cloudEvents:id", b"\xa1\x011"), *CE[:1], *CE[2:]], None, BrokenEvent),
        ([*CE[1:], ("ce-specversion", b"1.0"), ("CE_SPECVERSION", b"1.1")], None, BrokenEvent),
        ([*CE[:3], ("ce-type", b"t"), ("CE-TYPE", b"u")], None, BrokenEvent),
        ([("Content-Type", b"a/b"), ("CONTENT-TYPE", b"a/c")], b"{}", NotAnEvent),
        ([("content-type", b'text/plain; x="\xff"')], HEAD + b"}", BrokenEvent),
        ([("Content-Type", b'text/plain; x="\xff"')], HEAD + b"}", BrokenEvent),
        ([("content-type", b'text/plain; x="\xff"')], b"{}", NotAnEvent),
        ([("content-type", b"application/cloudevents+xyz; charset=latin-1")], HEAD + b"}", UnsupportedFormat),
        ([("content-type", b"application/cloudeventsfoo")], HEAD + b"}", UnsupportedFormat),
        ([("content-type", b"application/cloudevents+json; charset=latin-1")], HEAD + b"}", BrokenEvent),
        ([("content-type", b"application/cloudevents; charset=utf-16")], HEAD + b"}", BrokenEvent),
        ([("content-type", b"application/cloudevents+json;\xff")], HEAD + b"}", BrokenEvent),
        ([JSON], None, BrokenEvent),
        ([JSON], HEAD + b',"id":"2"}', BrokenEvent),
        ([JSON], HEAD + b',"data":1,"data_base64":"TQ=="}', BrokenEvent),
        ([JSON], HEAD + b',"data_base64":"TQ"}', BrokenEvent),
        ([JSON], HEAD.replace(b'"1"', b'{"a":1}') + b"}", BrokenEvent),
        ([("content-type", b"application/cloudevents+avro")], b"\x00", BrokenEvent),
        ([*CE[:1], ("ce_id", b"\xff"), *CE[2:]], None, BrokenEvent),
        ([*CE[:1], ("ce_id", b"a\nb"), *CE[2:]], None, BrokenEvent),
        ([JSON], HEAD.replace(b'"id":"1"', b'"id":17') + b"}", BrokenEvent),
        ([JSON], HEAD.replace(b'"id":"1"', b'"ID":"1","Id":"2"') + b"}", BrokenEvent),
        ([JSON], HEAD.replace(b'"id":"1"', b'"Id":{"a":1}') + b"}", BrokenEvent),
        ([JSON], HEAD.replace(b'"id":"1"', b'"I_D":1.50') + b"}", BrokenEvent),
        ([JSON], HEAD.replace(b'"type":"t"', b'"TYPE":5000000000') + b"}", BrokenEvent),
        ([*CE[1:], ("ce_specversion", b"0.3")], None, BrokenEvent),
        ([*CE[1:], ("ce_specversion", b"")], None, BrokenEvent),
    ],
    ids=lambda value: repr(value)[-70:],
)
def test_refused_records(headers: Any, value: bytes | None, error: type[Exception]) -> None:
    """Ambiguous and invalid records are refused."""
    result = decode(Record(headers=headers, value=value), lenient=True)
    assert isinstance(result, Undecodable), result
    assert type(result.error) is error


OTHER = b'{"specversion":"1.0","id":"OTHER","source":"/o","type":"o","data":1}'


@each("content_type", [b"application/cloudevents+json", b"Application/CloudEvents-batch"])
@each(
    "name", ["Content-Type", "CONTENT-TYPE", "ce-datacontenttype", "CE_DATACONTENTTYPE", "ce_datacontenttype"]
)
@each("more", [[], [("ce_time", b"2018-04-05 17:31:00Z")]])
def test_only_content_type_makes_an_event_structured(name: str, content_type: bytes, more: Any) -> None:
    """If all required ce_ headers are present, the event is in binary mode."""
    result = read([*CE, *more, (name, content_type)], OTHER)
    assert (result.event.id, result.event.payload, result.event.datacontenttype) == ("1", OTHER, None)
    assert "ignored" in str(result.tolerated)


@each(
    "headers",
    [
        [("cloudEvents:subject", b"x"), ("ce-subject", b"y"), ("CE_SUBJECT", b"z")],
        [("CE_SUBJECT", b"x"), ("ce-subject", b"x"), ("CE_SUBJECT", b"z")],
        [("Content-Type", b"a/b"), ("CONTENT-TYPE", b"a/c")],
        [("Content-Type", b"a/b"), ("CONTENT-TYPE", JSON[1])],
        [("CE_TIME", b"noon")],
        [("CE_SUBJECT", b"\xff")],
        [("ce-é", b"x")],
        [("ce-tracestate", b"a=1")],
    ],
)
def test_misspelled_headers_do_not_break_a_valid_event(headers: Any) -> None:
    """Misspelled headers that differ or break a rule leave the event unchanged."""
    result = read([*CE, *headers], b"x")
    assert result.event == from_record(Record(headers=CE, value=b"x"))
    assert "left out" in str(result.tolerated)


def test_valid_misspelled_headers_are_read() -> None:
    """Of misspelled headers, the valid ones are read."""
    result = read([*CE, ("CE_TIME", b"noon"), ("CE_SUBJECT", b"x"), ("CE_SAMPLEDRATE", b"5")])
    assert (result.event.time, result.event.subject, result.event["sampledrate"]) == (None, "x", 5)


@each("form", ["json", "avro", "protobuf"])
def test_in_structured_mode_no_other_header_adds_anything(form: str) -> None:
    """The value has the whole event; only deviations of the content-type are reported."""
    record = to_record(from_record(Record(headers=CE)), mode="structured", format=form)
    result = read([*record.headers, ("ce-subject", b"x"), ("Content-Type", b"a/b")], record.value)
    assert result.event == from_record(record)
    assert [p.attribute for p in result.tolerated] == ["Content-Type"]


def test_all_problems_are_reported() -> None:
    """The error has the problems of attributes and data, without accepted deviations."""
    value = (
        HEAD.replace(b'"/"', b'""')
        + b',"myExt":1,"id":"2","time":"","time":"noon","data":1,"data_base64":"!!"}'
    )
    with pytest.raises(BrokenEvent) as caught:
        from_record(Record(headers=[JSON], value=value), lenient=True)
    assert [problem.clause for problem in caught.value.problems] == [
        "N-05",
        "R-04",
        "J-12",
        "J-14",
    ]


@each(
    "header",
    [
        ("Content-Type", b"\x00"),
        ("Content-Type", b"1"),
        ("CE_TIME", b"noon"),
        ("CE_DATASCHEMA", b"rel"),
        ("ce-subject", b""),
        ("ce-é", b"x"),
        ("ce-sampledrate", b"0"),
        ("ce-source", b""),
    ],
)
def test_a_valid_record_is_valid_leniently(header: tuple[str, bytes]) -> None:
    """A misspelled header does not make a valid record invalid."""
    event = Event(id="1", source="/s", type="t", time="2018-04-05T17:31:00Z")
    record = to_record(event)
    misspelled = Record(value=record.value, headers=[*record.headers, header])
    assert from_record(misspelled, lenient=True) == from_record(misspelled) == event
    reported = [str(problem) for problem in read(misspelled.headers, misspelled.value).tolerated]
    assert any("left out" in words or "ignored" in words for words in reported)


def test_a_valid_record_has_no_deviations() -> None:
    """A valid record has the same event, and the same bytes when it is written again."""
    for record in (Record(headers=CE, value=b"x"), Record(headers=[JSON], value=HEAD + b', "data": 1.0}')):
        result = decode(record, lenient=True)
        assert isinstance(result, Decoded)
        assert result.tolerated == ()
        assert result.event == from_record(record)
        assert to_record(result.event, like=record) == record


@each(
    ("content_type", "members", "datacontenttype", "payload"),
    [
        (b"application/json", b',"data":1', None, b"1"),
        (b"application/xml", b',"data":"<a/>"', "application/xml", b"<a/>"),
        (b"application/xml", b',"datacontenttype":"text/plain","data":"a"', "text/plain", b"a"),
        (b"text/plain; charset=latin-1", b',"data":"\xc3\xbc"', "text/plain; charset=latin-1", b"\xfc"),
    ],
)
def test_a_content_type_other_than_json_is_that_of_the_data(
    content_type: bytes, members: bytes, datacontenttype: str | None, payload: bytes
) -> None:
    """Version 1 of the Python SDK writes datacontenttype to the header instead of the envelope."""
    event = read([("content-type", content_type)], HEAD + members + b"}").event
    assert (event.datacontenttype, event.payload) == (datacontenttype, payload)


BINARY_FORMATS = ["avro", "avro-compact", "protobuf"]


@each("form", BINARY_FORMATS)
@each(
    ("broken", "clauses"),
    [
        ({"dataschema": "type.googleapis.com/shop.Order"}, ["T-10"]),
        ({"sampledrate": 0}, ["X-05"]),
        ({"tracestate": "a=1"}, ["X-02"]),
        ({"dataschema": "order", "authid": "x"}, ["T-10", "X-10"]),
    ],
)
def test_accepted_attributes_in_other_formats(form: str, broken: dict[str, Any], clauses: list[str]) -> None:
    """Deviations of attributes are accepted in Avro and Protobuf as in headers."""
    attributes = {"specversion": "1.0", "id": "1", "source": "/", "type": "t", **broken}
    value = found_format(form).encode(unchecked_event(attributes, b"\xff", DataKind.BYTES))
    record = Record(value=value, headers=[("content-type", f"application/cloudevents+{form}".encode())])
    with pytest.raises(BrokenEvent) as caught:
        from_record(record)
    assert sorted(problem.clause for problem in caught.value.problems) == clauses
    result = read(record.headers, value)
    assert (dict(result.event.attributes), result.event.payload) == (attributes, b"\xff")
    assert sorted(problem.clause for problem in result.tolerated) == clauses


@each("form", ["json", *BINARY_FORMATS])
@each(
    ("members", "found"),
    [
        ({"myExt": "v"}, {"myext": "v"}),
        ({"myExt": "v", "myext": "w"}, {"myext": "w"}),
        ({"sampledRate": 5}, {"sampledrate": 5}),
        ({"DATA": "v"}, {}),
        ({"my_ext": "v"}, {"myext": "v"}),
        ({"data_schema": "v"}, {}),
        ({"partitionkey": ""}, {}),
        ({"myExt": "v", "MYEXT": "w"}, {}),
        ({"ID": "v", "Id": "w", "id": None}, None),
    ],
)
def test_names_are_read_equally_in_all_formats(
    form: str, members: dict[str, Any], found: dict[str, Any] | None
) -> None:
    """A name in upper case is read in lower case, and removed attributes are reported."""
    attributes = {name: one for name, one in {**make.GOOD, **members}.items() if one is not None}
    if found is None and form not in {"json", "avro"}:
        return  # the id has a field of its own
    value = found_format(form).encode(unchecked_event(attributes, None, DataKind.BYTES))
    record = Record(value=value, headers=[("content-type", f"application/cloudevents+{form}".encode())])
    result = decode(record, lenient=True)
    if found is None:
        assert isinstance(result, Undecodable)
        return
    assert isinstance(result, Decoded)
    assert dict(result.event.attributes) == {**make.GOOD, **found}
    assert str(result.tolerated).count("left out") == len(members) - len(found)


@pytest.mark.parametrize(("content_type", "preview"), [(b"", "''"), (b"xyz", "'xyz'")])
def test_a_content_type_that_is_not_a_format_is_reported(content_type: bytes, preview: str) -> None:
    """A content-type that does not describe the data is not reported as describing it."""
    problem = read([("content-type", content_type)], HEAD + b"}").tolerated[0]
    rule = "content-type: does not name an event format: the value was read as a JSON event"
    assert str(problem).startswith(f"{rule}, got {preview} (K-15")


@each("form", BINARY_FORMATS)
def test_other_formats_have_one_spelling(form: str) -> None:
    """Headers of other formats may be misspelled, but malformed values are refused."""
    value = to_record(from_record(Record(headers=CE)), mode="structured", format=form).value or b""
    headers = [("Content-Type", f"application/cloudevents+{form}".encode())]
    result = read(headers, value)
    assert result.event == from_record(Record(headers=CE))
    assert [p.clause for p in result.tolerated] == ["K-05"]
    assert isinstance(decode(Record(headers=headers, value=value[:-1]), lenient=True), Undecodable)


def test_the_list_of_deviations_is_generated_from_the_vectors() -> None:
    """`spec-conformance/lenient.md` is generated from the vectors."""
    assert lenient_table.TABLE.read_text("utf-8") == lenient_table.markdown()


class CountingFormat:
    """A format that counts its calls and raises an error."""

    name = "counting"

    def __init__(self, error: InvalidEvent) -> None:
        self.error = error
        self.calls = 0

    def encode(self, _: Event) -> bytes:
        raise EncodeError("this format is read only")

    def decode(self, _: bytes) -> Event:
        self.calls += 1
        raise self.error


PROBLEM = Problem("dataschema", "must be a URI with a scheme", "T-10", "'rel'")
INVALID = unchecked_event({**make.GOOD, "dataschema": "rel"}, b"x")


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("headers", [1, 2], ids=["once", "twice"])
@pytest.mark.parametrize(
    ("error", "accepted"), [(InvalidEvent([PROBLEM]), False), (InvalidAttributes([PROBLEM], INVALID), True)]
)
def test_a_value_is_decoded_once(error: InvalidEvent, headers: int, *, accepted: bool) -> None:
    """Lenient reading uses the result of strict reading, also if the content-type header is repeated."""
    counting = CountingFormat(error)
    register_format("counting", lambda: counting)
    header = ("content-type", b"application/cloudevents+counting")
    item = decode(Record(headers=[header] * headers, value=b"x"), lenient=True)
    assert isinstance(item, Decoded) is accepted
    assert counting.calls == 1


@pytest.mark.parametrize(
    ("headers", "value"),
    [
        ([JSON], HEAD + b',"myExt":[1]}'),
        ([JSON, JSON], HEAD + b',"time":"2018-04-05 17:31:00Z"}'),
        ([JSON], HEAD + b',"id":"2"}'),
        ([], HEAD + b',"x":{}}'),
        ([("Content-Type", JSON[1])], HEAD + b',"dataschema":"rel"}'),
        ([JSON], b"\xef\xbb\xbf" + HEAD + b',"dataschema":"rel"}'),
    ],
)
def test_a_json_value_is_split_once(headers: Any, value: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower reader splits a value once at most, whether lenient reading accepts the members or not."""
    split = []

    def count(value: bytes) -> json_decoder.Envelope:
        split.append(value)
        return original(value)

    original = json_decoder._split_members
    monkeypatch.setattr(json_decoder, "_split_members", count)
    decode(Record(headers=headers, value=value), lenient=True)
    assert len([value for value in split if not value.startswith(b"\xef")]) <= 1


def test_unchanged_headers_are_sniffed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lenient reading uses the verdict of strict reading unless it has corrected header names."""
    calls = []

    def count(headers: Any) -> Verdict:
        calls.append(headers)
        return sniff(headers)

    for module in (_decode, _read):
        monkeypatch.setattr(module, "sniff", count)
    for headers in (CE, [*CE, ("ce_time", b"noon")], [JSON], [JSON, JSON], CE[:3]):
        calls.clear()
        decode(Record(headers=headers, value=HEAD + b',"time":"2018"}'), lenient=True)
        assert len(calls) <= (2 if headers == [JSON, JSON] else 1), headers
