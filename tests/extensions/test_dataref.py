"""Claim checks: data goes to a store and comes back the same, or there is an error."""

from __future__ import annotations

from typing import Any

import pytest
import strategies as make
from hypothesis import given

from cloudevents_kafka import DataError, Event, from_record, to_record
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.extensions import SIZE_LIMIT, fetch_data, store_data, wire_size


class Shelf(dict[str, bytes]):
    """A store that counts."""

    def put(self, data: bytes) -> str:
        reference = f"shelf:{len(self)}"
        self[reference] = data
        return reference


def event(data: Any = None, content_type: str | None = None, **attributes: Any) -> Event:
    return Event(id="1", source="/", type="t", datacontenttype=content_type, data=data, **attributes)


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_large_data_goes_to_the_store_and_comes_back(mode: Any) -> None:
    """In between there is no data, and the event is small; in the end it is as before, and says whence."""
    shelf = Shelf()
    large = event(b"\xff" * 100_000, "application/octet-stream")
    sent = store_data(large, shelf.put)
    assert (sent.payload, sent["dataref"]) == (None, "shelf:0")
    assert wire_size(to_record(sent, mode=mode)) < 300
    received = fetch_data(from_record(to_record(sent, mode=mode)), shelf.__getitem__)
    assert received.replace(dataref=None) == large
    assert fetch_data(received, shelf.__getitem__) is received


def test_small_data_stays() -> None:
    """The very event, and the store is not asked; so for one without data."""
    shelf = Shelf()
    for small in (event(b"x"), event(), event(b"")):
        assert store_data(small, shelf.put) is small
    assert shelf == {}
    assert store_data(event(), shelf.put, limit=0).payload is None
    assert store_data(event(b""), shelf.put, limit=0)["dataref"] == "shelf:0"


def test_the_larger_encoding_counts() -> None:
    """Bytes that fit in binary mode and not as base64 are too large (S-03)."""
    shelf = Shelf()
    data = bytes(SIZE_LIMIT * 4 // 5)
    assert (
        wire_size(to_record(event(data))) < SIZE_LIMIT < wire_size(to_record(event(data), mode="structured"))
    )
    assert "dataref" in store_data(event(data), shelf.put)
    assert "dataref" not in store_data(event({"a": "x" * (SIZE_LIMIT * 4 // 5)}), shelf.put)


def test_an_event_of_one_mode_only_is_measured_in_it() -> None:
    """Binary mode cannot carry this content type; structured mode can."""
    shelf = Shelf()
    nested = event(bytes(60_000), "application/cloudevents+json")
    assert store_data(nested, shelf.put)["dataref"] == "shelf:0"
    assert store_data(nested, shelf.put, limit=10**6) is nested


def test_data_may_be_kept_beside_its_reference() -> None:
    """Then it is compared when it is fetched."""
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
def test_data_and_what_is_referred_to_must_be_the_same(
    data: Any, content_type: str | None, stored: bytes, *, same: bool
) -> None:
    """Byte for byte, or as JSON; else nobody knows which is right, and there is an error."""
    both = event(data, content_type, dataref="x")
    if same:
        assert fetch_data(both, lambda _: stored) is both
    else:
        with pytest.raises(DataError, match="X-04"):
            fetch_data(both, lambda _: stored)


def test_what_the_store_raises_is_raised() -> None:
    """It is the user's, and the event stays as it was."""
    with pytest.raises(KeyError):
        fetch_data(event(dataref="gone"), Shelf().__getitem__)
    with pytest.raises(ZeroDivisionError):
        store_data(event(b"x"), lambda _: str(1 / 0), limit=0)
    assert fetch_data(event(b"x"), lambda _: str(1 / 0).encode()).payload == b"x"


def test_deep_json_is_no_trouble() -> None:
    """However deep strangers nest, there is an answer."""
    for depth in (100, 900, 990, 1000, 100_000):
        deep = make.deep(b"[", depth, b"]")
        both = event(deep, "application/json", dataref="x")
        try:
            assert fetch_data(both, lambda _, deep=deep: b" " + deep) is both
        except DataError as error:
            assert depth > 500, error  # noqa: PT017 - either is right where it is deep


@given(make.events())
def test_any_event_comes_back(made: Event) -> None:
    """With what its data is, whichever way it is written afterwards."""
    shelf = Shelf()
    sent = store_data(made.replace(dataref=None), shelf.put, limit=0)
    back = fetch_data(sent, shelf.__getitem__)
    assert back.payload == made.payload
    assert to_record(back.replace(dataref=None)).headers == to_record(made.replace(dataref=None)).headers or (
        made.kind is DataKind.JSON and back.datacontenttype == "application/json"
    )


@pytest.mark.parametrize("reference", [None, "", b"shelf:0"])
def test_data_does_not_go_without_a_reference(reference: Any) -> None:
    """A store that tells no place would take the data with it, so there is an error instead."""
    for keep in (False, True):
        with pytest.raises(DataError, match=r"store must return the URI-reference of the data \(X-04.*got"):
            store_data(event(b"x"), lambda _: reference, limit=0, keep=keep)


@pytest.mark.parametrize("fetched", [None, "text", {"a": 1}])
@pytest.mark.parametrize("data", [None, b"text"])
def test_only_bytes_are_fetched(fetched: Any, data: Any) -> None:
    """Nothing that was found is no data, and a text has bytes that only its writer knows."""
    with pytest.raises(DataError, match=r"fetch must return the bytes at dataref 'x'.*X-04.*got"):
        fetch_data(event(data, dataref="x"), lambda _: fetched)
