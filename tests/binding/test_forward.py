"""Forwarding: an event that equals the reading of a record goes on as that, a changed one keeps the rest."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from cloudevents_kafka import (
    Decoded,
    Event,
    InvalidEvent,
    Record,
    decode,
    from_record,
    to_record,
)
from cloudevents_kafka.binding._headers import fold_name, given_name
from cloudevents_kafka.errors import LeftOut
from cloudevents_kafka.event import raw_parts, unchecked_event
from cloudevents_kafka.primitives import varint, zigzag
from tests.formats.official import MIN, bytes_field, entry
from tests.support import strategies as make
from tests.support.deviating_records import deviating_records

CE = make.required_headers
JSON = ("content-type", b"application/cloudevents+json")
_FIXED = ("specversion", "id", "source", "type", "datacontenttype")
HEAD = b'{"specversion":"1.0","id":"1","source":"/","type":"t"'
seeds = pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.release) for seed in range(2, 12))]
)


def read(record: Record) -> Decoded | None:
    """Return the reading of a record, strict or else lenient."""
    for lenient in (False, True):
        item = decode(record, lenient=lenient)
        if isinstance(item, Decoded):
            return item
    return None


def copy_of(event: Event) -> Event:
    """Return an equal event that knows nothing of the record that it was read from."""
    return unchecked_event(dict(raw_parts(event)[0]), event.payload, event.kind)


@seeds
def test_an_unchanged_event_goes_on_as_it_came(seed: int) -> None:
    """Its record has the same bytes: value, headers and key, in any mode and format, valid or deviating."""
    kinds: Counter[str] = Counter()
    for record in deviating_records(make.scaled(20_000), seed):
        for lenient in (False, True):
            item = decode(record, lenient=lenient)
            if isinstance(item, Decoded):
                kinds[f"{item.mode} {item.format}, {'deviating' if item.tolerated else 'valid'}"] += 1
                for event in (item.event, copy_of(item.event)):
                    again = to_record(event, like=record)
                    assert (again.key, again.value, again.headers) == (
                        record.key,
                        record.value,
                        record.headers,
                    )
    assert len(kinds) >= 8, kinds


@seeds
def test_a_changed_event_keeps_the_rest(seed: int) -> None:
    """It has its mode, its foreign headers and what was left out, and is read as it is."""
    luck = random.Random(seed)
    count = 0
    for record in deviating_records(make.scaled(20_000), seed):
        item = read(record)
        if item is None:
            continue
        event = changed(item.event, luck)
        again = to_record(event, like=record)
        found = read(again)
        assert found is not None, (record, event, again)
        assert (found.mode, found.format) == (item.mode, item.format)
        assert found.event == event, (record, event, again)
        assert [pair for pair in again.headers if is_foreign(pair[0])] == [
            pair for pair in record.headers if is_foreign(pair[0])
        ]
        leniently = decode(again, lenient=True)
        assert isinstance(leniently, Decoded)
        assert lost(item, leniently) == [], (record, event, again)
        count += 1
    assert count > make.scaled(5000)


def changed(event: Event, luck: random.Random) -> Event:
    """Return an event with another type or extension, as a handler makes it; it may break rules as before."""
    attributes = dict(raw_parts(event)[0])
    kind = luck.randrange(4)
    if kind == 0:
        attributes["type"] = "changed"
    elif kind == 1:
        attributes["relayedby"] = "example"
    elif kind == 2:
        optional = [name for name in attributes if name not in _FIXED]
        if not optional:
            attributes["id"] = "changed"
        else:
            del attributes[luck.choice(optional)]
    else:
        attributes["subject"] = "changed"
    names = attributes.keys() | raw_parts(event)[0].keys()
    try:
        return event.replace(**{name: attributes.get(name) for name in names})
    except InvalidEvent:
        return unchecked_event(attributes, event.payload, event.kind)


def test_a_changed_event_keeps_content_types_that_differ() -> None:
    """If a copy in ce_datacontenttype was read, because other headers differ, these headers stay."""
    types = [("Content-Type", b"text/plain"), ("Content-Type", b"text/html")]
    headers = [*CE, *types, ("ce_datacontenttype", b"application/json")]
    item = decode(Record(value=b"{}", headers=headers), lenient=True)
    assert isinstance(item, Decoded)
    again = to_record(item.event.replace(subject="x"), like=item.record)
    assert again.headers == [*CE, *types, ("content-type", b"application/json"), ("ce_subject", b"x")]
    item = decode(Record(value=HEAD + b"}", headers=types), lenient=True)
    assert isinstance(item, Decoded)
    assert to_record(item.event.replace(subject="x"), like=item.record).headers == [*types, JSON]


def test_a_changed_event_keeps_invalid_values() -> None:
    """What lenient reading kept stays in a changed event; a value that is passed is checked."""
    kept = {"source": b"a b", "dataschema": b"order", "sampledrate": b"-1", "deprecated": b"maybe"}
    headers = [(name, value) for name, value in CE if name != "ce_source"]
    headers += [(f"ce_{name}", value) for name, value in kept.items()]
    item = decode(Record(value=b"{}", headers=headers), lenient=True)
    assert isinstance(item, Decoded)
    assert [one.attribute for one in item.tolerated] == [*kept]
    again = to_record(item.event.replace(subject="x", data=b"1"), like=item.record)
    assert (again.value, again.headers) == (b"1", [*headers, ("ce_subject", b"x")])
    for name in kept:
        with pytest.raises(InvalidEvent) as caught:
            item.event.replace(**{name: "c d", "subject": ""})
        assert {one.attribute for one in caught.value.problems} == {name, "subject"}
    assert item.event.replace(source="/", dataschema=None).replace(source="/shop")["sampledrate"] == -1


PROTO = ("content-type", b"application/cloudevents+protobuf")
AVRO = ("content-type", b"application/cloudevents+avro")
COMPACT = ("content-type", b"application/cloudevents+avro-compact")
COMPACT_HEAD = b"\x021\x02/\x02t" + bytes(3)
AVRO_HEAD = b"\x0a\x16specversion\x06\x061.0\x04id\x06\x021\x0csource\x06\x02/\x08type\x06\x02t"


@pytest.mark.parametrize(
    ("header", "value", "left_out"),
    [
        (PROTO, MIN + entry("time", bytes_field(3, b"noon")), ("time", "noon")),
        (PROTO, MIN + entry("time", bytes_field(7, b"\x08" + varint.encode(10**15))), ("time", "(10")),
        (PROTO, MIN + entry("da_ta", b"\x10" + varint.encode(2**40)), ("da_ta", "1099511627776")),
        (PROTO, MIN + entry("subject", b"\x22\x00"), ("subject", "")),
        (PROTO, MIN + entry("Id", bytes_field(3, b"x")), ("Id", "x")),
        (JSON, HEAD + b',"Id":"x"}', ("Id", "x")),
        (JSON, b'{"specVersion":1.5,' + HEAD[1:] + b"}", ("specVersion", "1.5")),
        (AVRO, AVRO_HEAD + b"\x0ada_ta\x04" + zigzag.encode(2**40) + b"\x00\x02", ("da_ta", "1099511627776")),
        (AVRO, AVRO_HEAD + b"\x0esubject\x08\x00\x00\x02", ("subject", "")),
        (COMPACT, COMPACT_HEAD + b"\x02" + zigzag.encode(2**62) + b"\x00\x02", ("time", str(2**62))),
    ],
)
def test_a_changed_event_keeps_what_its_format_cannot_express(
    header: Any, value: bytes, left_out: tuple[str, str]
) -> None:
    """A value of a wrong type is left out of the event, and is in the changed record."""
    item = decode(Record(value=value, headers=[header]), lenient=True)
    assert isinstance(item, Decoded), item
    assert left_out[0] not in item.event
    again = decode(to_record(item.event.replace(type="changed"), like=item.record), lenient=True)
    assert isinstance(again, Decoded)
    assert again.event == item.event.replace(type="changed")
    for found in (item, again):
        [one] = [one for one in found.tolerated if isinstance(one, LeftOut)]
        assert one.attribute == left_out[0]
        assert str(one.value).startswith(left_out[1])


def test_a_changed_event_has_a_misspelled_required_name_once() -> None:
    """An entry of Protobuf's map that was read as the type goes; next to a field for the type it stays."""
    without_type = MIN[: MIN.index(b"\x22")]
    for message, stays in ((without_type, False), (MIN, True)):
        record = Record(value=message + entry("Type", bytes_field(3, b"old")), headers=[PROTO])
        item = decode(record, lenient=True)
        assert isinstance(item, Decoded)
        assert item.event.type == ("t" if stays else "old")
        again = to_record(item.event.replace(type="new"), like=record)
        assert (b"old" in (again.value or b"")) is stays
        assert from_record(again, lenient=stays).type == "new"


