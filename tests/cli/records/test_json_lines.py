"""JSON lines keep records byte for byte, and edited events are sent."""

from __future__ import annotations

import base64
import json
import re

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cloudevents_kafka import EncodeError, Event, Record, decode, from_record, partition_key, to_record
from cloudevents_kafka.cli.records.json_lines import BadLine, read_line, read_record, write_line
from cloudevents_kafka.cli.records.resolve import Overrides, resolve_line
from cloudevents_kafka.errors import CloudEventsKafkaError
from tests.support import strategies as make
from tests.support.cases import each

EVENT = Event(
    id="1",
    source="/shop",
    type="order.placed",
    subject="c-7",
    datacontenttype="application/json",
    data=b'{"total": 12.5}',
)
BINARY = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/"), ("ce_type", b"t")]
JSON = ("content-type", b"application/json")
HOSTILE = {
    "nothing at all": Record(),
    "tombstone": Record(key=b"k"),
    "empty, not null": Record(key=b"", value=b"", headers=[("", b""), ("n", None)]),
    "key that is not UTF-8": Record(key=b"\xff\x00", value=b"v"),
    "overlong UTF-8": Record(key=b"\xc0\x80", value=b"\xed\xa0\x80"),
    "NUL in a key": Record(key=b"\0\0\0\x2a", value=b"v"),
    "value that is not UTF-8": Record(value=b"\x80", headers=[*BINARY, ("content-type", b"text/plain")]),
    "headers repeated, null, bytes": Record(
        value=b"v", headers=[("x", b"1"), *BINARY, ("x", None), ("x", b"\xfe"), ("é", b"")]
    ),
    "JSON data over lines": Record(value=b'{\n\t"a": 1.10,\r\n "b": "\\u007f"}', headers=[*BINARY, JSON]),
    "numbers beyond doubles": Record(value=b"[9007199254740993, 1e400, -0, 1E2]", headers=[*BINARY, JSON]),
    "duplicate members": Record(value=b'{"a":1,"a":2}', headers=[*BINARY, JSON]),
    "invalid JSON": Record(value=b"{", headers=[*BINARY, JSON]),
    "escape and C1": Record(
        key=b"\x1b[2J", value="\u009b2J \u202e \u2028\U000e0041".encode(), headers=[*BINARY]
    ),
    "broken event": Record(value=b"v", headers=[*BINARY, ("ce_time", b"yesterday")]),
    "broken envelope": Record(value=b"{", headers=[("content-type", b"application/cloudevents+json")]),
    "tolerated source, empty value": Record(value=b"", headers=[*BINARY[:2], ("ce_source", b" "), BINARY[3]]),
    "tolerated source, odd JSON": Record(
        value=b'{"t":"cut \\ud83d"}', headers=[*BINARY[:2], ("ce_source", b" "), BINARY[3], JSON]
    ),
    "batch": Record(value=b"[]", headers=[("content-type", b"application/cloudevents-batch+json")]),
    "unknown format": Record(value=b"?", headers=[("content-type", b"application/cloudevents+xml")]),
    "structured, spaced out": Record(
        value=b' {"specversion" : "1.0",\n"id":"1","source":"/","type":"t","subject":null, "data":[ 1 ] }\n',
        headers=[("content-type", b"Application/CloudEvents+JSON; charset=utf-8"), ("ce_id", b"other")],
    ),
    "avro": to_record(EVENT, mode="structured", format="avro"),
    "another charset": to_record(
        Event(id="1", source="/", type="t", datacontenttype="text/plain; charset=utf-16", data="é")
    ),
}


def content(record: Record) -> tuple[object, ...]:
    return record.key, record.value, record.headers


def resolved(line: bytes, **overrides: object) -> Record:
    return resolve_line(read_line(line), Overrides(**overrides))  # type: ignore[arg-type]


@each("lenient", [False, True])
@each("record", HOSTILE.values(), ids=HOSTILE)
def test_lines_keep_records(record, lenient):
    """Any record becomes one line, which resolves to the same record with its place."""
    placed = msgspec.structs.replace(record, topic="t", partition=2, offset=7)
    line = write_line(decode(placed, lenient=lenient))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    back = resolved(line)
    assert content(back) == content(record)
    assert (back.topic, back.partition, back.offset) == ("t", 2, 7)


def jq(line: bytes) -> bytes:
    """Return a line as rewritten by a tool that stores numbers as doubles and sorts members."""
    largest = 1.7976931348623157e308

    def double(text: str) -> float:
        return max(-largest, min(largest, float(text)))

    members = json.loads(line, parse_float=double, parse_int=lambda text: int(double(text)))
    return json.dumps(members, sort_keys=True, indent=None).encode()


