"""Decompressing and decoding need the memory of one copy of the data."""

from __future__ import annotations

import io
import mmap
import struct
import subprocess
import sys
import tracemalloc

import cramjam
import pytest

from cloudevents_kafka.protocol.errors import Malformed
from cloudevents_kafka.protocol.records import Batches, Codec, Record, encode_batch, encode_message_set
from cloudevents_kafka.protocol.records._unpacked import LARGE, Pieces, finish, free, new_mapping, take
from cloudevents_kafka.protocol.records.compression import compress, decompress
from tests.support.cases import each
from tests.support.samples import one_in
from tests.support.wire import Wire, metadata, produce
from tests.support.wire_broker import WireBroker

MIB = 1 << 20
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux frees parts of a mapping")


def xerial(data, block=MIB):
    parts = [bytes(cramjam.snappy.compress_raw(data[at : at + block])) for at in range(0, len(data), block)]
    framed = b"".join(struct.pack(">i", len(part)) + part for part in parts)
    return bytes.fromhex("82534e41505059000000000100000001") + framed


def lz4_of_large_blocks(data):
    blocks = (
        bytes(cramjam.lz4.compress_block(data[at : at + 4 * MIB], store_size=False))
        for at in range(0, len(data), 4 * MIB)
    )
    framed = b"".join(struct.pack("<I", len(block)) + block for block in blocks)
    return bytes.fromhex("04224d18607000") + framed + bytes(4)


def zstd_without_size(data):
    packer = cramjam.zstd.Compressor()
    packer.compress(data)
    return bytes(packer.finish())


