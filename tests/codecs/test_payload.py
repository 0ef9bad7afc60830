"""Data: from Python values to payload bytes and back, by content type."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given

from cloudevents_kafka import DataError
from cloudevents_kafka.codecs.payload import DataKind, from_payload, implies_utf8_json, to_payload
from tests.support import strategies as make
from tests.support.cases import each
from tests.support.ids import stable

B, J, T = DataKind.BYTES, DataKind.JSON, DataKind.TEXT


@each(
    ("data", "content_type", "payload", "kind"),
    [
        (None, None, None, B),
        (None, "application/json", None, B),
        (b"", None, b"", B),
        (b"\xff", "application/json", b"\xff", B),
        (bytearray(b"x"), "text/plain", b"x", B),
        (memoryview(b"x"), None, b"x", B),
        ("hi", None, b'"hi"', J),
        ("hi", "application/json", b'"hi"', J),
        ("123", "application/json", b'"123"', J),
        ("", None, b'""', J),
        ("hi", "text/plain", b"hi", T),
        ("", "text/plain", b"", T),
        ("é", "text/plain", b"\xc3\xa9", T),
        ("é", "text/plain; charset=latin-1", b"\xe9", T),
        ("é", 'text/plain; charset="UTF-16BE"', b"\x00\xe9", T),
        ("<a/>", "application/xml", b"<a/>", T),
        ({"a": [1, None, True, 1.5, "é"]}, None, '{"a":[1,null,true,1.5,"é"]}'.encode(), J),
        (["a", True, None], "Application/JSON", b'["a",true,null]', J),
        (1.5, None, b"1.5", J),
        (True, "application/vnd.a_b+json", b"true", J),
        (0, None, b"0", J),
        (2**70, None, str(2**70).encode(), J),
        ({"a": 1}, "application/json; charset=utf-16be", '{"a":1}'.encode("utf-16-be"), J),
    ],
    ids=stable,
)
def test_values_become_payloads(
    data: Any, content_type: str | None, payload: bytes | None, kind: DataKind
) -> None:
    """None means no data, bytes are the payload, text is text or a JSON string, other values are JSON."""
    made = to_payload(data, content_type)
    assert made == (payload, kind)
    assert type(made[0]) in {bytes, type(None)}


@dataclasses.dataclass
class Point:
    x: float


@each(
    ("data", "content_type"),
    [
        ({"a": 1}, "text/plain"),
        (5, "application/xml"),
        (True, "application/octet-stream"),
        (math.nan, None),
        ({"a": [1, {"b": -math.inf}]}, "application/json"),
        ((math.nan,), None),
        (Point(math.nan), None),
        ([Point(math.inf)], None),
        ([2**64, {"a": -math.nan}], None),
        ("\ud800", None),
        ("\ud800", "text/plain"),
        ("é", "text/plain; charset=us-ascii"),
        ("é", "text/plain; charset=none-such"),
        ("x", "text/plain; charset=base64"),
        (object(), None),
        ({"a": object()}, None),
        (10**5000, None),
        (msgspec.Raw(b"{bad"), None),
        (msgspec.Raw(b""), None),
        (msgspec.Raw(b"NaN"), None),
        (msgspec.Raw(b'1,"id":"2"'), "application/json"),
        ({"a": msgspec.Raw(b'1},"id":"2","x":{"a":1')}, None),
        ([msgspec.Raw(b'"\xff"')], None),
        ({"a": [{"b": msgspec.Raw(b'"')}]}, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_that_cannot_be_encoded(data: Any, content_type: str | None) -> None:
    """A value without a JSON form raises DataError; it is not written as its repr or as null."""
    with pytest.raises(DataError):
        to_payload(data, content_type)


@each(
    ("payload", "kind", "content_type", "data"),
    [
        (None, B, None, None),
        (None, B, "application/json", None),
        (b"", B, None, b""),
        (b"123", B, None, b"123"),
        (b'"x"', B, "application/octet-stream", b'"x"'),
        (b"abc", B, "application/avro", b"abc"),
        (b"123", B, "Application/JSON", 123),
        (b"null", B, "text/json", None),
        (b"123", J, None, 123),
        (b'{"a":"\\ud83d\\ude00"}', J, None, {"a": "😀"}),
        ('{"a":1}'.encode("utf-16"), B, "application/json; charset=utf-16", {"a": 1}),
        (b'"\xe9"', B, "application/json; charset=latin-1", "é"),
        (b"\xc3\xa9", B, "text/plain", "é"),
        (b"\xe9", B, "text/plain; charset=latin-1", "é"),
        (b"123", B, "text/csv", "123"),
        (b"<a/>", B, "application/xml", b"<a/>"),
        (b"<a/>", T, "application/xml", "<a/>"),
    ],
    ids=stable,
)
def test_payloads_become_values(
    payload: bytes | None, kind: DataKind, content_type: str | None, data: Any
) -> None:
    """JSON and texts are decoded in their charset; bytes stay bytes."""
    value = from_payload(payload, kind, content_type)
    assert value == data
    assert type(value) is type(data)


@each(
    ("payload", "content_type"),
    [
        (b"", "application/json"),
        (b"{", "application/json"),
        (b'{"a":1}x', "application/json"),
        (b"NaN", "application/json"),
        (b'"\xff"', "application/json"),
        (b'\xef\xbb\xbf"x"', "application/json"),
        (b'"\\ud800"', "application/json"),
        (b"1e999", "application/json"),
        (b"[" * 10**5, "application/json"),
        (b"\xff", "text/plain"),
        (b"\xff", "text/plain; charset=us-ascii"),
        (b"x", "text/plain; charset=none-such"),
        (b"x", "text/plain; charset=hex"),
        (b"x", "application/json; charset=utf-16"),
        (b"+2AA-", "application/json; charset=utf-7"),
        (b'"\\ud800"', "application/json; charset=unicode_escape"),
        (b"x", "text/plain; charset=undefined"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_any_payload_is_a_value_or_a_data_error(payload: bytes, content_type: str) -> None:
    """Decoding any payload raises only DataError."""
    with pytest.raises(DataError):
        from_payload(payload, B, content_type)


@given(make.json_values)
def test_json_round_trip(value: Any) -> None:
    """A JSON value is equal after encoding and decoding."""
    payload, kind = to_payload(value, "application/json")
    assert from_payload(payload, kind, "application/json") == value


@each("charset", ["utf-16", "UTF16", "utf_32", "Utf-32"])
@each("text", ["A text", "é😀", "\ufeffmarked", ""])
def test_text_without_a_byte_order_mark_is_big_endian(charset: str, text: str) -> None:
    """RFC 2781 4.3 for UTF-16, Unicode 3.10 for UTF-32; a byte order mark decides."""
    wide = charset.lower().replace("_", "-").replace("utf16", "utf-16")
    content_type = f"text/plain; charset={charset}"
    if not text.startswith("\ufeff"):
        assert from_payload(text.encode(f"{wide}-be"), B, content_type) == text
    for order in ("be", "le"):
        assert from_payload(f"\ufeff{text}".encode(f"{wide}-{order}"), B, content_type) == text
    assert from_payload(*to_payload(text, content_type), content_type) == text


def test_json_without_a_byte_order_mark_is_big_endian_too() -> None:
    """JSON data in such a charset is read in the same order, and written as the JSON value."""
    payload = '{"a":"é"}'.encode("utf-16-be")
    assert from_payload(payload, B, "application/json; charset=utf-16") == {"a": "é"}


SECRETS = "\xe9\u20ac\U0001f600\ud800"


@each(
    "charset",
    [
        "us-ascii",
        "utf-8",
        "latin-1",
        "cp1252",
        "utf-16",
        "utf-7",
        "shift_jis",
        "iso-2022-jp",
        "gb18030",
        "big5",
        "koi8-r",
    ],
)
@each("kind", ["text/plain", "application/json"])
def test_error_messages_have_no_data(charset: str, kind: str) -> None:
    """The message has the index of a byte or character, not the byte or character."""
    said: list[str] = []
    content_type = f"{kind}; charset={charset}"
    for payload in (b"\xe9\x81", b"\xff", b"\x81\x00", b"+2AA-", b"\x1b$B\xff", b'"\xc3\x28"'):
        try:
            from_payload(payload, B, content_type)
        except DataError as error:
            said.append(str(error))
    for data in (*SECRETS, {"a": SECRETS}, {SECRETS: 1}):
        try:
            to_payload(data, content_type)
        except DataError as error:
            said.append(str(error))
    assert said
    for message in said:
        assert message.isascii()
        assert re.search(r"0x[0-9a-f]|\\[xuU]", message) is None, message


@each(
    ("content_type", "is_json"),
    [
        (None, True),
        ("application/json", True),
        ("application/vnd.a+json; charset=utf-8", True),
        ("application/json; charset=utf-16", False),
        ("text/plain", False),
        ("application/octet-stream", False),
    ],
    ids=stable,
)
def test_json_in_utf8_is_known_by_the_content_type(content_type: str | None, *, is_json: bool) -> None:
    """Without a content type data is JSON, which is UTF-8 unless the charset is another one."""
    assert implies_utf8_json(content_type) is is_json
