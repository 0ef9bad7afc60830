"""Message sets: offsets and timestamps in wrappers, and invalid sets."""

from __future__ import annotations

import struct
import zlib

import pytest

from cloudevents_kafka.protocol.errors import Corrupt, Malformed, Unencodable
from cloudevents_kafka.protocol.records import (
    Batches,
    Codec,
    MessageEntry,
    Record,
    TimestampType,
    encode_batch,
    encode_message_set,
)
from cloudevents_kafka.protocol.records.compression import compress
from tests.support.cases import each

THREE = [Record(value=b"a"), Record(value=b"b"), Record(key=b"", value=None)]


def entry(body: bytes, offset: int = 0) -> bytes:
    """Return an entry with offset, size and correct checksum, from its magic on."""
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def wrapper(
    inner: bytes, *, offset: int = 0, magic: int = 0, attributes: int = Codec.GZIP, time: int = 9
) -> bytes:
    packed = compress(inner, Codec.GZIP)
    stamp = struct.pack(">q", time) if magic else b""
    head = bytes([magic, attributes]) + stamp + b"\xff" * 4
    return entry(head + struct.pack(">i", len(packed)) + packed, offset)


def only(data: bytes) -> MessageEntry:
    (found,) = Batches(data)
    assert isinstance(found, MessageEntry)
    return found


def offsets(data: bytes) -> list[int]:
    return [record.offset for record in Batches(data).records()]


def test_messages_have_the_shape_of_batches():
    """A message has the attributes of a batch."""
    message = only(encode_message_set(THREE[:1], 1, base_offset=7))
    assert (message.magic, message.base_offset, message.last_offset, message.codec) == (1, 7, 7, Codec.NONE)
    assert (message.is_control, message.is_transactional) == (False, False)
    assert (message.producer_id, message.producer_epoch, message.base_sequence) == (-1, -1, -1)
    assert repr(message) == "<MessageEntry magic=1 last_offset=7 35 bytes>"


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_has_its_first_and_last_offset(magic):
    """The offset of a wrapper is that of its last message."""
    batch = only(encode_message_set(THREE, magic, Codec.GZIP, base_offset=20))
    assert (batch.base_offset, batch.last_offset, [r.offset for r in batch]) == (20, 22, [20, 21, 22])


def test_offsets_inside_a_wrapper_count_from_0_in_magic_1():
    """A broker changes only the wrapper's offset, and the inner offsets follow, with their gaps."""
    inner = encode_message_set([Record(offset=0), Record(offset=3)], 1, keep_offsets=True)
    assert offsets(wrapper(inner, magic=1, offset=103)) == [100, 103]


def test_offsets_inside_a_wrapper_are_their_own_in_magic_0():
    """In magic 0, inner offsets do not depend on the wrapper's."""
    inner = encode_message_set(THREE, 0, base_offset=50)
    assert offsets(wrapper(inner, offset=7)) == [50, 51, 52]


def test_a_wrapper_at_offset_0_keeps_inner_offsets():
    """If a producer leaves the wrapper's offset at 0, inner offsets are not negative."""
    assert offsets(wrapper(encode_message_set(THREE, 1), magic=1, offset=0)) == [0, 1, 2]


def test_any_offset_may_be_encoded():
    """An encoded offset may be negative, as producers may write."""
    assert offsets(encode_message_set([Record(offset=-7)], 0, keep_offsets=True)) == [-7]


def test_the_brokers_time_of_a_wrapper_is_that_of_its_messages():
    """With the log append bit in the wrapper, its timestamp replaces theirs."""
    inner = encode_message_set([Record(timestamp=1), Record(timestamp=2)], 1)
    times = {
        attributes: [
            (r.timestamp, r.timestamp_type) for r in only(wrapper(inner, magic=1, attributes=attributes))
        ]
        for attributes in (1, 9)
    }
    assert times[1] == [(1, TimestampType.CREATE), (2, TimestampType.CREATE)]
    assert times[9] == [(9, TimestampType.LOG_APPEND)] * 2


def test_the_timestamp_of_a_wrapper_is_the_latest():
    """A wrapper has the largest timestamp of its messages, as brokers and the Java client write it."""
    data = encode_message_set([Record(timestamp=5), Record(timestamp=9), Record()], 1, Codec.GZIP)
    assert struct.unpack_from(">q", data, 18) == (9,)


def test_log_append_time_of_a_message():
    """The log append bit is encoded and decoded in magic 1 only."""
    given = [Record(timestamp=5)]
    for magic, kind in ((1, TimestampType.LOG_APPEND), (0, TimestampType.CREATE)):
        data = encode_message_set(given, magic, timestamp_type=TimestampType.LOG_APPEND)
        assert only(data).records()[0].timestamp_type == kind


