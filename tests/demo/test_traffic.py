"""The demo's traffic and sums, without Kafka and Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloudevents_kafka import Decoded, Undecodable, decode, to_record
from cloudevents_kafka.demo.checks import checks, landed_rows
from cloudevents_kafka.demo.clients import ReadBack, Traffic
from cloudevents_kafka.demo.invalid_records import STRAYS, Stray
from cloudevents_kafka.demo.traffic import WAYS, BadLine, of_file, of_shop
from cloudevents_kafka.spark.pipeline import BatchCounts, PartitionCounts, Summary

LINES = [
    b'{"specversion": "1.0", "id": "1", "source": "/a", "type": "t", "data": [1]}',
    b"",
    b'{"specversion": "1.0", "id": "2", "source": "/a"}',
    b"not json",
    b'{"specversion": "1.0", "id": "3", "source": "/a", "type": "t", "data": [1]}',
    b'{"specversion": "1.0", "id": "4", "source": "/a", "type": "t", "data": [1]}',
]


def test_same_seed_same_traffic() -> None:
    """A seed stands for one traffic, to the byte; another seed for another."""
    assert list(of_shop(1, 300)) == list(of_shop(1, 300))
    assert list(of_shop(1, 300)) != list(of_shop(2, 300))


@pytest.mark.parametrize("count", [1, 5, 17, 300, 1000])
def test_traffic_has_everything(count: int) -> None:
    """There are as many events as asked for, each stray at least once, and with enough events all ways."""
    items = list(of_shop(3, count))
    events = [item for item in items if not isinstance(item, Stray)]
    assert len(events) == count
    assert {stray.name for stray in STRAYS} == {item.name for item in items if isinstance(item, Stray)}
    if count >= 300:
        assert {way for _, way in events} == set(WAYS)
        assert any(event.payload is None for event, _ in events)
        assert any("partitionkey" in event for event, _ in events)
        assert any("partitionkey" not in event for event, _ in events)
    times = [event.time for event, _ in events]
    assert times == sorted(times)  # type: ignore[type-var]


@pytest.mark.parametrize("stray", STRAYS, ids=lambda stray: stray.name)
def test_strays_are_none(stray: Stray) -> None:
    """Each stray gets the verdict that is foreseen for it."""
    found = decode(stray.make(Random(1)))
    assert isinstance(found, Undecodable)
    assert found.error.verdict == stray.verdict


def test_file_of_events() -> None:
    """Events of a file go all ways in turn, the next where one cannot hold them; bad lines are numbered."""
    items = list(of_file("f", LINES))
    assert [str(item) for item in items if isinstance(item, BadLine)] == [
        "f:3: broken CloudEvent: type: is required (R-01, core: REQUIRED Attributes)",
        str(items[2]),
    ]
    assert str(items[2]).startswith("f:4: broken CloudEvent: ")
    events = [item for item in items if not isinstance(item, BadLine | Stray)]
    assert [event.id for event, _ in events] == ["1", "3", "4"]
    assert [str(way) for _, way in events][:2] == ["binary", "structured json"]
    for event, way in events:
        assert decode(to_record(event, mode=way.mode, format=way.format))


def outcome(folder: Path) -> tuple[Traffic, ReadBack, Summary]:
    """Make sums that add up, and a table that has them."""
    sent = Traffic(events=Counter({("t", "binary"): 2}), others=Counter({("batch", "a batch"): 1}))
    back = ReadBack(
        events=Counter({("t", "binary"): 2}),
        others=Counter({("batch", "why"): 1}),
        payloads={(0, 0): ("1", b"x"), (0, 1): ("2", None)},
    )
    counts = BatchCounts(
        read=3,
        events=2,
        quarantined=1,
        by_type={"t": {"binary": 2}},
        by_reason={"batch": {"why": 1}},
        offsets={"shop": {"0": PartitionCounts(0, 2, 3)}},
    )
    (folder / "events").mkdir()
    rows = {"partition": [0, 0], "offset": [0, 1], "id": ["1", "2"], "data": [b"x", None]}
    pq.write_table(pa.table(rows), folder / "events" / "a.parquet")
    summary = Summary(
        topics=("shop",),
        events_table="",
        quarantine_table="",
        checkpoint="",
        batches=1,
        recovered=None,
        complete=True,
        seconds=1.0,
        counts=counts,
        total=counts,
    )
    return sent, back, summary


def test_good_sums(tmp_path: Path) -> None:
    """Sums that add up are told so."""
    assert [check for check in checks(*outcome(tmp_path), tmp_path) if not check.good] == []


def test_bad_sums(tmp_path: Path) -> None:
    """A lost event, a changed byte and a row that is there twice are found, and named."""
    sent, back, summary = outcome(tmp_path)
    sent.events["t", "structured avro"] += 1
    back.payloads[0, 1] = ("2", b"")
    failed = [str(check) for check in checks(sent, back, summary, tmp_path) if not check.good]
    assert len(failed) == 4
    assert "('t', 'structured avro'): 1 sent, none found" in failed[1]
    assert "(0, 1): ('2', b'') sent, ('2', None) found" in failed[3]
    again = tmp_path / "events" / "b.parquet"
    again.write_bytes((tmp_path / "events" / "a.parquet").read_bytes())
    assert len(landed_rows(tmp_path / "events")) == 4


def test_an_event_is_what_it_was() -> None:
    """Each event of the shop comes back, attributes and data, from the way that it goes."""
    for item in of_shop(5, 200):
        if not isinstance(item, Stray):
            event, way = item
            found = decode(to_record(event, mode=way.mode, format=way.format))
            assert isinstance(found, Decoded)
            assert {name: found.event.text(name) for name in found.event} == {n: event.text(n) for n in event}
            assert found.event.payload == event.payload