FORMS = {
    "gzip": (Codec.GZIP, lambda data: compress(data, Codec.GZIP)),
    "gzip of members": (
        Codec.GZIP,
        lambda data: b"".join(compress(data[at : at + MIB], Codec.GZIP) for at in range(0, len(data), MIB)),
    ),
    "xerial": (Codec.SNAPPY, lambda data: compress(data, Codec.SNAPPY)),
    "xerial of large blocks": (Codec.SNAPPY, xerial),
    "raw snappy": (Codec.SNAPPY, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "lz4": (Codec.LZ4, lambda data: compress(data, Codec.LZ4)),
    "old lz4": (Codec.LZ4, lambda data: compress(data, Codec.LZ4, old_lz4=True)),
    "lz4 of large blocks": (Codec.LZ4, lz4_of_large_blocks),
    "zstd": (Codec.ZSTD, lambda data: compress(data, Codec.ZSTD)),
    "zstd without size": (Codec.ZSTD, zstd_without_size),
}
SIZES = [0, 1, LARGE - 1, LARGE, LARGE + 1, 3 * LARGE + 5]


@each(
    ("form", "size"),
    [(form, size) for form in FORMS for size in SIZES if size or form != "gzip of members"],
)
def test_data_of_any_size_is_the_same(form, size):
    """Data around the size from which it is mapped round-trips, and the limit is exact."""
    codec, pack = FORMS[form]
    data = (b"%07d " * 1000 % tuple(range(1000)) * (size // 8000 + 1))[:size]
    assert decompress(pack(data), codec, limit=size) == data
    if size:
        with pytest.raises(Malformed):
            decompress(pack(data), codec, limit=size - 1)


PROGRAM = """
import re, sys
from pathlib import Path
from cloudevents_kafka.protocol.records import Batches, Codec
from cloudevents_kafka.protocol.records.compression import compress, decompress

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])

codec, path, what = Codec(int(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]
data = path.read_bytes()
decompress(compress(bytes(100), codec), codec)  # what is loaded once
before = peak()
if what == "decompress":
    size = len(decompress(data, codec))
elif what == "records":
    size = sum(len(record.value) for record in list(Batches(data).records()))
else:
    from cloudevents_kafka.protocol import Client, TopicPartition
    with Client(what) as client, client.consumer() as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        size = len(consumer.poll(20).value())
        before = peak()
        while size < 60 << 20:
            message = consumer.poll(20)
            size += len(message.key() or b"") + len(message.value())
print(peak() - before, size)
"""


def grown(tmp_path, codec, data, what):
    """Return how much the memory of a process grows, and the size of what it reads, in bytes."""
    path = tmp_path / "data"
    path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(int(codec)), str(path), what],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return map(int, done.stdout.split())


@linux
@pytest.mark.parametrize("form", one_in(4, FORMS))
@pytest.mark.parametrize("mib", [64, pytest.param(120, marks=pytest.mark.release)])
def test_the_peak_of_a_process_is_one_copy(tmp_path, form, mib):
    """The memory of a process grows by at most 1.1 times the decompressed size."""
    codec, pack = FORMS[form]
    peak, size = grown(tmp_path, codec, pack(bytes(mib * MIB)), "decompress")
    assert size == mib * MIB
    assert peak < 1.1 * size


@each("form", FORMS)
def test_the_peak_of_python_is_one_copy(form):
    """Python's own count of memory says the same."""
    codec, pack = FORMS[form]
    packed = pack(bytes(16 * MIB))
    tracemalloc.start()
    size = len(decompress(packed, codec))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.1 * size


IN_EACH_RUN = [("records", Codec.ZSTD)]
RECORDS = {
    "one record": [Record(value=bytes(70 * MIB))],
    "one key": [Record(key=bytes(70 * MIB), value=b"")],
    "records": [Record(value=bytes(100_000))] * 700,
}
LARGE_BATCHES = pytest.mark.parametrize(
    ("name", "codec"),
    [
        pytest.param(name, codec, marks=[] if (name, codec) in IN_EACH_RUN else pytest.mark.release)
        for name in RECORDS
        for codec in (Codec.GZIP, Codec.ZSTD)
    ],
)
MESSAGE_SETS = [("records", 1), ("records", 0), ("one record", 0), ("one record", 1)]


@linux
@LARGE_BATCHES
def test_the_peak_of_decoding_is_one_copy(tmp_path, codec, name):
    """All records of a batch are decoded in 1.1 times the size of the batch."""
    peak, _ = grown(tmp_path, codec, encode_batch(RECORDS[name], codec), "records")
    assert peak < 1.1 * 70 * MIB


@linux
@LARGE_BATCHES
def test_the_peak_of_polling_is_one_copy(tmp_path, codec, name):
    """A consumer that polls the records of such a batch needs no more, for the whole process."""
    first = encode_batch([Record(value=b"first")])
    batch = encode_batch(RECORDS[name], codec)
    with WireBroker("4.3") as broker, Wire(broker.nodes[0]) as wire:
        wire.ask(metadata("t"), 1)  # creates the topic
        for records in (first, batch):
            assert not wire.ask(produce(records), 9).responses[0].partition_responses[0].error_code
        peak, _ = grown(tmp_path, codec, b"", broker.bootstrap_servers)
    assert peak < 1.1 * 70 * MIB


@linux
@pytest.mark.parametrize(
    ("name", "magic"),
    [pytest.param(*one, marks=pytest.mark.release) for one in MESSAGE_SETS],
)
def test_the_peak_of_a_message_set_is_one_copy(tmp_path, magic, name):
    """All records of a compressed message set are, too."""
    peak, _ = grown(tmp_path, Codec.GZIP, encode_message_set(RECORDS[name], magic, Codec.GZIP), "records")
    assert peak < 1.1 * 70 * MIB


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
@pytest.mark.parametrize("size", [pytest.param(10, marks=pytest.mark.release), 300_000, MIB, 2 * MIB])
def test_records_of_any_size_are_the_same(codec, size):
    """Keys, values and headers of large batches equal those that were encoded, in each kind of batch."""
    value = (b"%07d " * 1000 % tuple(range(1000)) * (size // 8000 + 1))[:size]
    records = [
        Record(b"k%d" % i, value, [("h", b"%d" % i)], timestamp=1, offset=i)
        for i in range(4_000_000 // size + 1)
    ][:2000]
    for _ in range(2):
        assert list(Batches(encode_batch(records, codec)).records()) == records
    if codec != Codec.ZSTD:
        plain = [Record(record.key, record.value, timestamp=1, offset=record.offset) for record in records]
        assert list(Batches(encode_message_set(plain, 1, codec)).records()) == plain


def test_a_large_batch_is_read_again():
    """Each iteration over a batch decompresses it again."""
    (batch,) = Batches(encode_batch([Record(value=b"x" * 3 * MIB)] * 2, Codec.ZSTD))
    assert batch.records() == batch.records()


def test_parts_of_a_mapping():
    """A range is taken with its exact bytes, and its pages read as zeros then; the rest stays."""
    data = bytes(range(256)) * (4 * LARGE // 256)
    mapping = new_mapping(5 * LARGE)
    mapping[: len(data)] = data
    unpacked = finish(mapping, len(data))
    assert len(unpacked) == len(data)
    assert take(unpacked, 3, 2 * LARGE + 77) == data[3 : 2 * LARGE + 77]
    assert (unpacked[:3], unpacked[2 * LARGE + 77 :]) == (data[:3], data[2 * LARGE + 77 :])
    free(unpacked, 0, 10)
    assert unpacked[:3] == data[:3]
    assert take(unpacked, 3 * LARGE, 99 * LARGE) == data[3 * LARGE :]


def test_without_resizing(monkeypatch):
    """Where the system cannot shrink a mapping, its bytes are copied."""

    class Fixed(mmap.mmap):
        def resize(self, size):
            raise SystemError("mmap: resizing not available--no mremap()")

    assert finish(Fixed(-1, 2 * LARGE), LARGE + 1) == bytes(LARGE + 1)


def test_pieces_may_be_other_buffers():
    """Buffers of a codec are accepted as parts."""
    pieces = Pieces("lz4", 10, 10)
    pieces.add(b"ab")
    pieces.add(io.BytesIO(b"cd").getbuffer())
    assert pieces.finish() == b"abcd"
