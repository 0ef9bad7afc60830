"""The fields of an explained frame cover each byte once, and their values are those of the decoders."""

from __future__ import annotations

import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.client import CapturedFrame
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import ProtocolError
from cloudevents_kafka.protocol.explain import (
    CaptureExplainer,
    ExplainedFrame,
    explain_request,
    explain_request_07,
    explain_response,
    explain_response_07,
)
from cloudevents_kafka.protocol.explain._cursor import Cursor
from cloudevents_kafka.protocol.explain._frame import explain_structure
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from cloudevents_kafka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from cloudevents_kafka.protocol.messages.topics import MetadataRequest, MetadataRequestTopic
from cloudevents_kafka.protocol.records import Codec, ControlRecord, Record, encode_batch, encode_message_set
from cloudevents_kafka.protocol.records.record import COMMIT
from cloudevents_kafka.protocol.v07 import Message, encode
from cloudevents_kafka.protocol.v07 import frames as frames_07
from cloudevents_kafka.protocol.v07.message_set import pack
from cloudevents_kafka.protocol.v07.messages import ProduceRequest as ProduceRequest07
from tests.protocol.captured import CAPTURED, FILES, exchanges
from tests.protocol.generated import any_case, messages
from tests.support.cases import each

KEYS = [*APIS, ApiKey.DESCRIBE_CLUSTER, -1]
OLD = exchanges(Path(__file__).parent.parent / "vectors" / "0.7.2.json")
FRAMES = [frame for one in CAPTURED for frame in (one.request, one.response) if frame is not None]
ids = {"ids": lambda one: f"{one.file}-{one.number}"}


def check(found: ExplainedFrame, data: bytes) -> ExplainedFrame:
    """Return the explanation, after a check that its fields cover all bytes once and in order."""
    ends: dict[str, int] = defaultdict(int)
    parts: dict[str, bytes] = defaultdict(bytes)
    for field in found.fields:
        assert field.at == ends[field.within], field
        assert field.end - field.at == len(field.raw), field
        ends[field.within] = field.end
        parts[field.within] += field.raw
    assert parts[""] == data
    return found


def values(found: ExplainedFrame, *paths: str) -> list[Any]:
    return [found.value(path) for path in paths]


def notes(found: ExplainedFrame) -> dict[str, str]:
    return {field.path: field.note for field in found.fields if field.note}


def produced(records: bytes, version: int) -> bytes:
    data = PartitionProduceData(index=0, records=records)
    message = ProduceRequest(
        acks=1, timeout_ms=5, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )
    return frames.encode_request(message, version)


def only_records(found: ExplainedFrame) -> list[tuple[str, Any]]:
    """Return key and value of each record, by the end of their path."""
    return [(f.path.rpartition(".")[2], f.value) for f in found.fields if f.path.endswith((".key", ".value"))]


# --- captured frames ----------------------------------------------------


@each("one", CAPTURED, **ids)
def test_requests_of_the_captures(one):
    """A request has a problem exactly if it does not decode, apart from wrong checksums."""
    found = check(explain_request(one.request), one.request)
    assert (found.kind, found.key, found.version) == ("request", one.key, one.version)
    try:
        frames.decode_request(one.request[4:])
    except ProtocolError:
        assert found.problems
    else:
        assert [p for p in found.problems if not p.path.endswith(".crc")] == []


@each("one", [one for one in CAPTURED if one.response], **ids)
def test_captured_responses(one):
    """A response is explained to its last byte, with its correlation id."""
    found = check(explain_response(one.response, one.key, one.version), one.response)
    assert found.value("header.correlation_id") == explain_request(one.request).value("header.correlation_id")


@each("one", OLD, **ids)
def test_frames_of_07(one):
    """Frames of Kafka 0.7 are explained to their last byte; only those sent broken have problems."""
    found = check(explain_request_07(one.request), one.request)
    assert bool(found.problems) is (one.number in {24, 26})
    if one.response:
        assert found.key is not None
        assert check(explain_response_07(one.response, found.key), one.response).problems == []


