"""The interpreter follows layouts, and its errors name the field, the byte and the rule."""

from __future__ import annotations

import pytest

from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unencodable
from cloudevents_kafka.protocol.layout import layout_of
from cloudevents_kafka.protocol.messages.connection import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from cloudevents_kafka.protocol.messages.fetch import FetchRequest
from cloudevents_kafka.protocol.messages.topics import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
)
from tests.protocol.generated import CASES, IDS, Everything, EverythingInner, bulk
from tests.support.cases import each


def read(structure, version, data):
    return interpreter.decode(layout_of(structure, version), data)


ONE_BROKER = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="h", port=9092)], topics=[])


@each(
    ("message", "version", "data"),
    [
        (ONE_BROKER, 0, "00000001 00000001 000168 00002384 00000000"),
        (ONE_BROKER, 1, "00000001 00000001 000168 00002384 ffff ffffffff 00000000"),
        (MetadataRequest(topics=None), 1, "ffffffff"),
        (MetadataRequest(topics=None), 9, "00 01 00 00 00"),
        (MetadataRequest(topics=[MetadataRequestTopic(name="é")]), 9, "02 03 c3a9 00 01 00 00 00"),
        (SaslAuthenticateRequest(auth_bytes=b"ab"), 0, "00000002 6162"),
        (SaslAuthenticateRequest(auth_bytes=b"ab"), 2, "03 6162 00"),
        (ApiVersionsRequest(), 0, ""),
        (ApiVersionsRequest(client_software_name="n", client_software_version=""), 3, "026e 01 00"),
        (
            ApiVersionsRequest(client_software_name="n", unknown_tags=((2, b"xy"), (300, b""))),
            3,
            "026e 01 02 02 02 7879 ac02 00",
        ),
        (
            ApiVersionsResponse(
                error_code=ErrorCode.NONE, api_keys=[], finalized_features_epoch=5, zk_migration_ready=True
            ),
            3,
            "0000 01 00000000 02 01 08 0000000000000005 03 01 01",
        ),
    ],
)
def test_bytes(message, version, data):
    """Messages encode to the bytes of the protocol's documents, and decode from them."""
    data = bytes.fromhex(data)
    assert interpreter.encode(layout_of(type(message), version), message) == data
    assert read(type(message), version, data) == (message, len(data))


@each(
    ("structure", "version", "data", "match"),
    [
        (SaslHandshakeRequest, 0, "ffff", "mechanism at byte 0: the value must not be null in this version"),
        (
            SaslHandshakeRequest,
            0,
            "fffe",
            "mechanism at byte 0: a length must be at least -1, got -2",
        ),
        (SaslHandshakeRequest, 0, "0002 c328", "mechanism at byte 2: a string must be valid UTF-8"),
        (MetadataRequest, 0, "ffffffff", "topics at byte 0: the value must not be null"),
        (MetadataRequest, 1, "80000000", "topics at byte 0: a length must be at least -1, got -2147483648"),
        (MetadataRequest, 0, "00000001 ffff", r"topics\[0\].name at byte 4: the value must not be null"),
        (SaslAuthenticateRequest, 2, "00 00", "auth_bytes at byte 0: the value must not be null"),
        (
            SaslAuthenticateRequest,
            2,
            "8080808080 01",
            "auth_bytes at byte 0: a variable-length integer of 32 bits",
        ),
        (ApiVersionsRequest, 3, "01 01 02 05 00 05 00", "at byte 5: tags must ascend, got 5 after 5"),
        (
            ApiVersionsResponse,
            3,
            "0000 01 00000000 01 01 09 0000000000000005 00",
            "at byte 10: a tagged field must have 8 bytes, got 9",
        ),
    ],
)
def test_malformed(structure, version, data, match):
    """Bytes that break a rule raise `Malformed` with field, byte and rule."""
    with pytest.raises(Malformed, match=match):
        read(structure, version, bytes.fromhex(data))


@each(
    ("structure", "version", "data", "at", "missing", "path"),
    [
        (SaslHandshakeRequest, 0, "", 0, 2, "mechanism"),
        (SaslHandshakeRequest, 0, "00", 0, 1, "mechanism"),
        (SaslHandshakeRequest, 0, "0003 61", 2, 2, "mechanism"),
        (MetadataRequest, 0, "7fffffff 0000", 4, 2147483645, "topics"),
        (MetadataRequest, 0, "00000001 0005 61", 6, 4, "topics[0].name"),
        (SaslAuthenticateRequest, 2, "80", 1, 1, "auth_bytes"),
        (ApiVersionsRequest, 3, "01 01 01 05 02 61", 5, 1, ""),
        (ApiVersionsResponse, 3, "0000 01 00000000 01 01 04 00000005 00", 10, 4, "finalized_features_epoch"),
    ],
)
def test_truncated(structure, version, data, at, missing, path):
    """Bytes that end too early, also in a tagged field, raise `Truncated` with the missing number."""
    with pytest.raises(Truncated) as caught:
        read(structure, version, bytes.fromhex(data))
    assert (caught.value.at, caught.value.missing, caught.value.path) == (at, missing, path)


