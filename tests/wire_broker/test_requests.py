"""The broker reads requests as real ones do, which accept what the codec refuses."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.fetch import FetchRequest
from cloudevents_kafka.protocol.messages.groups import FindCoordinatorRequest
from cloudevents_kafka.protocol.messages.topics import MetadataRequest
from tests.support.cases import each
from tests.support.strategies import examples
from tests.support.wire import Wire, metadata, only
from tests.support.wire_broker import RELEASES, WireBroker
from tests.support.wire_broker._requests import decode_request


def refused(structure, version, data):
    """Assert that the codec refuses some bytes; return what the broker reads."""
    with pytest.raises((Malformed, Truncated)):
        compiler.decode(structure, version, data)
    return decode_request(structure, version, data)


@each(
    ("raw", "text"),
    [
        (b"a\xff\xfe", "a\ufffd\ufffd"),
        (b"\xe2\x82", "\ufffd"),
        (b"\xed\xa0\x80!", "\ufffd!"),  # a surrogate
        (b"\xed\xa0!", "\ufffd!"),
        (b"\xf4\x90\x80\x80", "\ufffd" * 4),
        (b"\xc0\xaf", "\ufffd\ufffd"),
    ],
)
def test_bytes_that_are_not_text_are_replaced(raw, text):
    """Bytes that are not UTF-8 become what Java makes of them."""
    data = struct.pack(">ih", 1, len(raw)) + raw
    message, end = refused(MetadataRequest, 0, data)
    assert (only(message.topics).name, end) == (text, len(data))


@pytest.mark.parametrize(("version", "count"), [(1, b"\xff\xff\xff\xfe"), (9, b"\xff\xff\xff\xff\x0f")])
def test_negative_lengths_are_null(version, count):
    """Any negative count is null where null is allowed, and refused elsewhere."""
    rest = b"\x00" * 4 if version == 9 else b""
    assert refused(MetadataRequest, version, count + rest)[0].topics is None
    with pytest.raises(Malformed, match="must not be null"):
        decode_request(MetadataRequest, 0, b"\xff\xff\xff\xfe")


@each("tags", [b"\x02\x09\x00\x05\x01x", b"\x02\x05\x00\x05\x00", b"\xff\xff\xff\xff\x0f"], ids=bytes.hex)
def test_tags_come_in_any_order(tags):
    """Tagged fields that descend, are repeated, or have a negative count are passed over."""
    data = b"\x02g\x00" + tags
    message, end = refused(FindCoordinatorRequest, 3, data)
    assert (message.key, message.unknown_tags, end) == ("g", (), len(data))


def test_the_size_of_a_declared_tag_is_not_used():
    """A declared tagged field ends where its value ends."""
    data = compiler.encode(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[], cluster_id="c"), 12)
    wrong = data.replace(b"\x01\x00\x02\x02c", b"\x01\x00\x09\x02c")
    assert refused(FetchRequest, 12, wrong) == compiler.decode(FetchRequest, 12, data)


@each(
    "data",
    [b"\x02g\x00\x01\x05\xff\xff\xff\xff\x0f", b"\x02g\x00\x01\x05\x09x", b"\x02g\x00\x01"],
    ids=bytes.hex,
)
def test_tags_that_brokers_refuse(data):
    """A tagged field of negative size, or one that is cut, ends the connection."""
    with pytest.raises((Malformed, Truncated)):
        decode_request(FindCoordinatorRequest, 3, data)


@examples(300)
@given(st.data())
def test_any_bytes(data):
    """What the codec accepts is read alike; other bytes are read, or refused by a `ProtocolError`."""
    api = data.draw(st.sampled_from(list(APIS.values())))
    version = data.draw(st.integers(*api.versions))
    raw = data.draw(st.binary(max_size=60))
    try:
        expected = compiler.decode(api.request, version, raw)
    except ProtocolError:
        expected = None
    try:
        found = decode_request(api.request, version, raw)
    except (Malformed, Truncated):
        assert expected is None
    else:
        assert expected in (None, found)
        assert found[1] <= len(raw)


@each("release", RELEASES)
def test_a_name_that_is_not_text_is_answered(release):
    """A response names the topic as the broker has read it."""
    with WireBroker(release) as broker, Wire(broker.nodes[0]) as wire:
        broker.create_topic("t")  # 0.8 lists no brokers without topics
        frame = frames.encode_request(metadata("xy"), 0).replace(b"xy", b"\xff\xfe")
        wire.socket.sendall(frame)
        _, response = wire.decoded(MetadataRequest, 0, wire.frame())
        assert only(response.topics).name == "\ufffd\ufffd"