@each("record", HOSTILE.values(), ids=HOSTILE)
def test_jq_is_not_an_edit(record):
    """Rewritten numbers, spaces and order of members do not change the record."""
    assert content(resolved(jq(write_line(decode(record))))) == content(record)


@given(make.hostile_records(), st.booleans())
@make.examples(400)
def test_any_record_is_kept(record, lenient):
    """Records of any bytes are kept, and their lines are JSON that is safe to print."""
    assume(not re.search("[\ud800-\udfff]", "".join(name for name, _ in record.headers)))
    line = write_line(decode(record, lenient=lenient))
    text = line.decode().removesuffix("\n")
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    json.loads(text)
    assert content(resolved(line)) == content(record)


@given(
    make.events(),
    st.sampled_from(
        [("binary", None), ("structured", "json"), ("structured", "avro"), ("structured", "protobuf")]
    ),
    make.keys,
)
@make.examples(400)
def test_any_event_is_kept(event, form, key):
    """Events with all kinds of data are kept, also through jq."""
    mode, format = form
    try:
        record = to_record(event, mode=mode, format=format, key=key)
    except EncodeError:
        assume(False)
    line = write_line(decode(record))
    assert content(resolved(line)) == content(resolved(jq(line))) == content(record)


def edit(line: bytes, **changes: object) -> bytes:
    members = json.loads(line)
    members["event"] |= changes
    return json.dumps(members).encode()


@each("form", [("binary", None), ("structured", "json"), ("structured", "avro"), ("structured", "protobuf")])
def test_an_edited_event_is_sent(form):
    """An edited event is encoded with the mode, key and headers of its record."""
    mode, format = form
    record = to_record(EVENT, mode=mode, format=format, key=b"\xff", headers=[("x", b"\xfe"), ("n", None)])
    back = resolved(edit(write_line(decode(record)), subject="new", data=[1]))
    event = from_record(back)
    assert (event.subject, event.data, event.id) == ("new", [1], "1")
    assert (back.key, [pair for pair in back.headers if pair[0] in "xn"]) == (
        b"\xff",
        [("x", b"\xfe"), ("n", None)],
    )
    assert to_record(event, mode=mode, format=format).headers == [h for h in back.headers if h[0] not in "xn"]


@each(
    "before, after",
    [
        ("1724442618569203714", "1724442618569203715"),
        ("9007199254740992", "9007199254740993"),
        ("1724442618569203700", "1724442618569203714"),
        ("0.1000000000000000055", "0.1000000000000000056"),
        ("1e400", "2e400"),
        ("1e999999999999999999999", "2e999999999999999999999"),
        ("true", "1"),
        ("0", "false"),
        ("[0]", "[false]"),
    ],
)
def test_an_edit_within_one_double_is_sent(before, after):
    """An edit is sent even if both values are the same double, or equal in Python as 1 and True are."""
    type_ = "application/json"
    record = to_record(Event(id="1", source="/", type="t", datacontenttype=type_, data=before.encode()))
    line = write_line(decode(record))
    data = f'"data":{before}'.encode()
    assert line.count(data) == 1
    back = resolved(line.replace(data, f'"data":{after}'.encode()))
    assert back.value == after.encode()


@each("format", ["json", "avro", "protobuf"])
@each("before, after", [("3", 3), (3, "3"), ("true", True), (True, "true")])
def test_an_edit_of_a_type_is_sent(format, before, after):
    """In structured mode, an extension has a type, which an edit may change without its text."""
    record = to_record(EVENT.replace(ext=before), mode="structured", format=format)
    edited = from_record(resolved(edit(write_line(decode(record)), ext=after)))
    assert (edited["ext"], type(edited["ext"])) == (after, type(after))


@each(
    "after",
    ["1724442618569203700", "1.7244426185692037e+18", "1724442618569203712", "1724442618569203712.0"],
)
def test_each_text_of_a_double_is_no_edit(after):
    """A tool may write a double with the fewest digits, with 17 digits, or with all digits."""
    before, type_ = "1724442618569203714", "application/json"
    record = to_record(Event(id="1", source="/", type="t", datacontenttype=type_, data=before.encode()))
    line = write_line(decode(record))
    assert resolved(line.replace(f'"data":{before}'.encode(), f'"data":{after}'.encode())) == resolved(line)


def test_edited_keys_and_headers_are_sent():
    """Key, headers and value are the record: edits of them are sent."""
    members = json.loads(write_line(decode(to_record(EVENT, key="a"))))
    members["key"] = {"hex": "00ff"}
    members["headers"].append(["late", {"base64": "/w=="}])
    back = resolved(json.dumps(members).encode())
    assert back.key == b"\x00\xff"
    assert back.headers[-1] == ("late", b"\xff")


