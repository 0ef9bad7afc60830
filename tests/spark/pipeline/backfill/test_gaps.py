"""Gaps of a range, and the batches that they are cut into."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline import PipelineFailed, PipelineOptions
from cloudevents_kafka.spark.pipeline.notes import REPLAYS, GapCounts, Ledger, OffsetRange
from cloudevents_kafka.spark.pipeline.options._backfill_range import BackfillRange
from cloudevents_kafka.spark.pipeline.runs._gaps import Asked, Gap, next_batch
from tests.support.cases import each

EXAMPLES = int(os.environ.get("HISTORIES", "500"))
AT = {"earliest": {"0": 3, "1": 0}, "latest": {"0": 99, "1": 50}}


def ledger_of(offsets: set[int], topic_id: str = "t", pipeline: str = "p") -> Ledger:
    ledger = Ledger()
    for offset in offsets:
        ledger = ledger.add(
            pipeline, {"orders": topic_id}, {"orders": {"0": OffsetRange(offset, offset + 1)}}
        )
    return ledger


def some(rng: random.Random) -> set[int]:
    """Return the offsets of some ranges."""
    starts = [rng.randrange(30) for _ in range(rng.randrange(4))]
    return {offset for start in starts for offset in range(start, start + rng.randrange(1, 8))}


def offsets_of(gaps: list[Gap]) -> list[int]:
    return [number for gap in gaps for number in range(gap.offsets.start, gap.offsets.end)]


def test_gaps_are_what_is_asked_has_not_landed_and_is_there() -> None:
    """In random ledgers gaps have exactly these offsets, once, and the counts are those of a set."""
    for seed in range(EXAMPLES):
        rng = random.Random(seed)
        landed, staged, other = some(rng), some(rng), some(rng)
        start, first, end = (rng.randrange(40) for _ in range(3))
        asked = OffsetRange(start, start + rng.randrange(40))
        events = ledger_of(landed).merge(ledger_of(other, "another topic").entries()).add_replay(4)
        ledgers = [events, ledger_of(staged)]
        gaps, counts = Asked("orders", "0", asked, first, end).find({"orders": "t"}, ledgers)
        wanted = set(range(asked.start, asked.end))
        before_end = {number for number in wanted if number < end}
        free = before_end - landed
        expected = {number for number in free if number >= first}
        assert offsets_of(gaps) == sorted(expected), seed
        expired = len(free - expected)
        assert counts == GapCounts(
            len(expected), len(before_end & landed), expired, len(wanted - before_end)
        ), seed
        starts = {entry.offsets.start for entry in ledgers[1].entries()}
        assert not starts & {n for gap in gaps for n in range(gap.offsets.start + 1, gap.offsets.end)}, seed
        most, batches = rng.choice([None, 1, 5, 9]), 0
        read: list[int] = []
        while gaps:
            batch, gaps = next_batch(gaps, most)
            (range_,) = batch["orders"].values()
            assert most is None or range_.end - range_.start <= most
            read += range(range_.start, range_.end)
            batches += 1
        assert read == sorted(expected), seed


def test_a_batch_has_one_range_of_each_partition() -> None:
    """The room of a batch is shared by partitions, in order."""
    gaps = [
        Gap("a", "0", OffsetRange(0, 4)),
        Gap("a", "0", OffsetRange(6, 9)),
        Gap("b", "1", OffsetRange(1, 9)),
    ]
    batch, left = next_batch(gaps, 6)
    assert batch == {"a": {"0": OffsetRange(0, 4)}, "b": {"1": OffsetRange(1, 3)}}
    assert left == [Gap("a", "0", OffsetRange(6, 9)), Gap("b", "1", OffsetRange(3, 9))]


@each(
    ("text", "expected"),
    [
        ("earliest..latest", {"0": (3, 99), "1": (0, 50)}),
        ("7..40", {"0": (7, 40), "1": (7, 40)}),
        ("earliest..@1970-01-01T00:00:01.0005Z", {"0": (3, 1001), "1": (0, 1001)}),
        ("@1969-12-31T23:59:59.999Z..40", {"0": (0, 40), "1": (0, 40)}),  # -1 would mean latest
        ("@1970-01-02..@86400005", {"0": (86_400_000, 86_400_005), "1": (86_400_000, 86_400_005)}),
        ("-9999h..latest", {"0": (3_600_000, 99), "1": (3_600_000, 50)}),
        ('{"orders": {"1": [2, 5]}, "a..b": {}}', {"1": (2, 5)}),
    ],
)
def test_ranges(text: str, expected: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """A range is by offsets, by times, which are rounded up to milliseconds, or of named partitions."""
    monkeypatch.setattr("time.time", lambda: 10_000 * 3600.0)

    def at(position: object) -> dict[str, int]:
        return (
            AT[position] if isinstance(position, str) else {"0": int(str(position)), "1": int(str(position))}
        )

    found = BackfillRange.of(text).find("orders", ["0", "1"], at)
    assert found == {number: OffsetRange(*range_) for number, range_ in expected.items()}


@each(
    "text",
    [
        "",
        "5",
        "5..x",
        "@1795262400..latest",
        "-10..latest",
        "stored..latest",
        "@2026-11-31..latest",
        "..5",
        "-1..5",
        "{",
        '{"t": {"0": [5, 2]}}',
        '{"t": {"0": [-1, 2]}}',
        '{"t": 1}',
        "٣..4",
    ],
)
def test_what_is_no_range(text: str) -> None:
    """Another text is refused with the grammar, before anything starts."""
    with pytest.raises(ValueError, match=r"backfill must be FROM\.\.TO"):
        PipelineOptions(bootstrap_servers="b:1", topics=("t",), out="o", backfill=text)


@each("text", ["50..10", "latest..earliest", "5..earliest", "@2026-11-26..@2026-11-25", "-1h..-2h"])
def test_an_end_before_the_start_is_refused(text: str) -> None:
    """A range whose end is before its start in each partition is refused, before anything starts."""
    with pytest.raises(ValueError, match=r"backfill must be FROM\.\.TO, and FROM must not be after TO"):
        PipelineOptions(bootstrap_servers="b:1", topics=("t",), out="o", backfill=text)


def test_named_partitions_must_exist() -> None:
    """A topic that is not read, or a partition that it does not have, is refused."""
    for text in ('{"orders": {"2": [0, 1]}}', '{"other": {"0": [0, 1]}}', '{"orders": {"x": [0, 1]}}'):
        with pytest.raises(PipelineFailed, match="backfill must have topics that are read"):
            BackfillRange.of(text).check({"orders": 2})


def test_the_count_of_replays_is_one_range() -> None:
    """A ledger counts replays without a range for each, next to the offsets."""
    ledger = ledger_of({1, 2}).add_replay(1).add_replay(2).add_replay(3)
    assert ledger.replays == 3
    assert [entry.offsets for entry in ledger.entries() if entry.topic == REPLAYS] == [OffsetRange(0, 3)]
    assert ledger.gaps("orders", "t", "0", OffsetRange(0, 5)) == [OffsetRange(0, 1), OffsetRange(3, 5)]


def test_a_begin_stays_next_to_what_has_landed() -> None:
    """Where a pipeline begins is not forgotten when a backfill lands offsets before it, until they join."""
    begin = Ledger().add("p", {"orders": "t"}, {"orders": {"0": OffsetRange(6, 6)}})
    ids = {"orders": "t"}
    partly = begin.add("p", ids, {"orders": {"0": OffsetRange(0, 2)}})
    assert partly.landed(ids) == {"orders": {"0": OffsetRange(6, 6)}}
    assert partly.gaps("orders", "t", "0", OffsetRange(0, 6)) == [OffsetRange(2, 6)]
    whole = partly.add("p", ids, {"orders": {"0": OffsetRange(2, 6)}})
    assert whole.landed(ids) == {"orders": {"0": OffsetRange(0, 6)}}


@each("options", [{"group": "g"}, {"thresholds": ("lag>5m:end",)}, {"to": "delta", "upsert": ("key",)}])
def test_what_is_for_the_pipeline_only(options: Any) -> None:
    """A group and thresholds are about its own progress; what compares rows would be ended by its commits."""
    with pytest.raises(
        ValueError, match=r"(group and thresholds|deduplicate and upsert) must not be set with"
    ):
        PipelineOptions(bootstrap_servers="b:1", topics=("t",), out="o", backfill="0..1", **options)
