"""Messages of 0.7: those of a real broker, partial ones, and only the protocol's errors."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.errors import Corrupt, Malformed, ProtocolError, Unencodable
from cloudevents_kafka.protocol.records import Codec
from cloudevents_kafka.protocol.records.compression import compress
from cloudevents_kafka.protocol.v07 import FetchRequest, Message, MessageSet, encode, frames
from cloudevents_kafka.protocol.v07.message_set import pack
from cloudevents_kafka.protocol.v07.messages import FetchResponse, MultiFetchResponse
from tests.support.cases import each
from tests.support.kafka07 import EXCHANGES

messages = st.builds(Message, st.binary(max_size=30), st.sampled_from([0, 1]), st.just(0))


def fetched(name):
    """Return the set of a recorded fetch."""
    (exchange,) = (e for e in EXCHANGES if e.name == name)
    request = frames.decode_request(exchange.request[4:])
    assert isinstance(request, FetchRequest)
    return MessageSet(frames.decode_response(FetchResponse, exchange.response[4:]).messages, request.offset)


@each(("payload", "crc"), [(b"ale", 0x42C4C979), (b"alejandro", 0xAAC5A14F), (b"martin", 0x2D01D7F0)])
def test_checksums_of_kafka_rb(payload, crc):
    """The checksum covers the payload only, as in kafka-rb's tests."""
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
    """A set may have messages of both magics, each with its offset and the next one's."""
    found = fetched("fetch t7-0 off=0 max=10000")
    assert [(e.message, e.offset, e.next_offset) for e in found] == [
        (Message(b"hello"), 0, 15),
        (Message(b"old-magic", magic=0), 15, 33),
        (Message(b""), 33, 43),
    ]
    assert encode(entry.message for entry in found) == found.data


