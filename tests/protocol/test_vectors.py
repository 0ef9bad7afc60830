"""The requests and responses of real brokers of 0.8.2-beta to 4.4.0 round-trip byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated, Unsupported
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import ApiVersionsResponse, RequestHeader
from cloudevents_kafka.protocol.messages.offsets import OffsetCommitRequestBeta
from tests.protocol.captured import ANSWERED_IN, CAPTURED, Exchange
from tests.support.cases import each

# Requests cut behind their header on purpose: the broker closed the connection.
CUT = {
    *(("0.8.2-beta", number) for number in (29, 30, 31, 32, 33, 36)),
    *(("0.8.2.2", number) for number in (31, 32, 33, 34, 35, 38)),
}
NO_SUCH_API = {("0.8.2-beta", 35), ("0.8.2.2", 37)}  # key 60, empty as well
# OffsetCommit 0 as the guide prints it, with the time stamp that no release has.
WITH_TIME_STAMP = {
    ("0.8.2-beta", 25),
    ("0.8.2-beta", 43),
    ("0.8.2.2", 26),
    ("0.8.2.2", 45),
}


def cases(kept: Any) -> Callable[..., Any]:
    """Return a decorator that runs a test with each exchange that is kept."""
    found = [one for one in CAPTURED if kept(one)]
    return each("one", found, ids=[f"{one.file}-{one.number}" for one in found])


def header_of(one: Exchange) -> tuple[RequestHeader, int]:
    header, at = compiler.decode(RequestHeader, 1, one.request[4:])
    assert isinstance(header, RequestHeader)
    return header, at


def test_the_captures_are_complete():
    """The captures are complete, and so are their exceptions."""
    assert len(CAPTURED) == 407
    assert [len(places) for places in (CUT, NO_SUCH_API, WITH_TIME_STAMP, ANSWERED_IN)] == [12, 2, 4, 21]
    assert {one.place for one in CAPTURED} > CUT | NO_SUCH_API | WITH_TIME_STAMP | ANSWERED_IN.keys()


@cases(lambda one: one.place not in CUT | NO_SUCH_API | WITH_TIME_STAMP and one.version != 99)
def test_requests(one):
    """A captured request decodes, and encodes to the same bytes."""
    assert frames.decode_size(one.request) == len(one.request) - 4
    header, message = frames.decode_request(one.request[4:])
    assert (header.request_api_key, header.request_api_version) == (one.key, one.version)
    assert one.request == frames.encode_request(
        message, one.version, correlation_id=header.correlation_id, client_id=header.client_id
    )


@cases(lambda one: one.response is not None and one.place not in ANSWERED_IN and one.version != 99)
def test_responses(one):
    """A captured response decodes with the request's correlation id, and encodes to the same bytes."""
    assert_answer(one, one.version)


def assert_answer(one: Exchange, version: int):
    assert frames.decode_size(one.response) == len(one.response) - 4
    number, message = frames.decode_response(APIS[one.key].response, version, one.response[4:])
    assert number == header_of(one)[0].correlation_id
    assert frames.encode_response(message, version, correlation_id=number) == one.response


@cases(lambda one: one.place in CUT)
def test_cut_requests(one):
    """A request without its body is `Truncated`, with position and missing bytes."""
    with pytest.raises(Truncated) as caught:
        frames.decode_request(one.request[4:])
    assert caught.value.at == len(one.request) - 4
    assert caught.value.missing == (4 if one.key in {ApiKey.FETCH, ApiKey.METADATA} else 2)
    assert one.response is None


@cases(lambda one: one.place in NO_SUCH_API)
def test_no_such_api(one):
    """A request of an unsupported API raises `Unsupported`."""
    with pytest.raises(Unsupported, match="API key 60\\) is not supported"):
        frames.decode_request(one.request[4:])


@cases(lambda one: one.place in WITH_TIME_STAMP)
def test_offset_commit_of_the_guide(one):
    """The guide's OffsetCommit 0 is that of the beta, not of a release."""
    with pytest.raises(Malformed, match="bytes follow the last field"):
        frames.decode_request(one.request[4:])
    header, at = header_of(one)
    message = frames.decode_body(OffsetCommitRequestBeta, 0, one.request[4 + at :])
    assert isinstance(message, OffsetCommitRequestBeta)
    assert {part.commit_timestamp for topic in message.topics for part in topic.partitions} == {-1}
    assert one.request == frames.encode_request(
        message, 0, correlation_id=header.correlation_id, client_id=header.client_id
    )


@cases(lambda one: one.place in ANSWERED_IN)
def test_responses_in_another_version(one):
    """An old broker's response in another version is an error, and decodes in its own version."""
    with pytest.raises(ProtocolError) as caught:
        frames.decode_response(APIS[one.key].response, one.version, one.response[4:])
    assert isinstance(caught.value, Malformed | Truncated)
    assert_answer(one, ANSWERED_IN[one.place])


@cases(lambda one: one.version == 99)
def test_api_versions_of_the_future(one):
    """A response to a future version of ApiVersions, if any, is version 0 with UNSUPPORTED_VERSION."""
    with pytest.raises(Unsupported, match="ApiVersions \\(API key 18\\) must have a version in 0-5, got 99"):
        frames.decode_request(one.request[4:])
    if one.response is None:
        assert one.file not in {"old-apis-0.10.2.2", "old-apis-1.1.1"}
        return
    assert_answer(one, 0)
    _, message = frames.decode_response(ApiVersionsResponse, 0, one.response[4:])
    assert isinstance(message, ApiVersionsResponse)
    assert (message.error_code, message.api_keys) == (ErrorCode.UNSUPPORTED_VERSION, [])
