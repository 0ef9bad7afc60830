"""The compiler agrees with the interpreter on valid messages, on invalid bytes and on invalid values."""

from __future__ import annotations

import copy
import struct
import time
import uuid
from enum import StrEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.codec import compiler, interpreter
from cloudevents_kafka.protocol.codec._function_source import FallBack, FunctionSource
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import Malformed, ProtocolError, Truncated, Unencodable
from cloudevents_kafka.protocol.layout import layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    ForgottenTopic,
    PartitionData,
)
from cloudevents_kafka.protocol.messages.groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
)
from cloudevents_kafka.protocol.messages.produce import LeaderIdAndEpoch as Leader
from cloudevents_kafka.protocol.messages.topics import MetadataRequest
from cloudevents_kafka.protocol.schema import Structure, fields_of
from tests.protocol.generated import CASES, IDS, Everything, EverythingInner, any_case, bulk, messages
from tests.support.cases import check_each, each
from tests.support.samples import one_in
from tests.support.strategies import examples


class NoIndex:
    """A value like an array of two numbers, whose conversion to an integer raises `TypeError`."""

    def __index__(self) -> int:
        raise TypeError("only integer scalar arrays can be converted to a scalar index")

    __float__ = __index__


ODD = [
    *(None, -1, 1 << 15, 1 << 31, 1 << 63, -(1 << 64), 1.5, True, "no", "", "\ud800", "x" * 32_768),
    *(b"", bytearray(b"ab"), [], (), [None], ["a"], [1, "b"], [1 << 40], {1: 2}, {"a"}, range(3), object),
    *(NoIndex(), [NoIndex()], uuid.UUID(int=7), Leader(), [Leader()], [[]]),
    *(((5, b"x"),), ((-1, b""),), (5,), ((5, b""), (5, b""))),
]


def outcome(work: Any, *args: Any) -> tuple[Any, ...]:
    """Return the result of a call as text, or the class and text of its `ProtocolError`."""
    try:
        return ("done", repr(work(*args)))
    except ProtocolError as error:
        return (type(error), str(error))


def read_both(structure: type[Structure], version: int, data: bytes) -> tuple[Any, ...]:
    """Decode with both, which must agree; return the outcome."""
    slow = outcome(interpreter.decode, layout_of(structure, version), data)
    assert outcome(compiler.decode, structure, version, data) == slow
    return slow


def write_both(message: Structure, version: int) -> tuple[Any, ...]:
    """Encode with both, which must agree; return the outcome."""
    slow = outcome(interpreter.encode, layout_of(type(message), version), message)
    assert outcome(compiler.encode, message, version) == slow
    return slow


# A loop for each side of the connection, as one for all takes more than ten seconds.
SIDES = {
    "requests": {name: case for name, case in zip(IDS, CASES, strict=True) if "Request" in name},
    "responses": {name: case for name, case in zip(IDS, CASES, strict=True) if "Request" not in name},
}


@pytest.mark.parametrize("side", SIDES)
def test_same_bytes_and_values(side):
    """Both encode to the same bytes and decode them to the same message, at any index."""
    check_each(SIDES[side], lambda case: agree_on_values(*case))


def agree_on_values(structure, version):
    layout = layout_of(structure, version)
    for message in bulk(structure, version, count=20):
        data = interpreter.encode(layout, message)
        # `encoder` and `decoder` do not fall back, so that generated code must do all the work.
        assert compiler.encoder(structure, version)(message) == data
        assert compiler.decoder(structure, version)(data, 0) == (message, len(data))
        assert interpreter.decode(layout, data) == (message, len(data))
        inside = b"abc" + data + b"d" * (layout.optional_from == len(layout.fields))
        assert compiler.decoder(structure, version)(inside, 3) == (message, len(data) + 3)
        assert interpreter.decode(layout, inside, 3) == (message, len(data) + 3)


@pytest.mark.parametrize("side", one_in(2, SIDES))
def test_cut_and_changed_bytes(side):
    """For a truncated or changed message, both return the same value or raise the same error."""
    check_each(SIDES[side], lambda case: agree_on_broken_bytes(*case))


def agree_on_broken_bytes(structure, version):
    layout = layout_of(structure, version)
    for number, message in enumerate(bulk(structure, version, small=True, count=2)):
        data = interpreter.encode(layout, message)
        for length in range(len(data)):
            result = read_both(structure, version, data[:length])
            assert result[0] is Truncated or layout.optional_from < len(layout.fields)
        for at in range(len(data)):
            changed = data[at] ^ (0xFF, 0x01)[number % 2]
            read_both(structure, version, data[:at] + bytes([changed]) + data[at + 1 :])


@examples(200)
@given(any_case(), st.data())
def test_changed_bytes(case, data):
    """For a message with changed bytes, both return the same value or raise the same error."""
    structure, version = case
    written = interpreter.encode(
        layout_of(structure, version), data.draw(messages(structure, version, small=True))
    )
    at = data.draw(st.integers(0, max(0, len(written) - 1)))
    read_both(
        structure, version, written[:at] + data.draw(st.binary(min_size=1, max_size=2)) + written[at + 1 :]
    )


