"""Codecs return the compressed data, within limits, in Kafka's framings."""

from __future__ import annotations

import gzip
import resource
import struct
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable

import cramjam
import pytest

from cloudevents_kafka.protocol.errors import Malformed, Unencodable, Unsupported
from cloudevents_kafka.protocol.records import Batches, Codec, Record, encode_batch, encode_message_set
from cloudevents_kafka.protocol.records.compression import compress, decompress
from tests.support.cases import each

MIB = 1 << 20
XERIAL = bytes.fromhex("82534e41505059000000000100000001")
LZ4_START = bytes.fromhex("04224d186040")
PACKED = [codec for codec in Codec if codec != Codec.NONE]
DATA = b"".join(b"reading %d of sensor %d; " % (i, i % 7) for i in range(20_000))


@each("codec", Codec)
@each("size", [0, 1, 32 * 1024, 32 * 1024 + 1, 64 * 1024 + 1, len(DATA)])
def test_round_trip(codec, size):
    """Data of any size round-trips, also beyond the size of a block."""
    assert decompress(compress(DATA[:size], codec), codec) == DATA[:size]


@each("codec", PACKED)
def test_random_data_round_trips(codec):
    """Random data round-trips."""
    noise = b"".join(zlib.crc32(b"%d" % i).to_bytes(4) for i in range(40_000))
    assert decompress(compress(noise, codec), codec) == noise


@each("codec", PACKED)
def test_the_limit_is_exact(codec):
    """Data of exactly the limit decompresses, and one byte more raises `Malformed`."""
    packed = compress(DATA, codec)
    assert decompress(packed, codec, limit=len(DATA)) == DATA
    with pytest.raises(Malformed, match=r"at most"):
        decompress(packed, codec, limit=len(DATA) - 1)


@each("codec", PACKED)
def test_cut_and_followed_bytes_are_refused(codec):
    """Truncated data is `Malformed`, and so is data after the end, but for gzip."""
    packed = compress(DATA[:1000], codec)
    for broken in (packed[:-1], packed[: len(packed) // 2], packed + b"\x01"):
        if codec is Codec.GZIP and broken.startswith(packed):
            continue  # see `test_what_follows_a_gzip_member`
        with pytest.raises(Malformed):
            decompress(broken, codec)


@each("codec", PACKED)
def test_no_bytes_are_not_compressed_data(codec):
    """An empty value is `Malformed`, not an empty set."""
    with pytest.raises(Malformed):
        decompress(b"", codec)


def gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    zeros = bytes(MIB)
    return b"".join([*(packer.compress(zeros) for _ in range(64)), packer.flush()])


def xerial_bomb() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(MIB)))
    return XERIAL + (struct.pack(">i", len(block)) + block) * 64


def lz4_bomb() -> bytes:
    block = bytes(cramjam.lz4.compress_block(bytes(4 * MIB), store_size=False))
    start = bytes.fromhex("04224d18607000")
    return start + (struct.pack("<I", len(block)) + block) * 16 + bytes(4)


BOMBS: dict[str, tuple[Codec, Callable[[], bytes]]] = {
    "gzip": (Codec.GZIP, gzip_bomb),
    "snappy": (Codec.SNAPPY, xerial_bomb),
    "snappy that lies": (Codec.SNAPPY, lambda: b"\xff\xff\xff\xff\x0f" + bytes(100)),
    "lz4": (Codec.LZ4, lz4_bomb),
    "zstd": (Codec.ZSTD, lambda: bytes(cramjam.zstd.compress(bytes(64 * MIB)))),
    "zstd of unknown size": (Codec.ZSTD, lambda: b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10\x00" * 4096),
}


@each("name", BOMBS)
def test_bombs_are_refused_in_bounded_memory(name):
    """Data that expands beyond the limit of 1 MiB uses little memory and time."""
    codec, make = BOMBS[name]
    bomb = make()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    start = time.process_time()
    with pytest.raises(Malformed):
        decompress(bomb, codec, limit=MIB)
    elapsed = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * (
        1 if sys.platform == "darwin" else 1024
    )
    assert peak < 6 * MIB
    assert grown < 24 * MIB
    assert elapsed < 5


def test_the_limit_is_shared_by_nested_wrappers():
    """Nested wrappers share the limit, so that nesting does not multiply it."""
    inner = encode_message_set([Record(value=bytes(100_000))], 0, Codec.GZIP)
    outer = wrapped(inner * 5)
    assert len(list(Batches(outer, limit=600_000).records())) == 5
    with pytest.raises(Malformed, match="at most"):
        list(Batches(outer, limit=400_000).records())


def wrapped(inner: bytes, codec: Codec = Codec.GZIP) -> bytes:
    body = (
        bytes([0, codec])
        + b"\xff" * 4
        + struct.pack(">i", len(compress(inner, codec)))
        + compress(inner, codec)
    )
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def test_many_small_blocks_take_linear_time():
    """100,000 empty lz4 blocks take less than five seconds of processor time."""
    frame = bytes.fromhex("04224d18607000") + (struct.pack("<I", 1) + b"\x00") * 100_000 + bytes(4)
    start = time.process_time()
    assert decompress(frame, Codec.LZ4) == b""
    assert time.process_time() - start < 5


def test_snappy_has_the_framing_of_xerial():
    """Encoded snappy is a header, then blocks of 32 KiB, each with its size."""
    packed = compress(DATA[: 40 * 1024], Codec.SNAPPY)
    assert packed.startswith(XERIAL)
    size = struct.unpack_from(">i", packed, 16)[0]
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + size])) == DATA[: 32 * 1024]


def test_raw_snappy_decodes():
    """One raw snappy block, which some clients send, decodes."""
    assert decompress(bytes(cramjam.snappy.compress_raw(DATA)), Codec.SNAPPY) == DATA


