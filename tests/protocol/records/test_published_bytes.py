"""Bytes that other projects publish decode, and encode to the same bytes.

Live data of brokers 0.10 and 0.11 (kafka-python) and sets of two empty messages in one
wrapper, by codec (sarama; the two newer ones hold messages of magic 0 in one of magic 1).
"""

from __future__ import annotations

import struct
import zlib

from cloudevents_kafka.protocol.records import Batches, Codec, Record, encode_batch, encode_message_set
from cloudevents_kafka.protocol.records.checksum import crc32c, slow_crc32c
from cloudevents_kafka.protocol.records.record import ABORT
from tests.support.cases import each

MAGIC_0 = bytes.fromhex(
    "000000000000000000000011feb01dbf0000ffffffff0000000331323300000000000000010000000e795748e00000ff"
    "ffffff00000000"
)
MAGIC_1 = bytes.fromhex(
    "000000000000000000000019478628c201000000015e1867abaeffffffff000000033132330000000000000001000000"
    "16ef98c92001000000015e1867afc0ffffffff00000000"
)
MAGIC_2 = bytes.fromhex(
    "00000000000000000000003b00000001020318a2700000000000000000015dff7b063c0000015dff7b063cffffffffff"
    "ffffffffffffffffff00000001120000000106313233000000000000000001000000400000000202c85cbd2300000000"
    "00010000015dff7cdd6c0000015dff7cde14ffffffffffffffffffffffffffff000000020c0000000100000e00d00202"
    "01000000000000000000000000004500000000025cd8ef520000000000000000016585b6f3c10000016585b6f3c1ffff"
    "ffffffffffffffffffffffff000000012600000001066864720208686b6579086876616c"
)
CONTROL = bytes.fromhex(
    "00000000000000000000005200000000026597ffd0002000000000000000000098967f000000000098967fffffffffff"
    "ffffffffffffffffff000000014000000008000000002c6f70617175652d636f6e74726f6c2d6d65737361676500"
)
WRAPPERS = {
    Codec.GZIP: bytes.fromhex(
        "8ba03f8d0001ffffffff000000271f8b080000000000000063608003beca708f070c0cff810021c8c088290300c7e29b"
        "4634000000"
    ),
    Codec.SNAPPY: bytes.fromhex(
        "b42f35d10002ffffffff0000002a82534e41505059000000000100000001000000163400001901100ee38a6876190f0d"
        "01080100003e1a00"
    ),
    Codec.LZ4: bytes.fromhex(
        "f60cbc810103fffff9d1d4b549c9ffffffff0000004704224d186470b93400008000000000000000000000000e795748"
        "e00000ffffffff0000000000000000000000010000000e795748e00000ffffffff00000000000000004781176f"
    ),
    Codec.ZSTD: bytes.fromhex(
        "cb97851c0104fffff9d1d4b549c9ffffffff0000002628b52ffd2434cd00007800000e795748e00000ffffffff000103"
        "003dbd003b15000bd234c178"
    ),
}


def read(data: bytes) -> list[Record]:
    return list(Batches(data).records())


def test_messages_of_magic_0():
    """A broker's messages of magic 0 decode, and encode to the same bytes."""
    assert read(MAGIC_0) == [Record(value=b"123", offset=0), Record(value=b"", offset=1)]
    assert encode_message_set(read(MAGIC_0), 0) == MAGIC_0


def test_messages_of_magic_1():
    """A broker's messages of magic 1 decode with timestamps, and encode to the same bytes."""
    first, second = read(MAGIC_1)
    assert (first.timestamp, first.value, second.value, second.offset) == (1503648000942, b"123", b"", 1)
    assert encode_message_set([first, second], 1) == MAGIC_1


def test_batches_of_magic_2():
    """A broker's batches decode with headers, and encode to the same bytes."""
    batches = list(Batches(MAGIC_2))
    assert [batch.crc for batch in batches] == [0x0318A270, 0xC85CBD23, 0x5CD8EF52]
    assert [record.value for record in read(MAGIC_2)] == [b"123", b"", b"", b"hdr"]
    assert read(MAGIC_2)[0].timestamp == 1503229838908
    assert read(MAGIC_2)[3].headers == [("hkey", b"hval")]
    written = [
        encode_batch(b.records(), keep_offsets=True, partition_leader_epoch=b.partition_leader_epoch)
        for b in batches
    ]
    assert b"".join(written) == MAGIC_2


def test_a_control_batch():
    """The control record of an aborted transaction decodes; its published checksum is wrong."""
    (batch,) = Batches(CONTROL, check_crc=False)
    assert (batch.is_control, batch.is_transactional, batch.control_record().type) == (True, False, ABORT)
    assert batch.records()[0].value == b"opaque-control-message"


@each("codec", WRAPPERS)
def test_two_empty_messages_by_codec(codec):
    """The wrapper of each codec, by another client, has the same two messages."""
    message = WRAPPERS[codec]
    entry = struct.pack(">qi", 1, len(message)) + message
    (batch,) = Batches(entry)
    assert batch.codec == codec
    key = b"" if codec == Codec.SNAPPY else None
    assert batch.records() == [Record(key, b"", offset=offset) for offset in (0, 1)]


def test_the_message_of_the_annotated_request():
    """The message "Hello!" has the checksum that the annotated Perl fixture prints."""
    expected = "0000000000000000000000148dc795a20000ffffffff0000000648656c6c6f21"
    assert encode_message_set([Record(value=b"Hello!")], 0).hex() == expected


@each(("text", "crc"), [(b"ale", 0x42C4C979), (b"alejandro", 0xAAC5A14F), (b"martin", 0x2D01D7F0)])
def test_the_checksum_of_old_messages_is_zlibs(text, crc):
    """The CRC-32 in the documents of 0.7 is zlib's."""
    assert zlib.crc32(text) == crc


@each("checksum", [crc32c, slow_crc32c])
@each(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_the_checksum_of_batches(checksum, data, crc):
    """CRC-32C has the values of RFC 3720, with and without google-crc32c."""
    assert checksum(data) == crc
