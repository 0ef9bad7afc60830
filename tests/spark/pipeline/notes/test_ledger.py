"""The ledger and its ranges, by a model: the set of offsets that each pipeline has landed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise, product

import msgspec
import pytest

from cloudevents_kafka.spark.pipeline import WrongTable
from cloudevents_kafka.spark.pipeline.notes import (
    REPLAYS,
    Ledger,
    LedgerEntry,
    OffsetRange,
    format_ranges,
    iter_partitions,
)

IDS = ("", "x", "y")
HISTORIES = 300
END = 20


def histories() -> Iterator[tuple[random.Random, list[LedgerEntry]]]:
    """Yield what pipelines may have landed, each offset once, in any order; some ranges are empty."""
    for seed in range(HISTORIES):
        chance, entries = random.Random(seed), []
        for topic, partition in product("tu", "01"):
            at = chance.randrange(3)
            while at < END:
                offsets = OffsetRange(at, at + chance.randrange(5))
                place = (topic, chance.choice(IDS), chance.choice("ab"), partition)
                entries.append(LedgerEntry(*place, offsets))
                at = offsets.end + chance.randrange(3)
        chance.shuffle(entries)
        yield chance, entries


def offsets_of(entries: Iterable[LedgerEntry]) -> set[int]:
    return {offset for entry in entries for offset in range(entry.offsets.start, entry.offsets.end)}


def ranges_of(offsets: set[int]) -> list[OffsetRange]:
    """Return the ranges of a set of offsets, in order."""
    runs = groupby(enumerate(sorted(offsets)), lambda pair: pair[1] - pair[0])
    found = [[offset for _, offset in run] for _, run in runs]
    return [OffsetRange(run[0], run[-1] + 1) for run in found]


def matching(entries: list[LedgerEntry], topic: str, topic_id: str, partition: str) -> list[LedgerEntry]:
    """Return the entries of a partition; an id that is not known may be any."""
    chosen = [each for each in entries if (each.topic, each.partition) == (topic, partition)]
    return [each for each in chosen if each.topic_id == topic_id or "" in {each.topic_id, topic_id}]


def test_ranges_that_touch_or_overlap_are_one() -> None:
    """The ranges of an owner are in order and apart; an empty one that touches no other stays."""
    for seed in range(HISTORIES):
        chance, entries = random.Random(seed), []
        for _ in range(12):
            start = chance.randrange(END)
            offsets = OffsetRange(start, start + chance.choice([0, 0, 1, 2, 5]))
            place = ("t", chance.choice(IDS), chance.choice("ab"), chance.choice("01"))
            entries.append(LedgerEntry(*place, offsets))
        ledger = Ledger.of_entries(7, entries)
        assert ledger.generation == 7
        found = list(ledger.entries())
        assert {each[:4] for each in found} == {each[:4] for each in entries}
        for owner in {each[:4] for each in entries}:
            put = [each for each in entries if each[:4] == owner]
            ranges = [each.offsets for each in found if each[:4] == owner]
            assert all(one.end < other.start for one, other in pairwise(ranges))
            assert [each for each in ranges if each.start < each.end] == ranges_of(offsets_of(put))
            touched = {
                offset for each in ranges_of(offsets_of(put)) for offset in range(each.start, each.end + 1)
            }
            empty = {each.offsets.start for each in put if each.offsets.start == each.offsets.end} - touched
            assert {each.start for each in ranges if each.start == each.end} == empty
        assert ledger.begins() == [each for each in found if each.offsets.start == each.offsets.end]


def test_a_commit_adds_its_ranges() -> None:
    """A commit is one generation later and has its offsets, too; what is merged does not count as one."""
    for chance, entries in histories():
        cut = chance.randrange(len(entries))
        before = Ledger.of_entries(4, entries[:cut])
        assert before.merge(entries[cut:]) == Ledger.of_entries(4, entries)
        ranges = {"t": {"0": OffsetRange(3, 9), "1": OffsetRange(0, 1)}, "v": {"0": OffsetRange(1, 2)}}
        added = [
            LedgerEntry("t", "x", "a", "0", OffsetRange(3, 9)),
            LedgerEntry("t", "x", "a", "1", OffsetRange(0, 1)),
            LedgerEntry("v", "", "a", "0", OffsetRange(1, 2)),
        ]
        after = before.add("a", {"t": "x"}, ranges)
        assert after == Ledger.of_entries(5, [*entries[:cut], *added])


def test_the_last_range_of_a_partition() -> None:
    """It has the offsets of all pipelines, of topics with the id or without one."""
    for _, entries in histories():
        ledger = Ledger.of_entries(1, entries)
        for topic_id in IDS:
            expected: dict[str, dict[str, OffsetRange]] = {"t": {}, "v": {}}
            for partition in "01":
                if chosen := matching(entries, "t", topic_id, partition):
                    start = end = max(each.offsets.end for each in chosen)
                    while start - 1 in offsets_of(chosen):
                        start -= 1
                    expected["t"][partition] = OffsetRange(start, end)
            assert ledger.landed({"t": topic_id, "v": topic_id}) == expected


def test_gaps_are_what_no_pipeline_has_landed() -> None:
    """They are in order, and together with what has landed they are the whole range."""
    for chance, entries in histories():
        ledger = Ledger.of_entries(1, entries)
        for topic_id, partition in product(IDS, "012"):
            start = chance.randrange(END)
            asked = OffsetRange(start, start + chance.randrange(END))
            left = set(range(asked.start, asked.end)) - offsets_of(
                matching(entries, "t", topic_id, partition)
            )
            assert ledger.gaps("t", topic_id, partition, asked) == ranges_of(left)


def refusal_of(chosen: list[LedgerEntry], owner: str | None, planned: OffsetRange) -> tuple[str, int] | int:
    """Return why planned offsets must not land and where, or the first that has not landed."""
    owners = {offset: each.pipeline for each in chosen for offset in offsets_of([each])}
    start = planned.start
    for offset in range(planned.start, planned.end):
        if offset in owners and owner not in {None, owners[offset]}:
            return f"which pipeline {owners[offset]} has landed", offset
        if offset in owners and offset > start:
            return "in the middle of this batch", offset
        if offset in owners:
            start = offset + 1
    return start


def test_what_is_left_of_a_plan() -> None:
    """It begins after what has landed, which is of the pipeline itself and at the beginning of the plan."""
    seen = []
    for chance, entries in histories():
        ledger = Ledger.of_entries(1, entries)
        for topic_id, owner in product(IDS, (None, "a", "b")):
            start = chance.randrange(END)
            planned = OffsetRange(start, start + chance.randrange(8))
            ids = {"t": topic_id} if topic_id else {}
            expected = refusal_of(matching(entries, "t", topic_id, "0"), owner, planned)
            seen.append(type(expected))
            if isinstance(expected, int):
                left = {"t": {"0": OffsetRange(expected, planned.end)}} if expected < planned.end else {}
                assert ledger.left(ids, {"t": {"0": planned}, "v": {"0": planned}}, owner) == {
                    **left,
                    **({"v": {"0": planned}} if planned.start < planned.end else {}),
                }
                continue
            why, offset = expected
            with pytest.raises(WrongTable, match=why) as caught:
                ledger.left(ids, {"t": {"0": planned}}, owner)
            assert f"t[0]@{offset} to " in str(caught.value)
    assert min(seen.count(int), seen.count(tuple)) > HISTORIES


def test_replays_are_counted_from_1() -> None:
    """The last replay is the number of replays that have landed; offsets of topics do not count."""
    ledger = Ledger().add("a", {}, {"t": {"0": OffsetRange(0, 99)}})
    assert Ledger().replays == ledger.replays == 0
    for number in (1, 2, 5):
        ledger = ledger.add_replay(number)
        assert ledger.replays == number
        assert [*ledger.entries()][1:] == [LedgerEntry(REPLAYS, "", "replay", "0", OffsetRange(0, number))]
    assert ledger.generation == 4


def test_ranges_as_text_and_as_json() -> None:
    """The end of a range is the offset after its last; notes have two numbers for a range."""
    ranges = {"orders": {"0": OffsetRange(17, 42), "1": OffsetRange(3, 4)}, "t": {"0": OffsetRange(0, 2)}}
    assert format_ranges(ranges) == "orders[0]@17 to 41, orders[1]@3 to 3, t[0]@0 to 1"
    assert [*iter_partitions(ranges)][1] == ("orders", "1", OffsetRange(3, 4))
    assert msgspec.json.encode(ranges["t"]) == b'{"0":[0,2]}'


@pytest.mark.parametrize("value", [OffsetRange(1, 2), Ledger()])
def test_notes_do_not_change(value: OffsetRange | Ledger) -> None:
    """A range or a ledger that one part of a pipeline has is not changed by another."""
    with pytest.raises(AttributeError, match="immutable"):
        setattr(value, type(value).__struct_fields__[0], 9)
