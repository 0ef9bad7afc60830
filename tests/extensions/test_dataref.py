"""Large events: their size equals that of the protocol's encoder, and stored data is fetched unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import DataError, Event, Record, from_record, to_record
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.extensions import SIZE_LIMIT, fetch_data, size_problem, store_data
from cloudevents_kafka.protocol.records import Record as WireRecord
from cloudevents_kafka.protocol.records import encode_batch
from tests.support import strategies as make
from tests.support.cases import each


class Shelf(dict[str, bytes]):
    """A store whose references are numbers."""

    def put(self, data: bytes) -> str:
        reference = f"shelf:{len(self)}"
        self[reference] = data
        return reference


def event(data: Any = None, content_type: str | None = None, **attributes: Any) -> Event:
    return Event(id="1", source="/", type="t", datacontenttype=content_type, data=data, **attributes)


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_large_data_goes_to_the_store_and_comes_back(mode: Any) -> None:
    """The sent event is small and has no data; the fetched one is as before, with its dataref."""
    shelf = Shelf()
    large = event(b"\xff" * 100_000, "application/octet-stream")
    sent = store_data(large, shelf.put)
    assert (sent.payload, sent["dataref"]) == (None, "shelf:0")
    assert to_record(sent, mode=mode).wire_size() < 300
    received = fetch_data(from_record(to_record(sent, mode=mode)), shelf.__getitem__)
    assert received.replace(dataref=None) == large
    assert fetch_data(received, shelf.__getitem__) is received


def test_small_data_stays() -> None:
    """A small event and one without data are returned unchanged, and the store is not called."""
    shelf = Shelf()
    for small in (event(b"x"), event(), event(b"")):
        assert store_data(small, shelf.put) is small
    assert shelf == {}
    assert store_data(event(), shelf.put, limit=0).payload is None
    assert store_data(event(b""), shelf.put, limit=0)["dataref"] == "shelf:0"


def test_the_larger_encoding_counts() -> None:
    """Bytes that fit in binary mode but not as base64 are too large (S-03)."""
    shelf = Shelf()
    data = bytes(SIZE_LIMIT * 4 // 5)
    sizes = {mode: to_record(event(data), mode=mode).wire_size() for mode in ("binary", "structured")}
    assert sizes["binary"] < SIZE_LIMIT < sizes["structured"]
    assert "dataref" in store_data(event(data), shelf.put)
    assert "dataref" not in store_data(event({"a": "x" * (SIZE_LIMIT * 4 // 5)}), shelf.put)


def test_an_event_of_one_mode_only_is_measured_in_it() -> None:
    """An event that only structured mode can represent has the size of that mode."""
    shelf = Shelf()
    nested = event(bytes(60_000), "application/cloudevents+json")
    assert store_data(nested, shelf.put)["dataref"] == "shelf:0"
    assert store_data(nested, shelf.put, limit=10**6) is nested


def test_data_may_be_kept_with_its_reference() -> None:
    """Kept data is compared with the fetched data."""
    shelf = Shelf()
    both = store_data(event({"a": 1}), shelf.put, limit=0, keep=True)
    assert (both.data, both["dataref"], both.kind) == ({"a": 1}, "shelf:0", DataKind.JSON)
    assert fetch_data(both, shelf.__getitem__) is both


@pytest.mark.parametrize(
    ("data", "content_type", "stored", "same"),
    [
        (b"ab", None, b"ab", True),
        (b"ab", None, b"ab ", False),
        (b"", None, b"x", False),
        ({"a": [1, "é"], "b": 2}, None, b'{ "b":2, "a":[1,"\\u00e9"] }', True),
        (b'{"a":1}', "application/json", b'{"a": 1}', True),
        (b'{"a":1}', None, b'{"a": 1}', False),
        (b'{"a":1}', "text/plain", b'{"a": 1}', False),
        ({"a": 1}, None, b'{"a":1.0}', False),
        ({"a": 1}, None, b'{"a":true}', False),
        ({"a": 1}, None, b'{"a":', False),
        (b"{", "application/json", b"{ ", False),
        ({"a": 1}, "application/json; charset=utf-16", '{"a": 1}'.encode("utf-16"), True),
    ],
)
def test_data_and_stored_data_must_be_identical(
    data: Any, content_type: str | None, stored: bytes, *, same: bool
) -> None:
    """Data and fetched data must be equal, byte for byte or as JSON (X-04)."""
    both = event(data, content_type, dataref="x")
    if same:
        assert fetch_data(both, lambda _: stored) is both
    else:
        with pytest.raises(DataError, match="X-04"):
            fetch_data(both, lambda _: stored)


def test_errors_of_the_store_are_raised() -> None:
    """Errors of the user's functions are raised, and bytes-like objects are accepted."""
    with pytest.raises(KeyError):
        fetch_data(event(dataref="gone"), Shelf().__getitem__)
    with pytest.raises(ZeroDivisionError):
        store_data(event(b"x"), lambda _: str(1 / 0), limit=0)
    assert fetch_data(event(b"x"), lambda _: str(1 / 0).encode()).payload == b"x"


