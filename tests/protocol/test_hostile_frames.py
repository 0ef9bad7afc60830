"""Frames and batches that attack: what they cost is counted, and bounded by their size."""

from __future__ import annotations

import gzip
import struct
import sys
import tracemalloc
import zlib

import pytest

from cloudevents_kafka.primitives import varint
from cloudevents_kafka.protocol import frames, v07
from cloudevents_kafka.protocol.codec import compiler, interpreter
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated
from cloudevents_kafka.protocol.explain import explain_request, explain_request_07
from cloudevents_kafka.protocol.layout import Array, Layout, LengthPrefixed, default_of, layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import ApiVersionsRequest
from cloudevents_kafka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from cloudevents_kafka.protocol.messages.topics import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from cloudevents_kafka.protocol.records import Batches, Record, encode_batch, encode_message_set, nesting
from cloudevents_kafka.protocol.schema import STRING, Fixed, Uuid, fields_of, spec_of
from cloudevents_kafka.protocol.v07 import messages as messages_v07
from tests.support.cases import each

MIB = 1 << 20


def measured(work):
    """Return the result or error of a call, and the most memory that it used."""
    tracemalloc.start()
    try:
        outcome = work()
    except ProtocolError as error:
        outcome = error.with_traceback(None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return outcome, peak


def calls(work):
    """Return how many functions a call calls, of Python and of C; errors of the protocol are passed over."""
    count = 0

    def profile(_frame, event, _arg):
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(profile)
    try:
        work()
    except ProtocolError:
        pass
    finally:
        sys.setprofile(None)
    return count


# --- elements and tags -------------------------------------------------------------------


def small(codec):
    """Return a small value of a codec that Python does not share."""
    match codec:
        case Layout():
            values = {field.name: default_of(field) for field in fields_of(codec.structure)}
            return codec.structure(**values | {field.name: small(field.codec) for field in codec.fields})
        case Array():
            return []
        case LengthPrefixed():
            return "\xe9" if codec.type is STRING else b"xy"
        case Fixed():
            return codec.code in "?d" or 1 << 8 * codec.size - 2
        case Uuid():
            return default_of(fields_of(MetadataResponseTopic)[2])
        case _:
            return 300


def arrays():
    for api in APIS.values():
        for structure in (api.request, api.response):
            for version in set(spec_of(structure).versions):  # the first and the last
                for field in layout_of(structure, version).fields:
                    if isinstance(field.codec, Array):
                        yield structure, version, field


@each(
    ("structure", "version", "field"),
    list(arrays()),
    ids=lambda part: getattr(part, "__name__", None) or str(getattr(part, "name", part)),
)
def test_elements_take_no_more_memory_than_is_counted(structure, version, field):
    """The memory of small elements is at most what `Array.memory` says, in each message."""
    count, layout = 300, layout_of(structure, version)
    message = small(layout)
    setattr(message, field.name, [small(field.codec.element) for _ in range(count)])
    data = compiler.encode(message, version)
    compiler.decode(structure, version, data)
    (decoded, _), peak = measured(lambda: compiler.decode(structure, version, data))
    assert len(getattr(decoded, field.name)) == count
    assert peak < count * field.codec.memory + 10_000


def metadata(partitions, **more):
    rows = [
        MetadataResponsePartition(
            error_code=0, partition_index=n, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1, 2], **more
        )
        for n in range(partitions)
    ]
    return MetadataResponse(
        brokers=[], topics=[MetadataResponseTopic(error_code=0, name="t", partitions=rows)]
    )


def test_the_elements_of_a_message_share_a_limit():
    """Elements whose memory exceeds the limit are refused before they are made, with their field."""
    data = compiler.encode(metadata(30_000), 12)
    assert compiler.decode(MetadataResponse, 12, data)[1] == len(data)
    error, peak = measured(lambda: compiler.decode(MetadataResponse, 12, data, memory=MIB))
    assert isinstance(error, Malformed)
    rule = "the elements of a message must take at most 1,048,576 bytes of memory"
    assert str(error) == f"topics[0].partitions at byte 35: {rule}"
    assert peak < MIB
    with pytest.raises(Malformed, match="must take at most"):
        interpreter.decode(layout_of(MetadataResponse, 12), data, memory=MIB)