def test_visitor():
    """A visitor is called for each byte once: for fields with their value, for counts before the elements."""
    message = MetadataRequest(topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name="uv")])
    data = interpreter.encode(layout_of(MetadataRequest, 9), message)
    visited = []
    interpreter.decode(layout_of(MetadataRequest, 9), data, 0, lambda *call: visited.append(call))
    assert visited == [
        ("topics", 0, 1, "compact_nullable_array", 2),
        ("topics[0].name", 1, 3, "compact_string", "t"),
        ("topics[0].tags", 3, 4, "tagged_fields", 0),
        ("topics[1].name", 4, 7, "compact_string", "uv"),
        ("topics[1].tags", 7, 8, "tagged_fields", 0),
        ("allow_auto_topic_creation", 8, 9, "boolean", True),
        ("include_cluster_authorized_operations", 9, 10, "boolean", False),
        ("include_topic_authorized_operations", 10, 11, "boolean", False),
        ("tags", 11, 12, "tagged_fields", 0),
    ]


@each(("structure", "version"), CASES, ids=IDS)
def test_visitor_covers_all_bytes(structure, version):
    """The calls of a visitor cover all bytes of a message."""
    layout = layout_of(structure, version)
    for message in bulk(structure, version, count=3, small=True):
        data = interpreter.encode(layout, message)
        visited = set()
        interpreter.decode(
            layout,
            data,
            0,
            lambda _path, at, end, _name, _value, visited=visited: visited.update(range(at, end)),
        )
        assert visited == set(range(len(data)))


@each(
    ("changes", "match"),
    [
        ({"tiny": 128}, "Everything.tiny must be int8, got 128"),
        ({"port": -1}, "Everything.port must be uint16, got -1"),
        ({"port": 65536}, "must be uint16, got 65536"),
        ({"ratio": "1.0"}, "must be float64, got '1.0'"),
        ({"ratio": 10**400}, "must be float64"),
        ({"flag": 1}, "must be boolean, got 1"),
        ({"id": "00000000-0000-0000-0000-000000000000"}, "must be uuid"),
        ({"signed": 1 << 63}, "must be varint64, got 9223372036854775808"),
        ({"unsigned": 1.0}, "must be unsigned_varint32, got 1.0"),
        ({"inner": None}, "Everything.inner must be EverythingInner, got None"),
        ({"inners": [EverythingInner(short=1 << 15)]}, r"inners\[0\].short must be varint16, got 32768"),
        ({"inners": [None]}, r"inners\[0\] must be EverythingInner, got None"),
        ({"lengths": [1, None]}, r"lengths\[1\] must be uint16, got None"),
        ({"keys": ["a"]}, r"keys\[0\] must be compact_bytes, got 'a'"),
        ({"records": "a"}, "records must be compact_nullable_records, got 'a'"),
        ({"records": "x" * 100}, r"must be compact_nullable_records, got 'xxx.*\.\.\."),
        ({"unknown_tags": ((1, b""),)}, "unknown_tags must be distinct, undeclared tags"),
        ({"unknown_tags": ((9, b""), (9, b""))}, "must be distinct"),
        ({"unknown_tags": ((1 << 31, b""),)}, "must be distinct"),
        ({"unknown_tags": ((9, 5),)}, "must be pairs of a tag and bytes"),
        ({"unknown_tags": None}, "must be pairs"),
        ({"unknown_tags": iter(())}, "must be pairs"),
    ],
    ids=lambda part: str(part)[:40],
)
def test_unencodable(changes, match):
    """A value that does not fit raises `Unencodable` with the field's path, type and value."""
    message = Everything(**{"tiny": 1, "inner": EverythingInner()} | changes)
    with pytest.raises(Unencodable, match=match):
        interpreter.encode(layout_of(Everything, 3), message)


def test_tags_in_order():
    """Declared and unknown tagged fields are encoded in the order of their tags; defaults are omitted."""
    message = Everything(tiny=1, inner=EverythingInner(), keys=[b"k"], unknown_tags=((7, b"z"), (0, b"a")))
    data = interpreter.encode(layout_of(Everything, 3), message)
    assert data.endswith(bytes.fromhex("03 00 01 61 01 03 02 02 6b 07 01 7a"))
    assert read(Everything, 3, data)[0].unknown_tags == ((0, b"a"), (7, b"z"))
    assert (
        interpreter.encode(layout_of(FetchRequest, 15), FetchRequest(max_wait_ms=0, min_bytes=0, topics=[]))[
            -1
        ]
        == 0
    )
