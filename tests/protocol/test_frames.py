"""Frames: sizes, headers by version, requests and responses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import Malformed, Truncated, Unencodable, Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslHandshakeRequest,
)
from cloudevents_kafka.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from cloudevents_kafka.protocol.messages.topics import MetadataRequest
from tests.protocol.generated import message, versions_of
from tests.support.cases import each
from tests.support.strategies import examples

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
API_VERSIONS = [(api, version) for api in APIS.values() for version in versions_of(api.request)]
headers = st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), st.none() | st.text(max_size=5))


@each(
    ("prefix", "size"),
    [("00000000", 0), ("00000001", 1), ("06400000", 104_857_600), ("00000007ffff", 7)],
)
def test_size(prefix, size):
    """A size has 4 bytes, which it does not include."""
    assert frames.decode_size(bytes.fromhex(prefix)) == size


@each("prefix", ["ffffffff", "80000000", "06400001", "7fffffff", "47455420"])
def test_bad_size(prefix):
    """A negative size, or one above the limit, as of another protocol, is `Malformed`."""
    with pytest.raises(
        Malformed, match=r"at byte 0: a frame must have 0 to 104,857,600 bytes, got -?[0-9,]+$"
    ):
        frames.decode_size(bytes.fromhex(prefix))


def test_own_limit():
    """The limit is a parameter."""
    assert frames.decode_size(b"\0\0\0\x0a", max_size=10) == 10
    with pytest.raises(Malformed, match="a frame must have 0 to 9 bytes, got 10"):
        frames.decode_size(b"\0\0\0\x0a", max_size=9)


@each("length", range(4))
def test_cut_size(length):
    """A size of fewer than 4 bytes is `Truncated`."""
    with pytest.raises(Truncated) as caught:
        frames.decode_size(bytes(length))
    assert caught.value.missing == 4 - length


@each(
    ("sent", "version", "data"),
    [
        (BEAT, 0, "00000016 000c 0000 00000007 0002 6964 0001 67 00000001 0001 6d"),
        (BEAT, 4, "00000017 000c 0004 00000007 0002 6964 00 02 67 00000001 02 6d 00 00"),
        (ApiVersionsRequest(), 0, "0000000c 0012 0000 00000007 0002 6964"),
        (ApiVersionsRequest(), 3, "00000010 0012 0003 00000007 0002 6964 00 01 01 00"),
    ],
)
def test_request_bytes(sent, version, data):
    """The header of a flexible request is flexible; its client id is never compact."""
    data = bytes.fromhex(data)
    assert frames.encode_request(sent, version, correlation_id=7, client_id="id") == data
    assert frames.decode_size(data) == len(data) - 4
    header, found = frames.decode_request(data[4:])
    assert (found, header.client_id, header.correlation_id) == (sent, "id", 7)


def test_null_client_id():
    """No client id is null, which brokers accept."""
    data = frames.encode_request(BEAT, 0, correlation_id=-1)
    assert data[8:14] == b"\xff\xff\xff\xff\xff\xff"
    assert frames.decode_request(data[4:]).header.client_id is None


@each(
    ("answer", "version", "data"),
    [
        (HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), 0, "00000006 00000007 001b"),
        (
            HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS),
            4,
            "0000000c 00000007 00 00000000 001b 00",
        ),
        (
            ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[]),
            0,
            "0000000a 00000007 0023 00000000",
        ),
        (
            ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=[]),
            3,
            "0000000c 00000007 0000 01 00000000 00",
        ),
    ],
)
def test_response_bytes(answer, version, data):
    """The header of a flexible response is flexible, except for ApiVersions."""
    data = bytes.fromhex(data)
    assert frames.encode_response(answer, version, correlation_id=7) == data
    assert frames.decode_response(type(answer), version, data[4:]) == (7, answer)


@each(
    ("key", "version", "header"),
    [(7, 0, 0), (7, 1, 1), (3, 8, 1), (3, 9, 2), (17, 1, 1), (18, 2, 1), (18, 3, 2), (60, 0, 1)],
)
def test_request_headers(key, version, header):
    """The version of the header follows from the request's; ControlledShutdown 0 has the oldest one."""
    assert frames.request_header(key, version) == header