def test_nested_arrays_share_the_limit():
    """Arrays that are small one by one are refused once they exceed the limit together."""
    data = compiler.encode(metadata(300), 12)
    needed = next(limit for limit in range(0, MIB, 500) if _decodes(MetadataResponse, 12, data, memory=limit))
    assert 300 * 250 < needed < 300 * 1000
    with pytest.raises(Malformed, match=r"partitions\[29[89]\]\.\w+_nodes at byte .* at most"):
        compiler.decode(MetadataResponse, 12, data, memory=needed - 500)


def _decodes(*arguments, **options):
    try:
        return compiler.decode(*arguments, **options)
    except Malformed:
        return None


def tagged(count, *, declared=None):
    """Return the bytes of an ApiVersions request with tagged fields of 0 bytes."""
    tags = b"".join(varint.encode(tag) + b"\0" for tag in range(count))
    return b"\x01\x01" + varint.encode(count if declared is None else declared) + tags


def test_unknown_tags_share_the_limit():
    """Unknown tagged fields take memory too, and are refused once they exceed the limit."""
    data = tagged(1000)
    assert len(compiler.decode(ApiVersionsRequest, 3, data)[0].unknown_tags) == 1000
    data = tagged(50_000)
    error, peak = measured(lambda: compiler.decode(ApiVersionsRequest, 3, data, memory=MIB))
    assert "must take at most 1,048,576 bytes of memory" in str(error)
    assert peak < 2 * MIB


def test_tags_must_fit_their_bytes():
    """A count of tags that exceeds the bytes is refused at once."""
    data = tagged(1000, declared=2000)
    compiler.decode(ApiVersionsRequest, 3, tagged(1))  # compiles the function
    assert calls(lambda: compiler.decode(ApiVersionsRequest, 3, data)) < 200
    with pytest.raises(Truncated):
        compiler.decode(ApiVersionsRequest, 3, data)


def test_elements_must_fit_their_bytes():
    """A count of elements that exceeds the bytes by the smallest size of one is refused at once."""
    data = compiler.encode(metadata(3000), 12)
    lie = data.replace(varint.encode(3001), varint.encode(9001), 1)
    with pytest.raises(Truncated):
        compiler.decode(MetadataResponse, 12, lie)


# --- invalid frames ----------------------------------------------------------------------


def broken_at(data, at):
    return data[:at] + b"\xff" * 8 + data[at + 8 :]


@each("share", [0.1, 0.5, 0.99])
def test_an_invalid_frame_costs_no_more_than_two_valid_ones(share):
    """To find the error in a frame takes as many calls as to decode it twice."""
    data = compiler.encode(metadata(2000), 8)
    valid = calls(lambda: compiler.decode(MetadataResponse, 8, data))
    broken = broken_at(data, int(len(data) * share))
    with pytest.raises(ProtocolError):
        compiler.decode(MetadataResponse, 8, broken)
    assert calls(lambda: compiler.decode(MetadataResponse, 8, broken)) < 2 * valid + 1000


def test_a_cut_frame_costs_no_more_than_a_valid_one():
    """To find where a frame ends too early takes about as many calls as to decode it."""
    data = compiler.encode(metadata(2000), 12)
    valid = calls(lambda: compiler.decode(MetadataResponse, 12, data))
    assert calls(lambda: compiler.decode(MetadataResponse, 12, data[:-9])) < 2 * valid + 1000


def test_an_error_keeps_nothing_of_the_message():
    """The error of an invalid frame does not keep what was decoded before it."""
    data = compiler.encode(metadata(3000), 12)[:-9]
    with pytest.raises(Truncated) as caught:
        compiler.decode(MetadataResponse, 12, data)
    assert caught.value.__context__ is None


# --- compressed message sets in message sets ---------------------------------------------