def test_an_event_that_breaks_rules_is_refused():
    """An edited event that is invalid is an error with the broken rule."""
    with pytest.raises(CloudEventsKafkaError, match="R-02"):
        resolved(edit(write_line(decode(to_record(EVENT))), id=""))


def test_a_line_without_value():
    """A line written by hand needs only an event; key and headers are added."""
    line = {
        "key": "k",
        "headers": [["x", "y"]],
        "event": json.loads(to_record(EVENT, mode="structured").value),
    }
    assert resolved(json.dumps(line).encode()) == to_record(EVENT, key="k", headers=[("x", b"y")])
    structured = resolved(json.dumps({**line, "mode": "structured", "format": "avro"}).encode())
    assert structured.headers[0] == ("content-type", b"application/cloudevents+avro")


def test_a_plain_event_is_a_line():
    """An event in the JSON event format is a line, even with extensions named like members of a line."""
    line = b'{"specversion":"1.0","id":"1","source":"/","type":"t","key":"x","value":"y","data":{"a": 1.0}}'
    event = from_record(resolved(line))
    assert (event["key"], event["value"], event.payload) == ("x", "y", b'{"a": 1.0}')
    assert resolved(line, mode="structured").value == line


def test_overrides():
    """Mode, format, key and headers of the options override those of the line."""
    line = write_line(decode(to_record(EVENT.replace(partitionkey="p"), key="k", headers=[("x", b"y")])))
    back = resolved(line, mode="structured", key_mapper=partition_key, headers=[("z", None)])
    assert back.key == b"p"
    assert back.headers == [("content-type", b"application/cloudevents+json"), ("x", b"y"), ("z", None)]
    assert resolved(line, key=b"own").key == b"own"


def test_other_records_have_one_form_only():
    """A record that is not an event is sent unchanged in every mode."""
    record = Record(key=b"k", value=b"v", headers=[("x", b"y")])
    assert content(resolved(write_line(decode(record)), mode="structured")) == content(record)


BAD_LINES = [
    (b"", "must be a JSON object"),
    (b"[]", "must be a JSON object"),
    (b"\xff", "must be a JSON object"),
    (b"{}", "neither an event"),
    (b'{"a":1}', "neither an event"),
    (b'{"value":1}', "value must be text, null"),
    (b'{"value":{"base64":"?"}}', "value must be valid base64"),
    (b'{"value":{"base64":1}}', "value must be valid base64"),
    (b'{"value":{"hex":"0"}}', "value must be valid hex"),
    (b'{"value":{"utf8":"0"}}', "value must be text"),
    (b'{"value":"\\ud800"}', "must be a JSON object"),
    (b'{"value":null,"key":[]}', "key must be text"),
    (b'{"value":null,"headers":1}', "headers must be a list"),
    (b'{"value":null,"headers":[["a"]]}', "headers must be a list"),
    (b'{"value":null,"headers":[[1,"a"]]}', "headers must be a list"),
    (b'{"value":null,"headers":[["a",1]]}', "header 'a' must be text"),
    (b'{"value":null,"topic":1}', "topic must be text"),
    (b'{"value":null,"partition":true}', "partition must be an integer"),
    (b'{"value":null,"timestamp":"now"}', "timestamp must be an integer"),
    (b'{"key":"k"}', 'must have "event" or "value"'),
    (b'{"event":5}', "one JSON object"),
    (b'{"event":{"specversion":"1.0"}}', "id: is required"),
    (b'{"specversion":"1.0","id":"1"}', "source: is required"),
    (b"[" * 5000, "must be a JSON object"),
]


@each(("line", "reason"), BAD_LINES)
def test_bad_lines(line, reason):
    """A line that is neither an event nor a record is an error with the reason."""
    with pytest.raises(CloudEventsKafkaError, match=re.escape(reason)):
        resolved(line)


def test_a_record_is_read_without_its_event():
    """The record of a line is read even if its event is invalid."""
    line = b'{"event":{"id":""},"headers":{"ce_id":"1"},"value":{"hex":"00"},"key":null}'
    assert read_record(line) == Record(value=b"\x00", headers=[("ce_id", b"1")])
    with pytest.raises(BadLine, match="is not a record"):
        read_record(b'{"specversion":"1.0"}')


def test_lines_of_errors():
    """The line of a record that is not an event has the verdict, the reason and the clauses."""
    line = json.loads(write_line(decode(HOSTILE["broken event"])))
    assert line["error"]["verdict"] == "broken-event"
    assert line["error"]["clauses"] == ["T-12"]
    assert "yesterday" in line["error"]["reason"]
    assert "event" not in line
    verdicts = {
        name: json.loads(write_line(decode(HOSTILE[name]))).get("error", {}).get("verdict")
        for name in HOSTILE
    }
    assert verdicts["batch"] == "batch"
    assert verdicts["unknown format"] == "unsupported-format"
    assert verdicts["tombstone"] == "not-an-event"
    assert verdicts["avro"] is None