def test_without_size():
    """A frame is explained with or without its size, which is detected."""
    message = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    sized = frames.encode_request(message, 1, client_id="me")
    bare = check(explain_request(sized[4:]), sized[4:])
    whole = check(explain_request(sized), sized)
    assert [(f.path, f.value) for f in whole.fields[1:]] == [(f.path, f.value) for f in bare.fields]
    assert explain_request(sized[4:], sized=False) == bare
    assert explain_request(sized[4:], sized=True).problems
    assert values(whole, "size", "header.client_id", "topics", "topics[0].name") == [
        len(sized) - 4,
        "me",
        1,
        "t",
    ]


@given(any_case(), st.data())
def test_any_message(case, data):
    """The fields of any message in any version cover each byte once."""
    structure, version = case
    encoded = compiler.encode(data.draw(messages(structure, version)), version)
    into = ExplainedFrame("request", len(encoded))
    explain_structure(Cursor(into, encoded, 0, len(encoded)), structure, version, contents={})
    assert b"".join(field.raw for field in into.fields) == encoded
    assert [field.at for field in into.fields[1:]] == [field.end for field in into.fields[:-1]]


# --- records -----------------------------------------------------------------------------

RECORDS = [Record(b"k", b"v", [("h", b"1"), ("n", None)], 5), Record(None, None, [], 7)]
PLAIN = [("key", b"k"), ("value", b"v"), ("key", None), ("value", None)]


@each("codec", Codec)
def test_batches(codec):
    """The records of a batch are explained with their headers, for each codec."""
    data = produced(encode_batch(RECORDS, codec, base_offset=3), 3)
    found = check(explain_request(data), data)
    assert found.problems == []
    assert [record for record in only_records(found) if record[0] == "key" or record[1] != b"1"][:2] == PLAIN[
        :2
    ]
    names = [f.value for f in found.fields if f.path.endswith(".name") and "headers" in f.path]
    assert names == [b"h", b"n"]
    found_notes = notes(found)
    batch = "topic_data[0].partition_data[0].records[0]"
    assert found_notes[f"{batch}.crc"] == "correct"
    assert found_notes[f"{batch}.attributes"] == f"{codec.name.lower()}, create time"
    assert found_notes[f"{batch}.records[1].offset_delta"] == "offset 4"
    assert found_notes[f"{batch}.records[1].timestamp_delta"] == "1970-01-01T00:00:00.007Z"
    assert {f.within for f in found.fields} == {""} | ({f"{batch}.compressed"} if codec else set())