def wrapped(inner, packed=None):
    packed = gzip.compress(inner, 9, mtime=1) if packed is None else packed
    body = bytes([0, 1]) + b"\xff" * 4 + struct.pack(">i", len(packed)) + packed
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def unpacked(messages, monkeypatch):
    """Return how many sets are decompressed, their bytes, and the messages until the end or an error."""
    sizes, records, decompress = [], 0, nesting.decompress

    def counted(*arguments, **options):
        out = decompress(*arguments, **options)
        sizes.append(len(out))
        return out

    monkeypatch.setattr(nesting, "decompress", counted)
    try:
        for _ in messages:
            records += 1
    except Malformed:
        pass
    return len(sizes), sum(sizes), records


def test_nested_sets_expand_no_more_than_one(monkeypatch):
    """A message of 600 bytes whose sets are nested expands to at most 2 MiB."""
    plain = encode_message_set([Record()], 0) * 400_000
    bomb = wrapped(wrapped(wrapped(plain)))
    assert len(bomb) < 600
    _, size, records = unpacked(Batches(bomb).records(), monkeypatch)
    assert size < 2 * MIB
    assert records < 100_000


def test_empty_nested_sets_are_few(monkeypatch):
    """Sets without records, which cost work and return nothing, are refused after some thousand."""
    bomb = wrapped(wrapped(b"") * 100_000)
    count, _, records = unpacked(Batches(bomb).records(), monkeypatch)
    assert (count < 4000, records) == (True, 0)


def test_sets_may_be_nested(monkeypatch):
    """Nested sets of usual size are read, as the guide allows them."""
    inner = encode_message_set([Record(value=bytes(50_000))] * 5, 0)
    assert unpacked(Batches(wrapped(wrapped(wrapped(inner)))).records(), monkeypatch)[2] == 5


def wrapped_07(inner):
    return v07.encode([v07.Message(gzip.compress(inner, 9, mtime=1), attributes=1)])


def test_nested_sets_of_07_are_few(monkeypatch):
    """Compressed sets in a compressed set of Kafka 0.7 have the same limit."""
    bomb = wrapped_07(wrapped_07(b"") * 100_000)
    count, _, messages = unpacked(v07.MessageSet(bomb), monkeypatch)
    assert (count < 4000, messages) == (True, 0)
    plain = v07.encode([b""]) * 400_000
    _, size, messages = unpacked(v07.MessageSet(wrapped_07(wrapped_07(wrapped_07(plain)))), monkeypatch)
    assert (size < 2 * MIB, messages < 100_000) == (True, True)


def in_a_request(messages):
    data = PartitionProduceData(index=0, records=messages)
    topic = TopicProduceData(name="t", partition_data=[data])
    return frames.encode_request(ProduceRequest(acks=1, timeout_ms=5, topic_data=[topic]), 2)


def in_a_request_07(messages):
    return v07.frames.encode_request(messages_v07.ProduceRequest(topic="t", partition=0, messages=messages))


@pytest.mark.parametrize(
    ("wrap", "explain"),
    [
        (wrapped, lambda data: explain_request(in_a_request(data))),
        (wrapped_07, lambda data: explain_request_07(in_a_request_07(data))),
    ],
    ids=["0.8", "0.7"],
)
def test_nested_sets_are_explained_up_to_the_limit(wrap, explain, monkeypatch):
    """An explanation has some thousand nested sets, and the reason why it has no more."""
    found = []
    bomb = wrap(wrap(b"") * 100_000)
    count, _, _ = unpacked((found.append(explain(one)) for one in [bomb]), monkeypatch)
    assert count < 4000
    assert "the compressed sets in a message set must be few and small" in found[0].problems[0].rule


def test_the_entries_of_a_set_are_found_one_by_one():
    """The first record of a set of 100,000 takes the memory to decompress them, and no more."""
    data = encode_message_set([Record()], 0) * 100_000
    packed = wrapped(data)
    record, peak = measured(lambda: next(Batches(packed).records()))
    assert record.offset == 0
    assert peak < 4 * len(data)


def test_headers_are_few():
    """A record of more than 100,000 headers is refused, because each takes 100 bytes of memory."""
    many = encode_batch([Record(headers=[("", b"")] * 100_001)])
    with pytest.raises(Malformed, match="at most 100,000 headers, got 100,001"):
        list(Batches(many).records())