@pytest.mark.parametrize("magic", [0, 1])
def test_wrappers_may_be_nested(magic):
    """Wrappers may be nested eight deep, and not deeper; the guide allows nesting."""
    data = encode_message_set(THREE, magic, base_offset=0)
    for _ in range(8):
        data = wrapper(data, magic=magic, offset=2)
    assert offsets(data) == [0, 1, 2]
    with pytest.raises(Malformed, match="nested"):
        offsets(wrapper(data, magic=magic, offset=2))


def test_an_empty_wrapper_has_no_records():
    """A wrapper with an empty set has no records, and keeps its offset."""
    batch = only(wrapper(b"", offset=4))
    assert (batch.records(), batch.base_offset, batch.last_offset) == ([], 4, 4)


def test_magics_may_be_mixed_in_a_wrapper():
    """Messages of magic 0 in a wrapper of magic 1, as of some clients, decode."""
    assert offsets(wrapper(encode_message_set(THREE, 0), magic=1, offset=2)) == [0, 1, 2]


@each(
    ("inner", "says"),
    [
        (encode_message_set(THREE, 0)[:-1], "complete message"),
        (b"\0" * 11, "complete message"),
        (encode_batch([Record()]), "magic 0 or 1, got 2"),
        (b"\0" * 30, "at least 26 bytes"),
    ],
)
def test_wrappers_with_other_content_are_refused(inner, says):
    """A wrapper with a partial message or a batch is `Malformed`."""
    with pytest.raises(Malformed, match=says):
        offsets(wrapper(inner))


NULL = b"\xff\xff\xff\xff"


@each(
    ("body", "says"),
    [
        (b"\0\0" + NULL + NULL + b"x", "end with its value"),
        (b"\0\0" + b"\0\0\0\5" + NULL, "fit"),
        (b"\0\0" + NULL + b"\0\0\0\1", "fit"),
        (b"\0\0" + NULL + b"\xff\xff\xff\xfe", "fit"),
        (b"\0\0" + b"\0\0\0\1x" + b"\0\0\0", "fit"),
        (b"\0\1" + NULL + NULL, "null"),
        (b"\0\7" + NULL + NULL, "0 to 4, got 7"),
    ],
)
def test_broken_messages_are_refused(body, says):
    """A message with other sizes, a null compressed set or an unknown codec is `Malformed`."""
    with pytest.raises(Malformed, match=says):
        only(entry(body)).records()


def test_a_wrong_checksum_in_a_wrapper_is_corrupt():
    """The checksums of inner messages are checked, unless checks are disabled."""
    inner = bytearray(encode_message_set(THREE, 0))
    inner[12] ^= 1
    data = wrapper(bytes(inner))
    with pytest.raises(Corrupt, match="CRC-32"):
        offsets(data)
    assert len(list(Batches(data, check_crc=False).records())) == 3


def test_the_checksum_is_unsigned():
    """A checksum of 2**31 or more round-trips."""
    values = [
        value
        for value in (b"%d" % i for i in range(9))
        if zlib.crc32(b"\0\0" + NULL + b"\0\0\0\1" + value) >> 31
    ]
    assert values
    for value in values:
        assert only(encode_message_set([Record(value=value)], 0)).records()[0].value == value


@each("magic", [0, 1])
@each(("codec", "number"), [(Codec.NONE, 0), (Codec.GZIP, 1), (Codec.SNAPPY, 2)])
def test_attributes_are_the_codec(magic, codec, number):
    """The codec is in the lowest two bits of the attributes; the other bits are 0."""
    data = encode_message_set(THREE[:1], magic, codec)
    assert (data[16], data[17]) == (magic, number)
    assert only(data).codec == number


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_an_empty_set_has_no_bytes(codec):
    """An empty set has 0 bytes."""
    assert encode_message_set([], 0, codec) == b""


@each(
    ("record", "options", "says"),
    [
        (Record(headers=[("a", b"1")]), {"magic": 1}, "headers"),
        (Record(), {"magic": 2}, "must be 0 or 1"),
        (Record(timestamp=2**63), {"magic": 1}, "must fit their fields"),
        (Record(), {"magic": 0, "base_offset": 2**63}, "must fit their fields"),
    ],
)
def test_values_that_a_message_cannot_carry(record, options, says):
    """A record with headers is `Unencodable`, as are other values that a message cannot carry."""
    with pytest.raises(Unencodable, match=says):
        encode_message_set([record], **options)
