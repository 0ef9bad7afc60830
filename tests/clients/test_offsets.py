"""The offsets that `EventConsumer.run` commits."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Decoded, Event, Record
from cloudevents_kafka.clients._offsets import MARK, Progress


def advance(progress: Progress) -> list[TopicPartition]:
    """Return the new offsets, and note them as committed."""
    places = progress.done()
    assert places == progress.done()
    progress.commit(places)
    return places


@given(st.data())
def test_offsets_are_before_each_record_that_is_not_done(data: st.DataObject) -> None:
    """In any order of ends, the offset to commit is the first that is not done, and never goes back."""
    size = data.draw(st.integers(1, 12))
    items = [
        Decoded(Event(id="1", source="/", type="t"), Record(topic="t", partition=0, offset=5 + n))
        for n in range(size)
    ]
    progress, done, last, begun = Progress(), set(), 5, 0
    order = data.draw(st.permutations(range(size)))
    for number in order:
        while begun <= number:
            progress.begin(items[begun])
            begun += 1
        progress.end(items[number])
        done.add(number)
        expected = 5 + next((n for n in range(begun) if n not in done), begun)
        places = advance(progress)
        assert [place.offset for place in places] == ([expected] if expected > last else [])
        last = expected
        assert len(progress) == begun - len(done)


def test_a_partition_that_moves_back_begins_again() -> None:
    """What ends then and was begun before is ignored; partitions that are revoked are forgotten."""
    event = Event(id="1", source="/", type="t")
    before, again = (Decoded(event, Record(topic="t", partition=0, offset=5)) for _ in range(2))
    progress = Progress()
    progress.begin(before)
    progress.begin(again)
    progress.end(before)
    assert advance(progress) == []
    progress.end(again)
    assert [place.offset for place in advance(progress)] == [6]
    assert advance(progress) == []
    assert [place.offset for place in progress.done(again=True)] == [6]
    progress.keep([])
    assert progress.done(again=True) == []


def in_work(*offsets: int) -> Progress:
    progress = Progress()
    for offset in offsets:
        progress.begin(
            Decoded(Event(id="1", source="/", type="t"), Record(topic="t", partition=0, offset=offset))
        )
    return progress


@pytest.mark.parametrize(
    ("at_assignment", "looks", "found"),
    [
        (-1001, [5, 6], 6),  # of the first unfinished record, not before it
        (-1001, [18], 18),
        (18, [18, 18, 17], 17),  # of an earlier process, before a seek back
        (18, [5, 18], 18),  # it came again
        (None, [18, 18, 19], 19),  # what the group had then is not known
    ],
)
def test_an_offset_without_a_mark_after_a_record_in_work_is_found(
    at_assignment: int | None, looks: list[int], found: int
) -> None:
    """It is found at the first look that shows another than the look before, also if it stays."""
    progress = in_work(5, 6, 7)
    if at_assignment is not None:
        progress.note([TopicPartition("t", 0, at_assignment)])
    seen = [progress.find_foreign([TopicPartition("t", 0, at), TopicPartition("u", 0, 9)]) for at in looks]
    assert seen[:-1] == [None] * (len(looks) - 1)
    assert seen[-1] == TopicPartition("t", 0, found)


def test_marked_offsets_are_of_a_run() -> None:
    """Another member may be further; a mark that is gone later shows a commit of somebody else."""
    progress = in_work(5, 6, 7)
    assert progress.find_foreign([TopicPartition("t", 0, 18, MARK)]) is None
    assert progress.find_foreign([TopicPartition("t", 0, 18)]) is not None
    assert {place.metadata for place in progress.left() + progress.done(again=True)} == {MARK}


def test_offsets_of_the_group_are_known_until_the_partition_is_revoked() -> None:
    """A seek back keeps them, and those of a partition that is assigned again are asked for."""
    progress = in_work(5)
    progress.note([TopicPartition("t", 0, 9)])
    again = Decoded(Event(id="1", source="/", type="t"), Record(topic="t", partition=0, offset=3))
    progress.begin(again)
    assert progress.find_foreign([TopicPartition("t", 0, 9)]) is None
    progress.keep([TopicPartition("t", 0)])
    assert progress.is_known(again)
    progress.keep([])
    assert not progress.is_known(again)


def test_offsets_before_those_that_were_committed_are_committed_after_a_seek_back() -> None:
    """What is read again is committed as it is done, so that the group is where the program is."""
    event = Event(id="1", source="/", type="t")
    progress = Progress()
    for offset in (5, 6, 7):
        item = Decoded(event, Record(topic="t", partition=0, offset=offset))
        progress.begin(item)
        progress.end(item)
    assert [place.offset for place in advance(progress)] == [8]
    again = Decoded(event, Record(topic="t", partition=0, offset=5))
    progress.begin(again)
    progress.end(again)
    assert [place.offset for place in advance(progress)] == [6]