@each(
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
    """A partial message at the end is not an error, and its start is the next offset."""
    found = fetched(name)
    entries = list(found)
    assert len(entries) == whole
    assert found.partial.hex() == partial
    assert found.next_offset == (entries[-1].next_offset if entries else found.offset)


def test_no_boundary():
    """The response for an offset within a message is `Malformed`, and the error names the offset."""
    found = fetched("fetch t7-0 off=3 max=1000")
    for read in (list, lambda s: s.partial, lambda s: s.next_offset):
        with pytest.raises(Malformed, match=r"at byte 3: .* check that a message starts at this offset"):
            read(found)


def test_gzip_of_the_broker():
    """A compressed set of a broker decompresses; its messages share an offset."""
    (exchange,) = (e for e in EXCHANGES if e.name == "multifetch")
    answer = frames.decode_response(MultiFetchResponse, exchange.response[4:])
    found = MessageSet(frames.split_responses(answer.responses)[1].messages, 100)
    (outer,) = found.shallow()
    assert outer.message.codec is Codec.GZIP
    entries = list(found)
    assert [entry.message.payload for entry in entries] == [b"aaa", b"bbb"]
    assert [(entry.offset, entry.next_offset) for entry in entries] == [(100, 100), (100, 153)]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_compressed_set(codec):
    """A compressed set yields its messages of both magics in order, between others."""
    inner = [Message(b"one"), Message(b"two", magic=0), Message(b"")]
    found = MessageSet(encode([b"first", pack(inner, codec), b"last"]), 1000)
    assert [e.message for e in found] == [Message(b"first"), *inner, Message(b"last")]
    offsets = [e.next_offset for e in found]
    assert offsets[:3] == [1015] * 3
    assert offsets[3] == list(found.shallow())[1].next_offset
    assert found.next_offset == 1000 + len(found.data)


def test_nested_compressed_sets():
    """Compressed sets may be nested up to the limit, and not deeper."""
    message = pack([b"deep"], Codec.GZIP)
    for _ in range(7):
        message = pack([message], Codec.GZIP)
    assert [e.message.payload for e in MessageSet(encode([message]))] == [b"deep"]
    with pytest.raises(Malformed, match="nested at most 8 deep"):
        list(MessageSet(encode([pack([message], Codec.GZIP)])))


def test_empty_compressed_set():
    """An empty compressed set yields no messages, and the next offset is after it."""
    found = MessageSet(encode([pack([], Codec.GZIP), b"x"]))
    assert [e.message.payload for e in found] == [b"x"]


def test_size_is_capped():
    """The limit is for the decompressed data of a message on all levels together."""
    half = pack([bytes(600)], Codec.GZIP)
    found = MessageSet(encode([pack([half, half], Codec.GZIP)]), limit=1000)
    with pytest.raises(Malformed, match="at most"):
        list(found)
    assert len(list(MessageSet(found.data, limit=2000))) == 2


@each(
    ("inner", "error", "said"),
    [
        (encode([b"good", b"cut"])[:-1], Malformed, "got 12 more bytes"),
        (encode([b"good"]) + bytes(9), Malformed, "got 0 bytes"),
        (encode([b"good", b"bad"])[:-1] + b"!", Corrupt, "the checksum"),
    ],
)
def test_broken_inside(inner, error, said):
    """A partial or malformed message in a compressed set raises after the messages before it."""
    found = iter(MessageSet(encode([Message(compress(inner, Codec.GZIP), attributes=1)]), 7))
    assert next(found) == (Message(b"good"), 7, 7)
    with pytest.raises(error, match=said) as raised:
        next(found)
    assert raised.value.at == 7


def test_broken_gzip():
    """A payload of invalid gzip is `Malformed`."""
    with pytest.raises(Malformed, match="gzip"):
        list(MessageSet(encode([Message(b"no gzip", attributes=1)])))


def test_unknown_codec():
    """Codec 3 is `Malformed` in 0.7; the message itself decodes."""
    found = MessageSet(encode([Message(b"lz4?", attributes=3)]))
    assert next(found.shallow()).message.payload == b"lz4?"
    with pytest.raises(Malformed, match="got 3"):
        list(found)


def test_corrupt():
    """A payload with a wrong checksum is `Corrupt`, with both values and the offset."""
    raw = encode([b"fine", b"rnd"])[:-1] + b"e"
    found = iter(MessageSet(raw, 50))
    assert next(found).message.payload == b"fine"
    with pytest.raises(Corrupt, match=f"{zlib.crc32(b'rnd'):08x}") as raised:
        next(found)
    assert raised.value.at == 50 + 14


@each(
    "raw",
    ["00000004", "ffffffff", "80000000", "0000000501", "00000005010000000000", "0000000a02", "00000000"],
)
def test_invalid_lengths_and_magics(raw):
    """A length too small for its magic, or another magic, is `Malformed`, also for a partial message."""
    with pytest.raises(Malformed, match=r"magic 0 or 1"):
        list(MessageSet(bytes.fromhex(raw)))


@each(
    "message",
    [
        Message("text"),  # type: ignore[arg-type]  # what is refused
        Message(b"", magic=2),
        Message(b"", magic=0, attributes=1),
        Message(b"", magic=0, attributes=-1),
        Message(b"", attributes=300),
        Message(b"", magic="1"),  # type: ignore[arg-type]  # the same
    ],
)
def test_unencodable(message):
    """A value that a message cannot carry is `Unencodable`."""
    with pytest.raises(Unencodable):
        encode([message])


def test_codecs_of_later_brokers():
    """A set cannot be compressed with a codec that 0.7 does not have."""
    with pytest.raises(Unencodable, match="LZ4"):
        pack([b""], Codec.LZ4)


@given(st.lists(messages, max_size=8), st.integers(0, 2**40), st.data())
def test_round_trip_and_any_cut(given_messages, offset, data):
    """Messages round-trip with their offsets; truncated sets yield the complete ones."""
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
    """Arbitrary bytes yield messages or raise the protocol's errors."""
    for read in (list, lambda found: found.partial):
        with suppress(ProtocolError):
            read(MessageSet(data))


@given(st.binary(max_size=60), st.sampled_from([1, 2]))
def test_any_compressed_bytes(payload, codec):
    """An arbitrary payload of a compressed message yields messages or raises the protocol's errors."""
    with suppress(ProtocolError):
        list(MessageSet(encode([Message(payload, attributes=codec)])))