@pytest.mark.parametrize("data", [b"hello", b"17", b""])
@pytest.mark.parametrize("content_type", [b"a\nb", b""])
def test_text_in_protobuf_stays_a_text_if_its_type_was_left_out(content_type: bytes, data: bytes) -> None:
    """The text is not written as JSON, in the record that was read or in a new one."""
    value = MIN + entry("datacontenttype", bytes_field(3, content_type)) + bytes_field(7, data)
    item = decode(Record(value=value, headers=[PROTO]), lenient=True)
    assert isinstance(item, Decoded)
    for like in (item.record, None):
        event = item.event.replace(type="changed")
        new = {} if like else {"mode": "structured", "format": "protobuf"}
        again = from_record(to_record(event, like=like, **new), lenient=True)
        assert (again.data, again.datacontenttype) == (data.decode(), None)


@pytest.mark.parametrize("name", ["expirytime", "recordedtime"])
@pytest.mark.parametrize("form", ["json", "avro", "protobuf", "avro-compact"])
def test_a_timestamp_that_lenient_reading_kept_as_text_is_written(form: str, name: str) -> None:
    """A changed event has the text, in a field for texts."""
    headers = [*CE, (f"ce_{name}", b"2018-04-05 17:31:00Z")]
    event = from_record(Record(headers=headers), lenient=True).replace(subject="x")
    again = from_record(to_record(event, mode="structured", format=form), lenient=True)
    assert again == event
    assert again[name] == "2018-04-05 17:31:00Z"


