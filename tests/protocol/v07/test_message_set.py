"""Messages of 0.7: as a real broker kept them, cut where a fetch cuts, and never a foreign exception."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka07 import EXCHANGES

from cloudevents_kafka.protocol.errors import Corrupt, Malformed, ProtocolError, Unencodable
from cloudevents_kafka.protocol.records import Codec, compress
from cloudevents_kafka.protocol.v07 import (
    FetchRequest,
    FetchResponse,
    Message,
    MessageSet,
    MultiFetchResponse,
    encode,
    frames,
    pack,
)
from cloudevents_kafka.protocol.v07._message_set import MAX_NESTING

messages = st.builds(Message, st.binary(max_size=30), st.sampled_from([0, 1]), st.just(0))


def fetched(name):
    """Return the set of a recorded fetch."""
    (exchange,) = (e for e in EXCHANGES if e.name == name)
    request = frames.decode_request(exchange.request[4:])
    assert isinstance(request, FetchRequest)
    return MessageSet(frames.decode_response(FetchResponse, exchange.response[4:]).messages, request.offset)


@pytest.mark.parametrize(
    ("payload", "crc"), [(b"ale", 0x42C4C979), (b"alejandro", 0xAAC5A14F), (b"martin", 0x2D01D7F0)]
)
def test_checksums_of_kafka_rb(payload, crc):
    """The checksum is over the payload alone, as kafka-rb's tests have it."""
    assert encode([Message(payload)])[6:10] == struct.pack(">I", crc)
    assert encode([Message(payload, magic=0)])[5:9] == struct.pack(">I", crc)


@pytest.mark.parametrize(
    ("message", "raw"),
    [(Message(b"ale", magic=0), "000000080042c4c979616c65"), (Message(b"", magic=0), "000000050000000000")],
)
def test_messages_of_kafka_rb(message, raw):
    """Messages of magic 0 have the bytes in kafka-rb's tests."""
    assert encode([message]).hex() == raw
    assert [entry.message for entry in MessageSet(bytes.fromhex(raw))] == [message]


def test_mixed_magics():
    """One set has messages of both magics, each with its position and the next one's."""
    found = fetched("fetch t7-0 off=0 max=10000")
    assert [(e.message, e.offset, e.next_offset) for e in found] == [
        (Message(b"hello"), 0, 15),
        (Message(b"old-magic", magic=0), 15, 33),
        (Message(b""), 33, 43),
    ]
    assert encode(entry.message for entry in found) == found.data


@pytest.mark.parametrize(
    ("name", "whole", "partial"),
    [
        ("fetch t7-0 off=0 max=20", 1, "0000000e00"),
        ("fetch t7-0 off=0 max=2", 0, "0000"),
        ("fetch t7-0 off=15 max=1000", 2, ""),
        ("fetch t7-0 off=99999 max=1000", 0, ""),
        ("fetch seg-0 off=0 max=100000", 4, ""),
    ],
)
def test_cut_at_the_end(name, whole, partial):
    """A cut message or a cut header at the end is a value, and where it begins is where to go on."""
    found = fetched(name)
    entries = list(found)
    assert len(entries) == whole
    assert found.partial.hex() == partial
    assert found.next_offset == (entries[-1].next_offset if entries else found.offset)


def test_no_boundary():
    """What a real broker sent for a position within a message is an error that asks about the offset."""
    found = fetched("fetch t7-0 off=3 max=1000")
    for read in (list, lambda s: s.partial, lambda s: s.next_offset):
        with pytest.raises(Malformed, match=r"at byte 3: .* check that a message starts at this offset"):
            read(found)


def test_gzip_of_the_broker():
    """A compressed set that a broker kept is unpacked; its messages share a place in the log."""
    (exchange,) = (e for e in EXCHANGES if e.name == "multifetch")
    answer = frames.decode_response(MultiFetchResponse, exchange.response[4:])
    found = MessageSet(frames.split_responses(answer.responses)[1].messages, 100)
    (outer,) = found.shallow()
    assert outer.message.codec is Codec.GZIP
    entries = list(found)
    assert [entry.message.payload for entry in entries] == [b"aaa", b"bbb"]
    assert [(entry.offset, entry.next_offset) for entry in entries] == [(100, 100), (100, 153)]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_packed(codec):
    """A packed set gives its messages again, of both magics, in order; before and after it others stand."""
    inner = [Message(b"one"), Message(b"two", magic=0), Message(b"")]
    found = MessageSet(encode([b"first", pack(inner, codec), b"last"]), 1000)
    assert [e.message for e in found] == [Message(b"first"), *inner, Message(b"last")]
    offsets = [e.next_offset for e in found]
    assert offsets[:3] == [1015] * 3
    assert offsets[3] == list(found.shallow())[1].next_offset
    assert found.next_offset == 1000 + len(found.data)


def test_packed_in_packed():
    """Sets may be packed into each other, as deep as the limit and no deeper."""
    message = pack([b"deep"], Codec.GZIP)
    for _ in range(MAX_NESTING - 1):
        message = pack([message], Codec.GZIP)
    assert [e.message.payload for e in MessageSet(encode([message]))] == [b"deep"]
    with pytest.raises(Malformed, match="nested at most 8 deep"):
        list(MessageSet(encode([pack([message], Codec.GZIP)])))


