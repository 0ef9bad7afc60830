"""Readers of Avro's binary encoding: a value and the index after it, or an error for wrong bytes."""

from __future__ import annotations

from typing import Any

import pytest

from cloudevents_kafka.codecs.avro_binary import (
    MalformedDatum,
    read_attributes,
    read_bytes,
    read_datum,
    read_text,
    union_reader,
    write_bytes,
)
from tests.support.cases import each


@each("content", [b"", b"a", b"a" * 63, b"a" * 64, b"a" * 200])
def test_bytes_follow_their_length(content: bytes) -> None:
    """The index after them is that of the next value."""
    datum = b"x" + write_bytes(content) + b"y"
    assert read_bytes(datum, 1) == (content, len(datum) - 1)
    assert read_text(datum, 1) == (content.decode(), len(datum) - 1)


@each(
    ("read", "datum", "said"),
    [
        (read_bytes, b"\x02", "it has a length beyond its end"),
        (read_bytes, b"\x06ab", "it has a length beyond its end"),
        (read_bytes, b"\x01", "it has a length beyond its end"),  # -1
        (read_bytes, b"\x03ab", "it has a length beyond its end"),
        (read_bytes, b"\x80\x02ab", "it has a length beyond its end"),
        (read_bytes, b"", "it ends too early"),
        (union_reader(read_bytes, read_text), b"\x04\x02a", "it has an unknown union branch"),
        (read_text, b"\x02\xff", "it has a string that is not UTF-8"),
        (read_text, b"\x02ab", "bytes follow its end"),
    ],
)
def test_wrong_bytes_are_refused(read: Any, datum: bytes, said: str) -> None:
    """The error says what is wrong, without the data."""
    with pytest.raises(MalformedDatum, match=f"^{said}$"):
        read_datum(datum, lambda datum: read(datum, 0, 0))


@each("length", [1, 63, 64, 100, 200])
def test_attributes_have_texts_of_any_length(length: int) -> None:
    """A length of two bytes is read as one of one byte is, in names and in values."""
    read_value = union_reader(read_bytes, read_bytes, read_bytes, read_text)
    text, short = write_bytes(b"n" * length), write_bytes(b"v")
    for name, value in ((text, short), (short, text), (text, text)):
        entries = (name + b"\x06" + value) * 2  # the fourth branch
        pairs, at = read_attributes(b"\x04" + entries + b"\x00" + b"z" * 200, 0, read_value)
        assert [(len(key), len(found)) for key, found in pairs] == [
            (length if name is text else 1, length if value is text else 1)
        ] * 2
        assert at == 2 + len(entries)
