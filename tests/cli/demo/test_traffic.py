"""The traffic of the demo: events of the shop or of a file, and invalid records."""

from __future__ import annotations

from cloudevents_kafka import Decoded, Undecodable, decode, to_record
from cloudevents_kafka.cli.demo.traffic import (
    ENCODINGS,
    INVALID_RECORDS,
    InvalidLine,
    InvalidRecord,
    file_traffic,
    shop_traffic,
)
from tests.support.cases import each

LINES = [
    b'{"specversion": "1.0", "id": "1", "source": "/a", "type": "t", "data": [1]}',
    b"",
    b'{"specversion": "1.0", "id": "2", "source": "/a"}',
    b"not json",
    b'{"specversion": "1.0", "id": "3", "source": "/a", "type": "t", "data": [1]}',
    b'{"specversion": "1.0", "id": "4", "source": "/a", "type": "t", "data": [1]}',
]


def test_same_seed_same_traffic() -> None:
    """A seed yields the same traffic each time, byte for byte; another seed yields other traffic."""
    assert list(shop_traffic(1, 300)) == list(shop_traffic(1, 300))
    assert list(shop_traffic(1, 300)) != list(shop_traffic(2, 300))


@each("count", [1, 5, 17, 300, 1000])
def test_traffic_is_complete(count: int) -> None:
    """There are ``count`` events, every invalid record, and with enough events every encoding."""
    items = list(shop_traffic(3, count))
    events = [item for item in items if not isinstance(item, InvalidRecord)]
    names = {item.name for item in items if isinstance(item, InvalidRecord)}
    assert len(events) == count
    assert names == {record.name for record in INVALID_RECORDS}
    if count >= 300:
        assert {encoding for _, encoding in events} == set(ENCODINGS)
        assert any(event.payload is None for event, _ in events)
        assert any("partitionkey" in event for event, _ in events)
        assert any("partitionkey" not in event for event, _ in events)
    times = [event.time for event, _ in events]
    assert times == sorted(times)  # type: ignore[type-var]


@each("kind", INVALID_RECORDS, ids=lambda kind: kind.name)
def test_verdicts(kind: InvalidRecord) -> None:
    """Each invalid record has its verdict."""
    item = decode(kind.record)
    assert isinstance(item, Undecodable)
    assert item.error.verdict == kind.verdict


def test_file_of_events() -> None:
    """The events of a file get the encodings in turn; invalid lines are reported with their number."""
    items = list(file_traffic("f", LINES))
    assert [str(item) for item in items if isinstance(item, InvalidLine)] == [
        "f:3: broken CloudEvent: type: is required (R-01, core: REQUIRED Attributes)",
        str(items[2]),
    ]
    assert str(items[2]).startswith("f:4: broken CloudEvent: ")
    events = [item for item in items if not isinstance(item, InvalidLine | InvalidRecord)]
    assert [event.id for event, _ in events] == ["1", "3", "4"]
    assert [str(encoding) for _, encoding in events][:2] == ["binary", "structured json"]
    for event, encoding in events:
        assert isinstance(decode(to_record(event, mode=encoding.mode, format=encoding.format)), Decoded)


def test_round_trip() -> None:
    """Each event of the shop is decoded from its encoding with the same attributes and data."""
    for item in shop_traffic(5, 200):
        if not isinstance(item, InvalidRecord):
            event, encoding = item
            decoded = decode(to_record(event, mode=encoding.mode, format=encoding.format))
            assert isinstance(decoded, Decoded)
            assert {n: decoded.event.text(n) for n in decoded.event} == {n: event.text(n) for n in event}
            assert decoded.event.payload == event.payload