@each("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@each("magic", [0, 1])
def test_message_sets(magic, codec):
    """The messages of a set are explained, and those of a compressed set after it."""
    plain = [Record(b"k", b"v", [], 5 if magic else None), Record(None, None, [], 6 if magic else None)]
    data = produced(encode_message_set(plain, magic, codec), 2)
    found = check(explain_request(data), data)
    assert found.problems == []
    assert only_records(found)[2 if codec else 0 :] == PLAIN
    assert all(note == "correct" for path, note in notes(found).items() if path.endswith(".crc"))


def test_control_batches():
    """A control record has its meaning as note."""
    data = produced(encode_batch([ControlRecord(COMMIT, 0).to_record(1)], is_control=True), 3)
    assert "the transaction is committed" in notes(check(explain_request(data), data)).values()


def test_a_wrong_checksum():
    """A wrong checksum is a problem, and the fields after it are explained."""
    records = bytearray(encode_batch(RECORDS))
    records[17] ^= 1
    data = produced(bytes(records), 3)
    found = check(explain_request(data), data)
    (problem,) = found.problems
    assert problem.path == "topic_data[0].partition_data[0].records[0].crc"
    assert problem.rule.startswith("the checksum must be ")
    assert data[problem.at : problem.at + 4] == records[17:21]
    assert only_records(found)[0] == ("key", b"k")


def test_a_batch_that_compaction_has_emptied():
    """A batch with a codec and without records has no problem."""
    header = encode_batch(RECORDS, Codec.GZIP)[:61]
    empty = header[:8] + (49).to_bytes(4) + header[12:57] + bytes(4)
    data = produced(empty, 3)
    found = check(explain_request(data), data)
    assert {problem.path.rpartition(".")[2] for problem in found.problems} == {"crc"}  # not made for it


def test_a_broken_batch():
    """A malformed batch is explained up to the problem; the batches after it are explained."""
    broken = bytearray(encode_batch(RECORDS))
    broken[61] = 0x7F  # the first record's length
    data = produced(bytes(broken) + encode_batch(RECORDS), 3)
    found = check(explain_request(data), data)
    assert {p.path.partition(".records[0]")[0] for p in found.problems} == {"topic_data[0].partition_data[0]"}
    assert ("key", b"k") in only_records(found)
    assert found.fields[-1].path.endswith("records[1].records[1].headers")


def test_no_headers_at_all():
    """A negative number of headers is a problem, even if no bytes remain."""
    records = bytearray(encode_batch([Record(b"k", b"v")]))
    records[-1] = 1  # -1
    data = produced(bytes(records), 3)
    found = check(explain_request(data), data)
    assert [problem.rule for problem in found.problems if not problem.path.endswith(".crc")] == [
        "the number of headers must be at least 0, got -1"
    ]


def test_a_cut_batch():
    """A partial entry at the end of a fetch response is not a problem: brokers cut there."""
    records = encode_batch(RECORDS) + encode_batch(RECORDS)[:-3]
    part = PartitionData(partition_index=0, error_code=ErrorCode.NONE, high_watermark=9, records=records)
    answer = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])
    data = frames.encode_response(answer, 4, correlation_id=1)
    found = check(explain_response(data, ApiKey.FETCH, 4), data)
    assert found.problems == []
    assert (found.fields[-1].type, found.fields[-1].path) == (
        "partial",
        "responses[0].partitions[0].records[1]",
    )


def test_bombs_are_not_decompressed():
    """Data that decompresses to too many bytes is a problem, and is not decompressed."""
    data = produced(encode_batch([Record(value=bytes(1 << 25))], Codec.GZIP), 3)
    found = check(explain_request(data), data)
    assert "cannot be decompressed: gzip must decompress to at most" in found.problems[0].rule
    assert {field.within for field in found.fields} == {""}


def test_most_fields():
    """A frame with too many fields has the first of them, and a problem."""
    data = produced(encode_batch([Record(value=b"")] * 2000), 3)
    found = check(explain_request(data, max_fields=300), data)
    assert len(found.fields) < 310
    assert [p.rule for p in found.problems] == ["a frame must have at most 300 fields; the rest is omitted"]


def test_compressed_sets_of_07():
    """A compressed set of Kafka 0.7 is decompressed."""
    messages = encode([pack([b"one", Message(b"two", 0)], Codec.GZIP), b"three"])
    data = frames_07.encode_request(ProduceRequest07(topic="t", partition=0, messages=messages))
    found = check(explain_request_07(data), data)
    assert found.problems == []
    assert [f.value for f in found.fields if f.path.endswith(".payload")][1:] == [b"one", b"two", b"three"]


# --- what is broken ----------------------------------------------------------------------


def test_error_codes_have_names():
    """An error code has its name as note; for Kafka 0.7, the name in 0.7."""
    answer = FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
    found = explain_response(frames.encode_response(answer, 7, correlation_id=1), ApiKey.FETCH, 7)
    assert notes(found)["error_code"] == "FETCH_SESSION_ID_NOT_FOUND"
    assert notes(explain_response_07(struct.pack(">ih", 2, 3), 1))["error_code"] == "WRONG_PARTITION"