def test_packed_nothing():
    """A packed set of no messages gives none, and the next begins behind it."""
    found = MessageSet(encode([pack([], Codec.GZIP), b"x"]))
    assert [e.message.payload for e in found] == [b"x"]


def test_size_is_capped():
    """All that one message unpacks to counts against the limit, on all levels together."""
    half = pack([bytes(600)], Codec.GZIP)
    found = MessageSet(encode([pack([half, half], Codec.GZIP)]), limit=1000)
    with pytest.raises(Malformed, match="more than the"):
        list(found)
    assert len(list(MessageSet(found.data, limit=2000))) == 2


@pytest.mark.parametrize(
    ("inner", "error", "said"),
    [
        (encode([b"good", b"cut"])[:-1], Malformed, "got 12 more bytes"),
        (encode([b"good"]) + bytes(9), Malformed, "got 0 bytes"),
        (encode([b"good", b"bad"])[:-1] + b"!", Corrupt, "the checksum"),
    ],
)
def test_broken_inside(inner, error, said):
    """In a packed set nothing may be cut or broken; what is whole comes first, with the wrapper's offset."""
    found = iter(MessageSet(encode([Message(compress(inner, Codec.GZIP), attributes=1)]), 7))
    assert next(found) == (Message(b"good"), 7, 7)
    with pytest.raises(error, match=said) as raised:
        next(found)
    assert raised.value.at == 7


def test_broken_gzip():
    """A payload that is no gzip is Malformed."""
    with pytest.raises(Malformed, match="gzip"):
        list(MessageSet(encode([Message(b"no gzip", attributes=1)])))


def test_unknown_codec():
    """Codec 3 is none in 0.7, though it is one later; the message itself is readable."""
    found = MessageSet(encode([Message(b"lz4?", attributes=3)]))
    assert next(found.shallow()).message.payload == b"lz4?"
    with pytest.raises(Malformed, match="got 3"):
        list(found)


def test_corrupt():
    """A payload that its checksum does not fit is Corrupt, with both and the position."""
    raw = encode([b"fine", b"rnd"])[:-1] + b"e"
    found = iter(MessageSet(raw, 50))
    assert next(found).message.payload == b"fine"
    with pytest.raises(Corrupt, match=f"{zlib.crc32(b'rnd'):08x}") as raised:
        next(found)
    assert raised.value.at == 50 + 14


@pytest.mark.parametrize(
    "raw",
    ["00000004", "ffffffff", "80000000", "0000000501", "00000005010000000000", "0000000a02", "00000000"],
)
def test_lengths_and_magics_that_are_none(raw):
    """A length too short for its magic, or another magic, is Malformed even when the message is cut."""
    with pytest.raises(Malformed, match=r"magic 0 or 1"):
        list(MessageSet(bytes.fromhex(raw)))


@pytest.mark.parametrize(
    "message",
    [
        Message("text"),  # type: ignore[arg-type]  # what is refused
        Message(b"", magic=2),
        Message(b"", magic=0, attributes=1),
        Message(b"", attributes=300),
        Message(b"", magic="1"),  # type: ignore[arg-type]  # the same
    ],
)
def test_unencodable(message):
    """What no message can carry is refused when written."""
    with pytest.raises(Unencodable):
        encode([message])


def test_codecs_of_later_brokers():
    """A set cannot be packed by a codec that 0.7 does not have."""
    with pytest.raises(Unencodable, match="LZ4"):
        pack([b""], Codec.LZ4)


@given(st.lists(messages, max_size=8), st.integers(0, 2**40), st.data())
def test_round_trip_and_any_cut(given_messages, offset, data):
    """Messages return with their positions; a cut anywhere gives the whole ones and the bytes left over."""
    raw = encode(given_messages)
    cut = data.draw(st.integers(0, len(raw)))
    found = MessageSet(raw[:cut], offset)
    entries = list(found)
    assert [e.message for e in entries] == given_messages[: len(entries)]
    positions = [offset, *(e.next_offset for e in entries)]
    assert [e.offset for e in entries] == positions[:-1]
    assert encode(e.message for e in entries) + found.partial == raw[:cut]
    assert found.next_offset == positions[-1]


@given(st.binary(max_size=80))
@example(bytes(80))
@example(b"\x7f\xff\xff\xff\1\1")
@example(encode([Message(b"\x1f\x8b\x08", attributes=1), Message(b"", attributes=2)]))
@example(encode([Message(b"\x82SNAPPY\0" + bytes(8) + b"\xff" * 8, attributes=2)]))
def test_any_bytes(data):
    """Any bytes give messages, or an error of this room."""
    for read in (list, lambda found: found.partial):
        with suppress(ProtocolError):
            read(MessageSet(data))


@given(st.binary(max_size=60), st.sampled_from([1, 2]))
def test_any_compressed_bytes(payload, codec):
    """Any payload of a packed message gives messages, or an error of this room."""
    with suppress(ProtocolError):
        list(MessageSet(encode([Message(payload, attributes=codec)])))
