"""JSON in other charsets: what a charset does not have is escaped, and every value is read back."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cloudevents_kafka import Event, from_record, to_record
from cloudevents_kafka.attributes.media_type import _CHARSETS
from cloudevents_kafka.codecs.payload import DataKind, from_payload, to_payload
from tests.support import strategies as make
from tests.support.cases import each

CHARSETS = sorted({*_CHARSETS, "us-ascii"})
CODECS = sorted({*_CHARSETS.values(), "us-ascii"})
SIGNS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
VALUES = st.one_of(make.json_values, SIGNS, st.dictionaries(SIGNS, st.lists(SIGNS, max_size=2), max_size=2))
# Shift JIS would write a yen sign as a backslash, and cp864 has no "%".
HARD = {"€é\U0001f600": ["¥n", "¥", "‾", "ж漢¢", "50%", '\\"\x7f\x80\u2028', "か\u309a"]}


@each(
    ("charset", "data", "payload"),
    [
        ("latin1", "€", rb'"\u20ac"'),
        ("latin1", {"é€": ["\U0001f600é"]}, b'{"\xe9\\u20ac":["\\ud83d\\ude00\xe9"]}'),
        ("us-ascii", "é", rb'"\u00e9"'),
        ("ascii", "é", rb'"\u00e9"'),
        ("cp1252", "€ж", b'"\x80\\u0436"'),
        ("shift_jis", "¥n漢", b'"\\u00a5n\x8a\xbf"'),
        ("cp864", "50%", rb'"50\u0025"'),
        ("utf-16be", "€", '"€"'.encode("utf-16-be")),
        ("utf-8", "€", '"€"'.encode()),
    ],
)
def test_what_a_charset_does_not_have_is_escaped(charset: str, data: Any, payload: bytes) -> None:
    """Only those characters are escaped, in texts and in names."""
    content_type = f"application/json;charset={charset}"
    assert to_payload(data, content_type) == (payload, DataKind.JSON)
    assert from_payload(payload, DataKind.BYTES, content_type) == data


@each("charset", CHARSETS)
def test_json_in_every_charset(charset: str) -> None:
    """A value is read back, and the payload is a text of the charset, and JSON."""
    content_type = f"application/json;charset={charset}"
    payload, kind = to_payload(HARD, content_type)
    assert payload is not None
    assert from_payload(payload, kind, content_type) == HARD
    assert json.loads(payload.decode(_CHARSETS.get(charset.replace("-", "_"), charset))) == HARD


@settings(max_examples=settings.default.max_examples * 3)
@given(VALUES, st.sampled_from(CODECS), st.sampled_from(["json", "avro", "protobuf", None]))
def test_events_in_every_charset(data: Any, charset: str, format: str | None) -> None:
    """An event's data is read back from binary mode and from each event format."""
    event = Event(
        id="1", source="/", type="t", datacontenttype=f"application/json;charset={charset}", data=data
    )
    mode: Any = "binary" if format is None else "structured"
    again = from_record(to_record(event, mode=mode, format=format))
    assert again.data == data
    assert again.payload == event.payload