@each(
    ("hex", "at", "rule"),
    [
        ("", 0, "the data must have at least 4 more bytes"),
        ("0003000100000065ffff", 10, "the data must have at least 4 more bytes"),
        ("0003000100000065ffff00000001000261", 16, "the data must have at least 1 more byte"),
        ("0003000100000005ffff00000001000261", 16, "the data must have at least 1 more byte"),
        ("000300010000006500017a0000000001", 15, "1 byte follows the last field"),
        ("003c000000000065ffff", 10, "DescribeCluster (API key 60) is not supported"),
        ("03e7000000000065ffff", 10, "API 999 (API key 999) is not supported"),
        ("0003006300000065ffff", 10, "Metadata (API key 3) must have a version in 0-13, got 99"),
        ("000000630003000100000065ffff00000000", 0, "the size must be 14, got 99"),
        ("0000000e0003000100000065ffff0000000000", 0, "the size must be 15, got 14"),
    ],
)
def test_problems(hex, at, rule):
    """A malformed frame has a problem with byte and rule, and the fields before it."""
    data = bytes.fromhex(hex)
    found = check(explain_request(data), data)
    assert (found.problems[0].at, found.problems[0].rule) == (at, rule)
    assert found.read >= min(at, 10)


def test_api_versions_answered_in_version_0():
    """A response to ApiVersions in version 0, as of a broker without the version, is explained."""
    data = struct.pack(">iihi", 10, 7, 35, 0)
    found = check(explain_response(data, ApiKey.API_VERSIONS, 3), data)
    assert (found.version, found.problems, notes(found)["error_code"]) == (0, [], "UNSUPPORTED_VERSION")


# --- captures ----------------------------------------------------------------------------


def frame(direction, data, broker="a:1"):
    return CapturedFrame(0.0, broker, direction, data)


def test_pairing():
    """A response is decoded in the version of its request: by broker, correlation id and order."""
    pairs = [one for one in FILES["old-apis-4.3.1"] if one.response]
    pairing = CaptureExplainer()
    for one in pairs:
        pairing.explain(frame("sent", one.request, f"b:{one.number % 2}"))
    for one in pairs:
        found = pairing.explain(frame("received", one.response, f"b:{one.number % 2}"))
        assert (found.key, found.problems) == (one.key, [])


def test_responses_without_a_request():
    """A response whose request is missing from the capture has its header, and a problem."""
    data = struct.pack(">iihi", 10, 7, 35, 0)
    found = check(CaptureExplainer().explain(frame("received", data)), data)
    assert found.value("header.correlation_id") == 7
    assert "a request with the correlation id 7 is missing" in found.problems[0].rule


def test_acks_0_has_no_response():
    """A request without a response does not consume the response of another connection."""
    pairing = CaptureExplainer()
    silent = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
    pairing.explain(frame("sent", frames.encode_request(silent, 3, correlation_id=1)))
    pairing.explain(frame("sent", frames.encode_request(MetadataRequest(topics=[]), 1, correlation_id=1)))
    answer = APIS[ApiKey.METADATA].response(brokers=[], topics=[])
    found = pairing.explain(frame("received", frames.encode_response(answer, 1, correlation_id=1)))
    assert (found.api, found.problems) == ("Metadata", [])


# --- any bytes ---------------------------------------------------------------------------


@st.composite
def broken_frames(draw: st.DrawFn) -> bytes:
    """Generate a captured frame, truncated or with changed bytes."""
    data = bytearray(draw(st.sampled_from(FRAMES)))
    for _ in range(draw(st.integers(0, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


ANYTHING = st.one_of(st.binary(max_size=200), broken_frames())


@given(ANYTHING, st.sampled_from(KEYS), st.integers(-1, 20))
@example(b"", 3, 1)
@example(struct.pack(">ihhih", -1, 3, 1, 0, -1), 3, 1)
def test_any_bytes_are_explained(data, key, version):
    """For arbitrary bytes, the fields cover each byte once, and nothing is raised."""
    check(explain_request(data), data)
    check(explain_response(data, key, version), data)
    check(explain_request_07(data), data)
    check(explain_response_07(data, key), data)
    pairing = CaptureExplainer()
    check(pairing.explain(frame("sent", data)), data)
    check(pairing.explain(frame("received", data)), data)