@pytest.mark.parametrize(("old", "checksum"), [(False, 0x82), (True, 0x1A)])
def test_lz4_has_the_header_that_brokers_require(old, checksum):
    """The header checksum of lz4 is correct, or that of brokers before 0.10 (KIP-57)."""
    packed = compress(DATA, Codec.LZ4, old_lz4=old)
    assert packed[:7] == LZ4_START + bytes([checksum])
    assert decompress(packed, Codec.LZ4) == DATA


def test_message_sets_write_the_old_lz4_header_in_magic_0_only():
    """Message sets of magic 0 use the old lz4 checksum, those of magic 1 the correct one."""
    old, new = (encode_message_set([Record(value=DATA)], magic, Codec.LZ4) for magic in (0, 1))
    assert LZ4_START + b"\x1a" in old
    assert LZ4_START + b"\x82" in new


def test_lz4_of_another_writer_decodes():
    """A frame of liblz4 with content size and checksums decodes, and liblz4 decodes ours."""
    theirs = bytes(cramjam.lz4.compress(DATA))
    if theirs[4] & 0x20:  # blocks that lean on each other are not for Kafka
        assert decompress(theirs, Codec.LZ4) == DATA
    assert bytes(cramjam.lz4.decompress(compress(DATA, Codec.LZ4))) == DATA


@each(
    "header",
    ["04224d18", "04224d19604082", "04224d18a04082", "04224d18404082", "04224d18614082", "04224d18603082"],
)
def test_lz4_frames_that_kafka_does_not_have_are_refused(header):
    """Another magic number or version, dependent blocks, a dictionary or too small blocks are `Malformed`."""
    with pytest.raises(Malformed):
        decompress(bytes.fromhex(header) + bytes(4), Codec.LZ4)


def test_lz4_checksums_and_sizes_are_skipped():
    """Block checksums, content size and content checksum are skipped."""
    frame = (
        bytes.fromhex("04224d187c40")
        + bytes(8)
        + b"\x00"
        + struct.pack("<I", 3 | 1 << 31)
        + b"abc"
        + bytes(12)
    )
    assert decompress(frame, Codec.LZ4) == b"abc"


def test_zstd_of_unknown_size_decodes():
    """A zstd frame without its content size, as of the Java client, decodes."""
    packer = cramjam.zstd.Compressor()
    for at in range(0, 3 * MIB, MIB):
        packer.compress(bytes([at // MIB]) * MIB)
    assert decompress(bytes(packer.finish()), Codec.ZSTD) == b"".join(bytes([i]) * MIB for i in range(3))


def test_gzip_of_another_writer_decodes():
    """Gzip with a file name and time decodes; encoded gzip is deterministic."""
    assert decompress(gzip.compress(DATA, mtime=1), Codec.GZIP) == DATA
    assert gzip.decompress(compress(DATA, Codec.GZIP)) == DATA


MEMBER = gzip.compress(DATA[:1000], mtime=1)
EMPTY = gzip.compress(b"", mtime=1)


@each(
    ("data", "members"),
    [
        (MEMBER + MEMBER, 2),
        (EMPTY + MEMBER + EMPTY, 1),
        (MEMBER * 500, 500),
        (MEMBER + bytes(5), 1),
        (MEMBER + bytes(5000), 1),
        (MEMBER + b"\x01", 1),
        (MEMBER + bytes(range(1, 31)), 1),
        (MEMBER + bytes(8) + MEMBER, 1),
        (MEMBER + MEMBER[:18], 1),
        (MEMBER + b"\x1f\x8b\x07" + MEMBER[3:], 1),
    ],
)
def test_what_follows_a_gzip_member(data, members):
    """Members follow each other; bytes that start no member are skipped, as Kafka 4.3.1 does on Java 17."""
    assert decompress(data, Codec.GZIP) == DATA[:1000] * members


@each("second", [MEMBER[:-1], MEMBER[:30], MEMBER[:-8] + bytes(8)])
def test_a_broken_second_gzip_member_is_refused(second):
    """A later member that is cut, or whose checksum is wrong, is `Malformed`, as in the Java client."""
    with pytest.raises(Malformed, match="gzip must"):
        decompress(MEMBER + second, Codec.GZIP)


def test_the_limit_is_shared_by_gzip_members():
    """All members together decompress to at most the limit."""
    assert decompress(MEMBER * 3, Codec.GZIP, limit=3000) == DATA[:1000] * 3
    with pytest.raises(Malformed, match="at most 2,999 bytes"):
        decompress(MEMBER * 3, Codec.GZIP, limit=2999)


@each("number", [5, 6, 7])
def test_a_number_without_codec_is_refused(number):
    """Codecs 5 to 7 are `Malformed`."""
    with pytest.raises(Malformed, match=f"0 to 4, got {number}"):
        Codec.of(number | 0x48)


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_without_cramjam_the_error_says_what_to_install(codec, monkeypatch):
    """Without the extra ``protocol``, gzip works, and the errors of other codecs name the extra."""
    packed = encode_batch([Record()], codec)
    monkeypatch.setitem(sys.modules, "cramjam", None)
    for attempt in (lambda: encode_batch([Record()], codec), lambda: list(Batches(packed).records())):
        with pytest.raises(Unsupported, match=rf"{codec.name.lower()} needs cramjam: .*\[protocol\]"):
            attempt()
    assert len(list(Batches(encode_batch([Record()], Codec.GZIP)).records())) == 1


def test_message_sets_have_no_zstd():
    """Zstd in a message set is `Unencodable`, because brokers do not support it."""
    with pytest.raises(Unencodable, match="zstd"):
        encode_message_set([Record()], 1, Codec.ZSTD)