@each(("api", "version"), API_VERSIONS, ids=lambda part: getattr(part, "name", part))
def test_all_versions(api, version):
    """Requests and responses of every version round-trip through frames."""

    @examples(3)
    @given(headers, st.randoms(use_true_random=False))
    def holds(header, random):
        number, client_id = header
        request = message(random, api.request, version, small=True)
        data = frames.encode_request(request, version, correlation_id=number, client_id=client_id)
        found = frames.decode_request(data[4:])
        assert (found.message, found.header.correlation_id, found.header.client_id) == (
            request,
            number,
            client_id,
        )
        answer = message(random, api.response, version, small=True)
        data = frames.encode_response(answer, version, correlation_id=number)
        assert frames.decode_response(api.response, version, data[4:]) == (number, answer)
        assert frames.decode_body(api.response, version, compiler.encode(answer, version)) == answer

    holds()


@examples(300)
@given(st.binary(max_size=60), st.sampled_from(sorted(APIS)), st.integers(-1, 20))
def test_any_bytes(data, key, version):
    """Arbitrary bytes decode as a request, or raise the protocol's errors."""
    started = key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + data
    for sent in (data, started):
        try:
            header, _ = frames.decode_request(sent)
        except (Malformed, Truncated, Unsupported):
            continue
        assert header.request_api_key in APIS


@each(
    ("data", "match"),
    [
        ("003c 0000 00000001 ffff", "DescribeCluster \\(API key 60\\) is not supported"),
        ("0011 0002 00000001 ffff", "SaslHandshake \\(API key 17\\) must have a version in 0-1, got 2"),
        ("0003 ffff 00000001 ffff", "Metadata \\(API key 3\\) must have a version in 0-13, got -1"),
    ],
)
def test_unsupported(data, match):
    """An unsupported API or version raises `Unsupported` with the supported versions."""
    with pytest.raises(Unsupported, match=match):
        frames.decode_request(bytes.fromhex(data))


@each("length", range(4))
def test_no_key(length):
    """A request without API key and version is `Truncated`."""
    with pytest.raises(Truncated):
        frames.decode_request(bytes(length))


def test_trailing_bytes():
    """Bytes after a message are `Malformed`: the peer has another layout."""
    whole = frames.encode_request(BEAT, 0)
    with pytest.raises(
        Malformed, match=f"HeartbeatRequest at byte {len(whole) - 4}: 2 bytes follow the last field"
    ):
        frames.decode_request(whole[4:] + b"ab")
    with pytest.raises(Malformed, match="HeartbeatResponse at byte 6: 1 byte follows the last field"):
        frames.decode_response(HeartbeatResponse, 0, bytes(7))
    with pytest.raises(Malformed, match="at byte 2: 1 byte follows the last field"):
        frames.decode_body(HeartbeatResponse, 0, bytes(3))


def test_unencodable():
    """A value that does not fit the header or message, or an unsupported version, is refused."""
    with pytest.raises(Unencodable, match="correlation_id must be int32, got 2147483648"):
        frames.encode_request(BEAT, 0, correlation_id=1 << 31)
    with pytest.raises(Unencodable, match="client_id must have at most 32,767 bytes or elements, got 40,000"):
        frames.encode_request(BEAT, 0, client_id="x" * 40_000)
    with pytest.raises(Unencodable, match="topics must be array, got None"):
        frames.encode_request(MetadataRequest(topics=None), 0)
    with pytest.raises(Unsupported, match="SaslHandshakeRequest must have a version in 0-1, got 2"):
        frames.encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 2)