def test_a_changed_event_keeps_fields_of_compact_avro() -> None:
    """A core attribute that was left out of a compact event stays in its field, unless it was set."""
    plain = to_record(
        Event(id="1", source="/", type="t", subject="s"), mode="structured", format="avro-compact"
    )
    record = Record(value=(plain.value or b"").replace(b"\x02s", b"\x02\n"), headers=plain.headers)
    item = decode(record, lenient=True)
    assert isinstance(item, Decoded)
    assert [(one.attribute, one.value) for one in item.tolerated if isinstance(one, LeftOut)] == [
        ("subject", "\n")
    ]
    again = decode(to_record(item.event.replace(dataschema="urn:x", ext=1), like=record), lenient=True)
    assert isinstance(again, Decoded)
    assert (again.event, again.tolerated) == (item.event.replace(dataschema="urn:x", ext=1), item.tolerated)
    changed = item.event.replace(subject="x")
    assert from_record(to_record(changed, like=record)) == changed


def test_a_changed_event_keeps_a_content_type_that_was_not_read() -> None:
    """If the content type of the data is that of the header, a misspelled member with another one stays."""
    member = b'"dataContentType":"application/xml"'
    record = Record(value=HEAD + b"," + member + b',"data":"x"}', headers=[("content-type", b"text/plain")])
    item = decode(record, lenient=True)
    assert isinstance(item, Decoded)
    assert item.event.datacontenttype == "text/plain"
    assert [one.value for one in item.tolerated if isinstance(one, LeftOut)] == ["application/xml"]
    again = to_record(item.event.replace(subject="x"), like=record)
    assert member in (again.value or b"")
    assert from_record(again, lenient=True) == item.event.replace(subject="x")
    for content_type in (None, "text/html"):
        changed = item.event.replace(datacontenttype=content_type)
        assert from_record(to_record(changed, like=record), lenient=True) == changed


