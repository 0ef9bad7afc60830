"""Readers of Avro's binary encoding: a value and the index after it, or an error for wrong bytes."""

from __future__ import annotations

from typing import Any

import pytest

from cloudevents_kafka.codecs.avro_binary import (
    MalformedDatum,
    read_bytes,
    read_datum,
    read_text,
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
        (read_text, b"\x02\xff", "it has a string that is not UTF-8"),
        (read_text, b"\x02ab", "bytes follow its end"),
    ],
)
def test_wrong_bytes_are_refused(read: Any, datum: bytes, said: str) -> None:
    """The error says what is wrong, without the data."""
    with pytest.raises(MalformedDatum, match=f"^{said}$"):
        read_datum(datum, lambda datum: read(datum, 0))