@examples(400)
@given(any_case(), st.binary(max_size=80))
def test_random_bytes(case, data):
    """For arbitrary bytes, both return the same value or raise the same error."""
    read_both(*case, data)


@examples(400)
@given(any_case(), st.data())
def test_odd_values(case, data):
    """For a field with a value of any type, both return the same bytes or raise the same error."""
    structure, version = case
    message = copy.deepcopy(data.draw(messages(structure, version, small=True)))
    place: Any = message
    while True:
        name = data.draw(st.sampled_from([*(field.name for field in fields_of(type(place))), "unknown_tags"]))
        inner = getattr(place, name)
        if isinstance(inner, list) and inner and isinstance(inner[0], Structure) and data.draw(st.booleans()):
            place = inner[0]
        elif isinstance(inner, Structure) and data.draw(st.booleans()):
            place = inner
        else:
            break
    setattr(place, name, data.draw(st.sampled_from(ODD)))
    result = write_both(message, version)
    assert result[0] in {"done", Unencodable}


@each(
    ("message", "version", "match"),
    [
        (
            HeartbeatRequest(group_id="g", generation_id=1 << 31, member_id=""),
            0,
            "must be int32, got 2147483648",
        ),
        (HeartbeatRequest(group_id="g", generation_id="1", member_id=""), 0, "must be int32, got '1'"),
        (
            HeartbeatRequest(group_id=None, generation_id=1, member_id=""),
            0,
            "group_id must be string, got None",
        ),
        (
            HeartbeatRequest(group_id=b"g", generation_id=1, member_id=""),
            0,
            "group_id must be string, got b'g'",
        ),
        (HeartbeatRequest(group_id="\ud800", generation_id=1, member_id=""), 0, "must be string"),
        (HeartbeatRequest(group_id="é" * 16384, generation_id=1, member_id=""), 0, "32,768"),
        (
            HeartbeatRequest(group_id="g", generation_id=1, member_id="", group_instance_id="i"),
            2,
            "group_instance_id must be None in version 2; versions 3[+] have the field",
        ),
        (MetadataRequest(topics=None), 0, "topics must be array, got None"),
        (MetadataRequest(topics="ab"), 0, "topics must be array, got 'ab'"),
        (MetadataRequest(topics=["a"]), 0, r"topics\[0\] must be MetadataRequestTopic, got 'a'"),
        (MetadataRequest(topics=[], allow_auto_topic_creation="no"), 4, "creation must be boolean, got 'no'"),
        (MetadataRequest(topics=[], allow_auto_topic_creation=None), 4, "creation must be boolean, got None"),
        (
            FindCoordinatorRequest(coordinator_keys="ab"),
            4,
            "coordinator_keys must be compact_array, got 'ab'",
        ),
        (
            FindCoordinatorRequest(coordinator_keys={"a"}),
            4,
            "coordinator_keys must be compact_array, got {'a'}",
        ),
        (HeartbeatRequest(group_id="", generation_id=1, member_id="", unknown_tags=((1, b""),)), 3, "tags"),
        (HeartbeatRequest(group_id="", generation_id=1, member_id="", unknown_tags=((-1, b""),)), 4, "tags"),
        (
            FetchResponse(responses=[], unknown_tags=((0, b""),)),
            16,
            "must be distinct, undeclared tags",
        ),
    ],
    ids=repr,
)
def test_unencodable(message, version, match):
    """Both refuse a value that its field or version cannot carry, and name the field and the rule."""
    kind, text = write_both(message, version)
    assert kind is Unencodable
    with pytest.raises(Unencodable, match=match):
        compiler.encode(message, version)
    assert text.startswith(type(message).__name__)


HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def failing(error: BaseException) -> Any:
    """Return a stand-in for `compiler.decoder` and `compiler.encoder`, whose function raises."""

    def run(*_: object) -> Any:
        raise error

    return lambda *_: run


@pytest.mark.parametrize(
    "error",
    [
        FallBack(),
        IndexError(),
        struct.error(),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        Malformed("a rule"),
        Truncated(1),
    ],
    ids=repr,
)
def test_decoding_falls_back(monkeypatch, error):
    """For each declared error of generated code, the interpreter decodes the message."""
    data = compiler.encode(HEARTBEAT, 0)
    monkeypatch.setattr(compiler, "decoder", failing(error))
    assert compiler.decode(HeartbeatRequest, 0, data) == (HEARTBEAT, len(data))


@pytest.mark.parametrize(
    "error",
    [
        FallBack(),
        struct.error(),
        OverflowError(),
        UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
        Unencodable("a rule"),
    ],
    ids=repr,
)
def test_encoding_falls_back(monkeypatch, error):
    """For each declared error of generated code, the interpreter encodes the message."""
    data = compiler.encode(HEARTBEAT, 0)
    monkeypatch.setattr(compiler, "encoder", failing(error))
    assert compiler.encode(HEARTBEAT, 0) == data