@pytest.mark.parametrize("blank", [b" ", b"\t"])
def test_a_structured_event_whose_content_type_begins_with_a_blank_stays_structured(blank: bytes) -> None:
    """It stays structured, whether it was changed or not, if the record has all required headers, too."""
    value = HEAD + b',"datacontenttype":"application/json","data":1}'
    record = Record(value=value, headers=[*CE, ("content-type", blank + JSON[1])])
    item = decode(record, lenient=True)
    assert isinstance(item, Decoded)
    assert item.mode == "structured"
    again = to_record(copy_of(item.event), like=record)
    assert (again.value, again.headers) == (record.value, record.headers)
    changed = decode(to_record(item.event.replace(subject="x"), like=record), lenient=True)
    assert isinstance(changed, Decoded)
    assert (changed.mode, changed.event) == ("structured", item.event.replace(subject="x"))


def test_a_changed_event_in_quotes_stays_in_quotes() -> None:
    """Attributes of a changed event stay in quotation marks, new ones too; the content-type has none."""
    headers = [(name, b'"%b"' % value) for name, value in CE] + [("content-type", b"application/json")]
    record = Record(value=b"{}", headers=headers)
    event = from_record(record, lenient=True)
    again = to_record(event.replace(subject="s"), like=record)
    assert again.headers == [*headers, ("ce_subject", b'"s"')]
    again = to_record(event.replace(data=b"1"), like=record)
    assert (again.value, again.headers) == (b"1", headers)


@pytest.mark.parametrize(
    "content_type", ["text/plain;charset=latin-1", "text/plain;charset=utf-16", "a/b;charset=x"]
)
@pytest.mark.parametrize("data", ['{"gr\u00fc\u00dfe":12}', '["\u20ac"]', "17"])
def test_json_under_another_content_type_stays_as_it_came(content_type: str, data: str) -> None:
    """Lenient reading keeps data that must be a string; it is the data of the event, and of a changed one."""
    value = b'{"specversion":"1.0","id":"1","source":"/","type":"%b","datacontenttype":"%b","data":%b}'
    came, expected = (value % (name, content_type.encode(), data.encode()) for name in (b"t", b"changed"))
    record = Record(value=came, headers=[JSON])
    event = from_record(record, lenient=True)
    assert event.data == json.loads(data)
    assert to_record(event.replace(type="changed"), like=record).value == expected


def test_a_copy_of_another_content_type_goes() -> None:
    """In a record that breaks rules a copy of the content-type stays if it is right, or was another one."""
    right, other = ("ce_datacontenttype", b"a/b"), ("ce_datacontenttype", b"x/y")
    kept: list[tuple[tuple[str, bytes], str]] = [(right, "a/b"), (other, "a/c")]
    gone: list[tuple[tuple[str, bytes], str | None]] = [(right, "a/c"), (right, None), (other, None)]
    for copy, content_type in [*kept, *gone]:
        record = Record(headers=[*CE, ("ce_dataref", b"a b"), ("content-type", b"a/b"), copy])
        event = from_record(record, lenient=True)
        again = to_record(event.replace(id="2", datacontenttype=content_type), like=record)
        assert (copy in again.headers) is ((copy, content_type) in kept)
        types = [value for name, value in again.headers if name == "content-type"]
        assert types == ([] if content_type is None else [content_type.encode()])


def is_foreign(name: Any) -> bool:
    folded = str(name).lower()
    return folded != "content-type" and not folded.startswith(("ce_", "ce-", "cloudevents"))


def lost(before: Decoded, after: Decoded) -> list[LeftOut]:
    """Return what was left out of the record and is not left out of the other.

    What stands for an attribute that the handler has set or removed goes.
    """
    names = {(one.attribute, one.value) for one in after.tolerated}
    changed = raw_parts(after.event)[0].keys() ^ raw_parts(before.event)[0].keys()
    return [
        one
        for one in before.tolerated
        if isinstance(one, LeftOut)
        and one.value not in {None, after.event.text("datacontenttype")}
        and (one.attribute, one.value) not in names
        and fold_name(given_name(str(one.attribute))) not in changed
        and fold_name(str(one.attribute)) not in changed
    ]