def test_deep_json_is_compared_or_refused() -> None:
    """Deeply nested data is the same or a DataError."""
    for depth in (100, 900, 990, 1000, 100_000):
        deep = make.deep(b"[", depth, b"]")
        both = event(deep, "application/json", dataref="x")
        try:
            assert fetch_data(both, lambda _, deep=deep: b" " + deep) is both
        except DataError as error:
            assert depth > 500, error  # noqa: PT017 - either is right where it is deep


@given(make.events())
def test_any_event_is_fetched_unchanged(made: Event) -> None:
    """Any event has the same data and headers after it was stored and fetched."""
    shelf = Shelf()
    sent = store_data(made.replace(dataref=None), shelf.put, limit=0)
    back = fetch_data(sent, shelf.__getitem__)
    assert back.payload == made.payload
    assert to_record(back.replace(dataref=None)).headers == to_record(made.replace(dataref=None)).headers or (
        made.kind is DataKind.JSON and back.datacontenttype == "application/json"
    )


@each("reference", [None, "", b"shelf:0"])
def test_data_is_not_stored_without_a_reference(reference: Any) -> None:
    """Without a reference the data would be lost, so there is an error."""
    for keep in (False, True):
        with pytest.raises(DataError, match=r"store must return the URI-reference of the data \(X-04.*got"):
            store_data(event(b"x"), lambda _: reference, limit=0, keep=keep)


@each("fetched", [None, "text", {"a": 1}])
@each("data", [None, b"text"])
def test_only_bytes_are_fetched(fetched: Any, data: Any) -> None:
    """An object other than bytes is refused: None is not data, and the encoding of a text is unknown."""
    with pytest.raises(DataError, match=r"fetch must return the bytes at dataref 'x'.*X-04.*got"):
        fetch_data(event(data, dataref="x"), lambda _: fetched)


lengths = st.sampled_from([0, 1, 63, 64, 8191, 8192, 2**20 - 1, 2**20])


@given(st.one_of(make.hostile_records(), st.builds(Record, value=lengths.map(bytes), key=lengths.map(bytes))))
def test_the_size_is_that_of_a_batch_of_one(record: Record) -> None:
    """The size has key, value, headers with their lengths, and the frame."""
    try:
        [name.encode() for name, _ in record.headers]
    except UnicodeEncodeError:
        assert record.wire_size() > 0  # no wire can carry it
        return
    batch = encode_batch([WireRecord(key=record.key, value=record.value, headers=record.headers)])
    assert record.wire_size() == len(batch)


def test_one_byte_more_than_the_limit_is_too_large() -> None:
    """64 KiB with headers have no problem; one byte more has one with both numbers."""
    made = Event(id="1", source="/", type="t", datacontenttype="application/octet-stream")
    empty = to_record(made.replace(data=b"")).wire_size()
    fits = next(n for n in range(SIZE_LIMIT - empty, 0, -1) if _size(made, n) <= SIZE_LIMIT)
    assert _size(made, fits) == SIZE_LIMIT
    assert size_problem(to_record(made.replace(data=bytes(fits)))) is None
    problem = size_problem(to_record(made.replace(data=bytes(fits + 1))))
    assert problem is not None
    assert "65536 bytes" in str(problem)
    assert "got 65537 bytes (S-02" in str(problem)
    assert size_problem(to_record(made), limit=10) is not None


def _size(made: Event, length: int) -> int:
    return to_record(made.replace(data=bytes(length))).wire_size()