def test_lines_of_tolerated_problems():
    """The line of a leniently decoded event lists the tolerated problems."""
    record = Record(value=b"v", headers=[(name.replace("_", "-"), value) for name, value in BINARY])
    line = json.loads(write_line(decode(record, lenient=True)))
    assert line["event"]["id"] == "1"
    assert any("ce-id" in problem for problem in line["tolerated"])


def test_wide_data_is_not_deep():
    """Data of many values, also of brackets in strings, stays JSON in a line; deep data does not."""
    wide = json.dumps([{"a": ["[{" * 9, '"[\\']}] * 2000).encode()
    for data, is_inline in (
        (wide, True),
        (make.deep(b"[", 500, b"]"), True),
        (make.deep(b"[", 1001, b"]"), False),
    ):
        event = Event(
            id="1", source="/s", type="t", datacontenttype="application/json", data=msgspec.Raw(data)
        )
        line = write_line(decode(to_record(event)))
        assert ("data" in json.loads(line)["event"]) is is_inline
        assert content(resolved(line)) == content(to_record(event))


@each("data", [b'{"t":"cut \\ud83d"}', make.deep(b"[", 100_000, b"]")], ids=["lone surrogate", "deep"])
@each("content_type", ["application/json", None])
@each("mode", ["binary", "structured"])
def test_data_that_parsers_refuse_becomes_base64(data, content_type, mode):
    """A line is JSON that every parser reads, and resolves to the same record, also through jq."""
    event = Event(id="1", source="/s", type="t", datacontenttype=content_type, data=msgspec.Raw(data))
    record = to_record(event, mode=mode)
    line = write_line(decode(record))
    assert base64.b64decode(json.loads(line)["event"]["data_base64"]) == data
    assert content(resolved(line)) == content(record)
    if content_type or mode == "binary":
        assert content(resolved(jq(line))) == content(record)


@pytest.mark.parametrize(
    "data", [b'{"t":"cut \\ud83d"}', make.deep(b"[", 100_000, b"]")], ids=["lone surrogate", "deep"]
)
def test_lines_of_other_tools_with_such_data(data):
    """An event with such data is read from a line of its own or from the line of a record."""
    event = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data":' + data + b"}"
    for line in (event, b'{"key":"k","event":' + event + b"}"):
        read = read_line(line).event()
        assert read is not None
        assert read.payload == data


@pytest.mark.parametrize(
    "line", [b'{"id":"\\ud83d","data":"\\ud83d","specversion":"1.0"}', b'\xff{"value":null}']
)
def test_errors_do_not_quote_the_line(line):
    """The error of a bad line does not quote its bytes."""
    with pytest.raises(BadLine, match="must be a JSON object") as caught:
        read_line(line)
    assert "0xff" not in str(caught.value)


@pytest.mark.parametrize("content_type", ["application/json", None])
def test_an_edited_event_with_such_data_keeps_it_as_data(content_type):
    """The sent record has the same JSON data and no added content type."""
    data = b'{"t":"cut \\ud83d"}'
    event = Event(id="1", source="/s", type="t", datacontenttype=content_type, data=msgspec.Raw(data))
    record = to_record(event, mode="structured", key="k")
    sent = resolved(edit(write_line(decode(record)), subject="q"))
    assert sent.key == b"k"
    assert sent.value is not None
    assert sent.value.endswith(b',"data":' + data + b"}")
    again = from_record(sent)
    assert (again.subject, again.datacontenttype, again.payload) == ("q", content_type, data)


@pytest.mark.parametrize("name", ["unmarked", "binary"])
def test_lines_have_what_was_left_out(name):
    """A line has the mode of the reading, and the name and the whole value of what was left out."""
    long = "x" * 500 + "\n"
    if name == "unmarked":
        head = {"specversion": "1.0", "id": "1", "source": "/", "type": "t", "note": long}
        record = Record(value=json.dumps(head).encode())
    else:
        record = Record(headers=[*BINARY, ("ce_note", long.encode()), ("ce_raw", b"\xff")])
    item = decode(record, lenient=True)
    line = json.loads(write_line(item))
    assert (line["mode"], line.get("format")) == (
        ("structured", "json") if name == "unmarked" else ("binary", None)
    )
    assert ["note", long] in line["left_out"]
    assert name == "unmarked" or ["ce_raw", {"base64": "/w=="}] in line["left_out"]
    assert any(repr(long) in problem for problem in line["tolerated"])
    assert max(map(len, map(str, item.tolerated))) < 250
