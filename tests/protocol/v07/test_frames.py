"""The requests and responses of a real broker of 0.7 round-trip."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.codec import compiler, interpreter
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Unencodable, Unsupported
from cloudevents_kafka.protocol.explain import explain_request_07
from cloudevents_kafka.protocol.layout import layout_of
from cloudevents_kafka.protocol.schema import spec_of
from cloudevents_kafka.protocol.v07 import ErrorCode, FetchRequest, PartitionError, frames
from cloudevents_kafka.protocol.v07.messages import (
    REQUESTS,
    RESPONSES,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
    RequestHeader,
)
from tests.support.cases import each
from tests.support.kafka07 import EXCHANGES

KNOWN = [exchange for exchange in EXCHANGES if exchange.name != "unknown type 9"]
ANSWERED = [exchange for exchange in KNOWN if exchange.response is not None]

int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
topics = st.text(st.characters(codec="ascii"), max_size=20)
produces = st.builds(ProduceRequest, topic=topics, partition=int32, messages=st.binary(max_size=50))
fetches = st.builds(FetchRequest, topic=topics, partition=int32, offset=int64, max_size=int32)
requests = st.one_of(
    produces,
    fetches,
    st.builds(MultiProduceRequest, produces=st.lists(produces, max_size=3)),
    st.builds(MultiFetchRequest, fetches=st.lists(fetches, max_size=3)),
    st.builds(OffsetsRequest, topic=topics, partition=int32, time=int64, max_number=int32),
)
responses = st.one_of(
    st.builds(FetchResponse, error_code=int16, messages=st.binary(max_size=50)),
    st.builds(MultiFetchResponse, error_code=int16, responses=st.binary(max_size=50)),
    st.builds(OffsetsResponse, error_code=int16, offsets=st.lists(int64, max_size=5)),
)


def answer_of(request):
    return RESPONSES[spec_of(type(request)).key]


def test_all_exchanges_are_here():
    """There are 28 exchanges; one has an unknown request type, three more no response by design."""
    assert len(EXCHANGES) == 28
    assert len(KNOWN) == 27
    assert {type(frames.decode_request(e.request[4:])) for e in KNOWN} == set(REQUESTS.values())
    assert {answer_of(frames.decode_request(e.request[4:])) for e in ANSWERED} == set(RESPONSES.values())


@each("exchange", KNOWN, ids=lambda e: e.name)
def test_exchange(exchange):
    """Requests and responses decode to the last byte, and encode to the same bytes."""
    request = frames.decode_request(exchange.request[4:])
    assert frames.encode_request(request) == exchange.request
    if exchange.response is not None:
        response = frames.decode_response(answer_of(request), exchange.response[4:])
        assert frames.encode_response(response) == exchange.response


@each("exchange", ANSWERED, ids=lambda e: e.name)
def test_multi_fetch_parts(exchange):
    """A multi-fetch response splits into a response for each fetch, and joins to the same bytes."""
    request = frames.decode_request(exchange.request[4:])
    if isinstance(request, MultiFetchRequest):
        answer = frames.decode_response(MultiFetchResponse, exchange.response[4:])
        parts = frames.split_responses(answer.responses)
        assert len(parts) == len(request.fetches)
        assert frames.join_responses(parts) == answer.responses
    else:
        assert answer_of(request) is not MultiFetchResponse


@each(
    ("name", "wanted"),
    [
        ("offsets t7-0 time=-1 n=10", OffsetsResponse(error_code=ErrorCode.NO_ERROR, offsets=[43, 0])),
        ("fetch t7-0 off=99999 max=1000", FetchResponse(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)),
        ("fetch t7-7 off=0 max=100", FetchResponse(error_code=ErrorCode.WRONG_PARTITION)),
        ("fetch nosuch-0 off=0 max=100", FetchResponse(error_code=ErrorCode.NO_ERROR)),
        ("fetch topic a/b", FetchResponse(error_code=ErrorCode.UNKNOWN)),
        ("multifetch zero", MultiFetchResponse(error_code=ErrorCode.NO_ERROR)),
        (
            "offsets seg-0 time=-1 n=10",
            OffsetsResponse(error_code=ErrorCode.NO_ERROR, offsets=[1600, 800, 0]),
        ),
    ],
)
def test_response_values(name, wanted):
    """Error codes and offsets (highest first) are where the wiki has them."""
    (exchange,) = (e for e in EXCHANGES if e.name == name)
    assert frames.decode_response(type(wanted), exchange.response[4:]) == wanted


def test_unknown_type():
    """An unknown request type raises `Unsupported` with its number and the known types."""
    (exchange,) = (e for e in EXCHANGES if e.name == "unknown type 9")
    with pytest.raises(Unsupported, match=r"must be one of 0 PRODUCE, 1 FETCH, .*, got 9"):
        frames.decode_request(exchange.request[4:])


def test_wiki_arrows():
    """A fetch has the wiki's layout: length, type, topic with length, partition, offset, size."""
    drawn = struct.pack(">hh4siqi", 1, 4, b"test", 3, 5_000_000_000, 300)
    request = FetchRequest(topic="test", partition=3, offset=5_000_000_000, max_size=300)
    assert frames.encode_request(request) == struct.pack(">i", len(drawn)) + drawn


