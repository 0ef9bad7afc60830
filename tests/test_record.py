"""Records: null and empty values, messages of other clients, and the repr."""

from __future__ import annotations

import pickle
from collections import namedtuple
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from cloudevents_kafka import Record
from cloudevents_kafka.record import to_bytes, to_headers
from tests.support.cases import each

FULL = Record(
    key=b"k", value=b"v", headers=[("a", b"1"), ("a", None)], topic="t", partition=1, offset=2, timestamp=3
)


class Message:
    """A message of confluent-kafka: it has methods and a length."""

    def __init__(self, record: Record, kind: int = 1) -> None:
        self._record = record
        self._kind = kind

    def __len__(self) -> int:
        return 0

    def key(self) -> bytes | None:
        return self._record.key

    def value(self) -> bytes | None:
        return self._record.value

    def headers(self) -> Any:
        return self._record.headers or None

    def topic(self) -> str | None:
        return self._record.topic

    def partition(self) -> int | None:
        return self._record.partition

    def offset(self) -> int | None:
        return self._record.offset

    def timestamp(self) -> tuple[int, int | None]:
        return self._kind, self._record.timestamp


Row = namedtuple("Row", "key value topic partition offset timestamp headers")  # noqa: PYI024 - as Spark makes it


class SparkRow(Row):
    """A row of Spark: a tuple, so ``count`` and ``index`` are methods, with bytearrays."""

    def asDict(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._asdict()


FIELDS = {
    "key": b"k",
    "value": b"v",
    "headers": (("a", b"1"), ("a", None)),
    "topic": "t",
    "partition": 1,
    "offset": 2,
    "timestamp": 3,
}
SHAPES: list[Any] = [
    FULL,
    Message(FULL),
    FIELDS,
    SimpleNamespace(**FIELDS),
    SparkRow(
        bytearray(b"k"),
        bytearray(b"v"),
        "t",
        1,
        2,
        datetime(1970, 1, 1, 0, 0, 0, 3000, UTC),
        [("a", b"1"), ("a", None)],
    ),
    {
        **FIELDS,
        "key": memoryview(b"k"),
        "timestamp": datetime(1970, 1, 1, 1, 0, 0, 3000, timezone(timedelta(hours=1))),
    },
]


@each("source", SHAPES, ids=lambda source: type(source).__name__)
def test_records_of_any_client(source: Any) -> None:
    """A confluent message, an attribute record, a Spark row and a mapping become equal records."""
    record = Record.of(source)
    assert record == FULL
    assert type(record.key) is type(record.value) is bytes


@pytest.mark.parametrize("value", [None, b""])
def test_null_and_empty_differ(value: bytes | None) -> None:
    """A null key, value or header is not an empty one."""
    given = Record(key=value, value=value, headers=[("h", value)])
    for record in (
        given,
        Record.of(Message(given)),
        Record.of({"key": value, "value": value, "headers": [("h", value)]}),
    ):
        assert record.key == value
        assert record.value == value
        assert record.headers == [("h", value)]
        assert bool(record) is True


def test_a_message_without_timestamp_or_headers() -> None:
    """Kind 0 means that there is no timestamp, for any number."""
    record = Record.of(Message(Record(timestamp=-1), kind=0))
    assert record.timestamp is None
    assert record.headers == []


def test_a_naive_time_is_local() -> None:
    """Spark returns naive times in the time zone of the session."""
    naive = datetime(2024, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001 - on purpose
    assert Record.of({"timestamp": naive}).timestamp == round(naive.timestamp() * 1000)


@each("thing", [None, 5, b"", "x", object(), [("a", b"")], SimpleNamespace(value=b"")])
def test_other_objects_are_refused(thing: object) -> None:
    """An object that is not a record raises TypeError, also the None of an empty poll."""
    hint = "got NoneType; skip an empty poll" if thing is None else f"got {type(thing).__name__}$"
    with pytest.raises(TypeError, match=rf" a method value\(\) or the attributes value and headers, {hint}"):
        Record.of(thing)


@each("value", [5, 1.5, ["x"], object()])
def test_only_bytes_and_text_become_bytes(value: object) -> None:
    """A number is not converted: bytes(5) would be five zeros."""
    with pytest.raises(TypeError, match=r"^key must be a str, bytes or None, got an? "):
        to_bytes(value, "key")
    with pytest.raises(TypeError, match=r"^value must be a str, bytes or None, got an? "):
        Record.of({"value": value})


NO_SURROGATES = "character 0 cannot be encoded (surrogates not allowed)"


@each(
    ("make", "message"),
    [
        (lambda: Record(key=5), "key must be a str, bytes or None, got an int; pass str(…)"),
        (lambda: Record(value={}), "value must be a str, bytes or None, got a dict; pass json.dumps(…)"),
        (lambda: Record.of({"key": 5}), "key must be a str, bytes or None, got an int; pass str(…)"),
        (
            lambda: to_headers({"y": b"1", "x": 5}),
            "header 'x' must be a str, bytes or None, got an int; pass str(…)",
        ),
        (
            lambda: Record.of({"key": 5, "headers": [("x", 1.5)]}),
            "header 'x' must be a str, bytes or None, got a float; pass str(…)",
        ),
        (
            lambda: Record(value="\ud800"),
            "value must be bytes or text in UTF-8, but " + NO_SURROGATES,
        ),
        (
            lambda: to_headers([("x", "\ud800")]),
            "header 'x' must be bytes or text in UTF-8, but " + NO_SURROGATES,
        ),
    ],
)
def test_errors_name_the_wrong_part(make: Callable[[], object], message: str) -> None:
    """An error says which of key, value and header is wrong, and what to pass."""
    with pytest.raises((TypeError, ValueError)) as caught:
        make()
    assert str(caught.value) == message


@each(
    ("given", "headers"),
    [
        (None, []),
        ([], []),
        ({}, []),
        ({"a": "é", "b": None, "c": b""}, [("a", b"\xc3\xa9"), ("b", None), ("c", b"")]),
        ((("a", bytearray(b"x")), ("a", memoryview(b"y"))), [("a", b"x"), ("a", b"y")]),
        (iter([["a", b"x"]]), [("a", b"x")]),
    ],
)
def test_headers_become_a_new_list(given: Any, headers: list[tuple[str, bytes | None]]) -> None:
    """Headers of any client become pairs of name and bytes in order."""
    converted = to_headers(given)
    assert converted == headers
    assert converted is not given
    assert all(type(value) in {bytes, type(None)} for _, value in converted)


def test_later_changes_do_not_reach_the_record() -> None:
    """Changes to the buffers and lists of a client do not change the record."""
    value, headers = bytearray(b"v"), [("a", b"1")]
    record = Record.of({"value": value, "headers": headers})
    value[:] = b"w"
    headers.clear()
    assert (record.value, record.headers) == (b"v", [("a", b"1")])
    assert Record().headers is not Record().headers


@each(
    ("record", "where"),
    [
        (Record(), ""),
        (Record(partition=1, offset=2), ""),
        (Record(topic="t"), "t"),
        (Record(topic="t", partition=0), "t[0]"),
        (Record(topic="t", partition=0, offset=0), "t[0]@0"),
    ],
)
def test_where(record: Record, where: str) -> None:
    """The position has topic, partition and offset as far as they are known."""
    assert record.where == where


def test_repr_has_no_byte_of_the_value() -> None:
    """The value may be confidential, the rest may be logged."""
    assert repr(Record(key=b"k", value=b"secret", headers=[("a", None)], topic="t")) == (
        "Record(key=b'k', value=<6 bytes>, headers=[('a', None)], where='t')"
    )
    assert "value=None" in repr(Record())
    assert "value=<0 bytes>" in repr(Record(value=b""))
    assert "value=<1 byte>" in repr(Record(value=b"x"))


def test_records_are_immutable_values() -> None:
    """Records are compared by value, cannot be changed, and can be pickled."""
    with pytest.raises(AttributeError):
        FULL.value = b""  # type: ignore[misc]  # that is the test
    assert pickle.loads(pickle.dumps(FULL)) == FULL


def test_a_message_that_is_an_error_is_refused() -> None:
    """A message with the error of a client is not a record."""
    message = Message(FULL)
    message.error = lambda: "_PARTITION_EOF"  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"got an error: _PARTITION_EOF; check message\.error"):
        Record.of(message)


def test_a_record_has_the_position_after_it() -> None:
    """`next_offset` and `position` are what a group commits when the record is done."""
    assert FULL.next_offset == 3
    position = FULL.position
    assert (position.topic, position.partition, position.offset) == ("t", 1, 3)


def test_a_record_that_was_not_read_has_no_position() -> None:
    """The error says what the record does not have."""
    with pytest.raises(ValueError, match="must have an offset to be committed"):
        _ = Record(topic="t", partition=0).position
    with pytest.raises(ValueError, match="must have a topic and a partition to be committed, got Record"):
        _ = Record(offset=3).position


@each(
    ("headers", "problem"),
    [
        ({"ce_id": b"1"}, "got a dict; pass list(headers.items())"),
        ({}, "got a dict; pass list(headers.items())"),
        (None, "got None; pass [] if there are none"),
        ("ab", "got a str; pass [] if there are none"),
        (5, "got an int; pass [] if there are none"),
        ([("a", b"1"), ("a",)], "got a tuple of 1 at index 1; pass it as (name, value)"),
        ([("a", b"1", b"2")], "got a tuple of 3 at index 0; pass it as (name, value)"),
        (["ab"], "got a str at index 0; pass it as (name, value)"),
        ([b"ab"], "got a bytes at index 0; pass it as (name, value)"),
        ([("a", b"1"), 5], "got an int at index 1; pass it as (name, value)"),
        ([{"key": "a", "value": b"1"}], "got a dict at index 0; pass it as (name, value)"),
        ((("a", b"1"), None), "got a NoneType at index 1; pass it as (name, value)"),
    ],
)
def test_headers_must_be_pairs(headers: Any, problem: str) -> None:
    """A record refuses headers that are not pairs when it is made, with what came and what to do."""
    with pytest.raises(TypeError) as caught:
        Record(headers=headers)
    assert str(caught.value) == f"headers must be a list of pairs of a name and a value, {problem}"


@each("headers", [[("a",)], [("a", b"1", b"2")], [5], iter([("a", b"1"), ("b",)]), 5])
def test_headers_of_a_client_must_be_pairs(headers: Any) -> None:
    """A client's record with headers that are not pairs raises the same error."""
    with pytest.raises(TypeError, match=r"^headers must be a list of pairs of a name and a value, got "):
        Record.of({"value": b"", "headers": headers})


@each("value", [b"1", None, "1", bytearray(b"1")])
def test_other_sequences_of_pairs_become_a_list(value: Any) -> None:
    """Pairs may be tuples or lists, in any iterable; their values stay as they are until they are read."""
    for headers in ((("a", value),), iter([["a", value]]), [("a", value)]):
        record = Record(headers=headers)
        assert type(record.headers) is list
        assert [tuple(pair) for pair in record.headers] == [("a", value)]