@pytest.mark.parametrize("error", [AttributeError, TypeError, NameError, KeyError, ValueError])
def test_bugs_propagate(monkeypatch, error):
    """Any other error of generated code is a bug: it reaches the caller, who may then report it."""
    monkeypatch.setattr(compiler, "decoder", failing(error("a bug")))
    monkeypatch.setattr(compiler, "encoder", failing(error("a bug")))
    with pytest.raises(error, match="a bug"):
        compiler.decode(HeartbeatRequest, 0, b"")
    with pytest.raises(error, match="a bug"):
        compiler.encode(HEARTBEAT, 0)


def test_bugs_of_generated_code_propagate(monkeypatch):
    """Generated code that uses a missing name or attribute raises; the interpreter does not hide it."""
    broken = FunctionSource("def run(data, at, left):")
    broken.add("return data.missing, at")
    monkeypatch.setattr(compiler, "decoder_source", lambda _: broken)
    compiler.decoder.cache_clear()
    try:
        with pytest.raises(AttributeError, match="missing"):
            compiler.decode(HeartbeatRequest, 0, compiler.encode(HEARTBEAT, 0))
    finally:
        compiler.decoder.cache_clear()


def test_values_that_refuse_to_be_integers():
    """A number whose conversion raises `TypeError`, as a numpy array's does, is unencodable, not a bug."""
    forgotten = ForgottenTopic(partitions=[1, NoIndex()])
    for message, version in (
        (HeartbeatRequest(group_id="g", generation_id=NoIndex(), member_id=""), 0),
        (FetchRequest(max_wait_ms=0, min_bytes=0, topics=[], forgotten_topics_data=[forgotten]), 7),
    ):
        with pytest.raises(Unencodable, match=r"must be int32, got <.*NoIndex"):
            compiler.encode(message, version)


def test_subclasses_of_values():
    """A subclass of a value's type, which generated code refuses, is encoded by the interpreter."""

    class Name(StrEnum):
        GROUP = "g"

    message = msgspec.structs.replace(HEARTBEAT, group_id=Name.GROUP, generation_id=ErrorCode(1))
    assert compiler.encode(message, 0) == compiler.encode(HEARTBEAT, 0)


def test_ignorable():
    """An ignorable field is dropped in versions without it."""
    message = FetchResponse(responses=[], throttle_time_ms=7, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert compiler.encode(message, 0) == bytes(4)
    assert compiler.encode(message, 1) == bytes([0, 0, 0, 7]) + bytes(4)
    with pytest.raises(Unencodable, match="session_id must be 0 in version 1"):
        compiler.encode(FetchResponse(responses=[], session_id=1), 1)


def test_arrays_are_lists_or_tuples():
    """A tuple encodes like a list."""
    listed, tupled = (FindCoordinatorRequest(coordinator_keys=keys) for keys in (["a"], ("a",)))
    assert compiler.encoder(FindCoordinatorRequest, 4)(tupled) == compiler.encode(listed, 4)


@each("coordinator", [b"", b"\0\0\0\1", b"\0\0\0\1\0\1h", b"\0\0\0\1\0\1h\0\0\x23\x84"])
def test_optional_fields(coordinator):
    """The optional fields of the coordinator may be missing in a response; they are always encoded."""
    result = read_both(FindCoordinatorResponse, 0, b"\0\x0f" + coordinator)
    assert result[0] == "done"
    message, end = compiler.decoder(FindCoordinatorResponse, 0)(b"\0\x0f" + coordinator, 0)
    assert (message.error_code, end) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, 2 + len(coordinator))
    assert message.node_id == (1 if coordinator else 0)
    assert len(compiler.encode(message, 0)) == 2 + 4 + 2 + len(message.host) + 4
    assert read_both(FindCoordinatorResponse, 0, b"\0\x0f\0")[0] is Truncated


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\0\0\0\5"])
@each("api", APIS.values(), ids=lambda api: api.name)
def test_huge_counts(api, count):
    """A count that exceeds the remaining bytes is refused before anything is allocated."""
    for structure in (api.request, api.response):
        started = time.process_time()
        for at in range(30):
            result = read_both(structure, 0, bytes(at) + count + b"\0\0")
            assert result[0] in {"done", Truncated, Malformed}
        assert time.process_time() - started < 2


def test_tagged_fields_after_many_bytes():
    """The time to decode tagged fields does not depend on the bytes before them."""
    big = PartitionData(
        partition_index=0, error_code=ErrorCode.NONE, high_watermark=0, records=bytes(20_000_000)
    )
    small = msgspec.structs.replace(big, records=b"", current_leader=Leader(leader_id=1))
    message = FetchResponse(responses=[FetchableTopicResponse(partitions=[big, *[small] * 2000])])
    data = compiler.encode(message, 12)
    started = time.process_time()
    assert compiler.decode(FetchResponse, 12, data) == (message, len(data))
    assert time.process_time() - started < 2


def test_defaults_are_not_shared():
    """The default of a field that the version does not have is a new object for each message."""
    data = compiler.encode(Everything(tiny=1, inner=EverythingInner()), 0)
    for read in (
        compiler.decoder(Everything, 0),
        lambda *args: interpreter.decode(layout_of(Everything, 0), *args),
    ):
        (first, _), (second, _) = read(data, 0), read(data, 0)
        first.keys.append(b"x")
        assert second.keys == []
