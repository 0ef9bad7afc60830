"""Variable-length integers, at each change of their size (KIP-482, KIP-625)."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.primitives.varint import MAX_BYTES
from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unencodable
from tests.support.cases import each

VECTORS = json.loads((Path(__file__).parent / "vectors" / "varint.json").read_text())
ROWS = [(32, row) for row in VECTORS["varint32"]] + [(64, row) for row in VECTORS["varint64"]]

# Bytes, then the lowest and highest integers of 32 bits that take so many.
UNSIGNED = [
    (1, 0, 127),
    (2, 128, 16_383),
    (3, 16_384, 2_097_151),
    (4, 2_097_152, 268_435_455),
    (5, 268_435_456, 2_147_483_647),
    (5, -2_147_483_648, -1),
]
SIGNED = [
    (1, -64, 63),
    (2, -8_192, -65),
    (2, 64, 8_191),
    (3, -1_048_576, -8_193),
    (3, 8_192, 1_048_575),
    (4, -134_217_728, -1_048_577),
    (4, 1_048_576, 134_217_727),
    (5, -2_147_483_648, -134_217_729),
    (5, 134_217_728, 2_147_483_647),
]
CODECS = {
    True: (varint.encode_signed, varint.decode_signed),
    False: (varint.encode_unsigned, varint.decode_unsigned),
}
integers = st.sampled_from([16, 32, 64]).flatmap(
    lambda bits: st.tuples(st.just(bits), st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
)


@each(("bits", "row"), ROWS, ids=str)
def test_vectors(bits, row):
    """The bytes are those of Kafka's code."""
    value = row["value"]
    encoded = varint.encode_signed(value, bits)
    assert encoded.hex() == row["zigzag"]
    assert varint.decode_signed(encoded, 0, bits) == (value, len(encoded))
    if row.get("unsigned") is not None:
        encoded = varint.encode_unsigned(value, bits)
        assert encoded.hex() == row["unsigned"]
        assert varint.decode_unsigned(encoded, 0, bits) == (value, len(encoded))


@each(("size", "low", "high"), UNSIGNED)
def test_unsigned_sizes(size, low, high):
    """An unsigned encoding has this size from the start to the end of its range."""
    for value in (low, low + 1, (low + high) // 2, high - 1, high):
        assert len(varint.encode_unsigned(value)) == size


@each(("size", "low", "high"), SIGNED)
def test_signed_sizes(size, low, high):
    """A zigzag encoding has this size from the start to the end of its range."""
    for value in (low, low + 1, (low + high) // 2, high - 1, high):
        assert len(varint.encode_signed(value)) == zigzag.size(value) == size


def test_ranges_are_whole():
    """The ranges contain each 32-bit integer once."""
    for ranges in (UNSIGNED, SIGNED):
        ordered = sorted((low, high) for _, low, high in ranges)
        assert (ordered[0][0], ordered[-1][1]) == (-(1 << 31), (1 << 31) - 1)
        assert all(high + 1 == low for (_, high), (low, _) in pairwise(ordered))


@given(integers, st.booleans(), st.binary(max_size=3), st.binary(max_size=3))
def test_round_trip_at_any_index(one, signed, before, after):
    """Integers round-trip at any index."""
    bits, value = one
    encode, decode = CODECS[signed]
    data = encode(value, bits)
    assert decode(before + data + after, len(before), bits) == (value, len(before) + len(data))
    assert len(data) <= MAX_BYTES[bits]
    for length in range(len(data)):
        with pytest.raises(Truncated) as caught:
            decode(data[:length], 0, bits)
        assert (caught.value.missing, caught.value.at) == (1, length)


@given(st.binary(max_size=12), st.sampled_from([16, 32, 64]), st.booleans())
def test_any_bytes(data, bits, signed):
    """Arbitrary bytes decode to an integer of the bits, or raise the protocol's errors."""
    try:
        value, end = CODECS[signed][1](data, 0, bits)
    except (Malformed, Truncated):
        return
    assert -(1 << (bits - 1)) <= value < 1 << (bits - 1)
    assert 0 < end <= min(len(data), MAX_BYTES[bits])


@each("bits", [16, 32, 64])
@each("signed", [True, False])
def test_too_large(bits, signed):
    """An integer beyond the bits is refused, by encoding and decoding."""
    encode, decode = CODECS[signed]
    for value in (1 << (bits - 1), -(1 << (bits - 1)) - 1):
        with pytest.raises(Unencodable, match=f"does not fit into {bits} bits"):
            encode(value, bits)
    most = MAX_BYTES[bits]
    with pytest.raises(Malformed, match=f"holds more than {bits} bits"):
        decode(b"\xff" * (most - 1) + b"\x7f", 0, bits)
    with pytest.raises(Malformed, match=f"of {bits} bits has at most {most} bytes"):
        decode(b"\x80" * most + b"\x00", 0, bits)


def test_long_forms():
    """A number with leading zero groups decodes."""
    assert varint.decode_unsigned(b"\x81\x80\x00") == (1, 3)
    assert varint.decode_signed(b"\x81\x00") == (-1, 2)


@each(("data", "length"), [(b"\x00", 0), (b"\x80\x01", 128), (b"\xff\xff\xff\xff\x07", (1 << 31) - 1)])
def test_lengths(data, length):
    """A length decodes to its number."""
    assert varint.decode_length(data) == (length, len(data))


def test_lengths_are_never_negative():
    """A length with its highest bit set is a large number, not a negative one."""
    assert varint.decode_length(b"\xff\xff\xff\xff\x0f") == ((1 << 32) - 1, 5)


@each("value", [0, -1, 1, -2, 2, (1 << 63) - 1, -(1 << 63)])
def test_zigzag(value):
    """Zigzag numbers of negative integers are between those of positive ones."""
    number = zigzag.fold(value)
    assert number == (2 * value if value >= 0 else -2 * value - 1)
    assert zigzag.decode(zigzag.encode(value), 0)[0] == value


@each(("bits", "most"), [(16, 3), (32, 5), (64, 10)])
def test_longest(bits, most):
    """The largest integers have 3, 5 and 10 bytes in both encodings; KIP-625 states 9 for the last."""
    lowest = -(1 << (bits - 1))
    assert len(varint.encode_signed(lowest, bits)) == len(varint.encode_unsigned(lowest, bits)) == most
    assert MAX_BYTES[bits] == most