def test_empty_produce_of_kafka_rb():
    """A produce request without messages is the one in kafka-rb's tests."""
    request = ProduceRequest(topic="test", partition=0, messages=b"")
    assert frames.encode_request(request).hex() == "00000010000000047465737400000000" + "00000000"


def test_error_alone():
    """A response to OFFSETS may be only an error."""
    answer = frames.decode_response(OffsetsResponse, b"\0\3")
    assert answer == OffsetsResponse(error_code=ErrorCode.WRONG_PARTITION, offsets=[])


@given(requests)
@example(MultiFetchRequest(fetches=[]))
def test_requests_return(request):
    """Messages round-trip."""
    assert frames.decode_request(frames.encode_request(request)[4:]) == request


@given(responses)
def test_responses_return(response):
    """Messages round-trip."""
    assert frames.decode_response(type(response), frames.encode_response(response)[4:]) == response


@given(st.one_of(requests, responses), st.data())
def test_interpreter_and_compiled_agree(message, data):
    """The interpreter and the compiled functions write the same bytes, and read the same from cut ones."""
    layout = layout_of(type(message), 0)
    raw = interpreter.encode(layout, message)
    assert compiler.encoder(type(message), 0)(message) == raw
    cut = raw[: data.draw(st.integers(0, len(raw)))]
    assert outcome(compiler.decode, type(message), 0, cut) == outcome(interpreter.decode, layout, cut)


def outcome(read, *given):
    try:
        return read(*given)
    except ProtocolError as error:
        return type(error), str(error)


@given(st.binary(max_size=60))
@example(b"\0\2\xff\xff")
@example(b"\0\2\x7f\xff")
@example(b"\0\0\xff\xff")
def test_any_bytes(data):
    """Arbitrary bytes decode or raise the protocol's errors."""
    for read in (frames.decode_request, frames.split_responses, *map(reader, RESPONSES.values())):
        with suppress(ProtocolError):
            read(data)


def reader(structure):
    return lambda data: frames.decode_response(structure, data)


def test_trailing_bytes():
    """Bytes after a request are `Malformed`, with their number and position."""
    with pytest.raises(Malformed, match=r"FetchRequest at byte 22: 2 bytes follow the last field"):
        frames.decode_request(KNOWN[1].request[4:] + b"ab")


def test_counts_are_int16():
    """A multi request with more parts than an int16 counts is `Unencodable`."""
    part = FetchRequest(topic="t", partition=0, offset=0, max_size=1)
    assert len(frames.encode_request(MultiFetchRequest(fetches=[part] * 32_767))) == 8 + 32_767 * 19
    with pytest.raises(Unencodable, match="32,768"):
        frames.encode_request(MultiFetchRequest(fetches=[part] * 32_768))


def test_header_is_a_type():
    """Single and multi requests have the same header."""
    assert compiler.encode(RequestHeader(request_type=3), 0) == b"\0\3"


def test_codes():
    """There are six codes, from -1 on; the text of an error has the name and message of its code."""
    assert {code.value: code.name for code in ErrorCode} == {
        -1: "UNKNOWN",
        0: "NO_ERROR",
        1: "OFFSET_OUT_OF_RANGE",
        2: "INVALID_MESSAGE",
        3: "WRONG_PARTITION",
        4: "INVALID_FETCH_SIZE",
    }
    for code in ErrorCode:
        assert str(PartitionError(code, "t", 0)) == f"t[0]: {code.name} ({code}): {code.message}"


def test_topics_are_ascii():
    """A topic that is not ASCII is neither encoded nor decoded, also in a multi request, and is explained."""
    part = FetchRequest(topic="caf\u00e9", partition=0, offset=0, max_size=1)
    for request in (part, MultiFetchRequest(fetches=[part])):
        with pytest.raises(Unencodable, match=r"a topic of Kafka 0\.7 must be ASCII, got 'caf\u00e9'"):
            frames.encode_request(request)
    ascii = FetchRequest(topic="abcde", partition=0, offset=0, max_size=1)
    frame = frames.encode_request(ascii).replace(b"abcde", "caf\u00e9".encode())
    with pytest.raises(Malformed, match="must be ASCII") as caught:
        frames.decode_request(frame[4:])
    assert caught.value.at == 4
    (problem,) = explain_request_07(frame).problems
    assert (problem.at, problem.path) == (6, "topic")
