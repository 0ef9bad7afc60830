"""The offsets that `EventConsumer.run` commits."""

from __future__ import annotations

from confluent_kafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Decoded, Event, Record
from cloudevents_kafka._progress import Progress


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


def test_offsets_that_others_commit_are_found_when_they_change() -> None:
    """One that stays may be from before a seek; one that changes after records in work is another's."""
    event = Event(id="1", source="/", type="t")
    items = [Decoded(event, Record(topic="t", partition=0, offset=5 + n)) for n in range(3)]
    progress = Progress()
    for item in items:
        progress.begin(item)

    def look(offset: int) -> bool:
        return progress.find_foreign([TopicPartition("t", 0, offset), TopicPartition("u", 0, 9)]) is not None

    assert [look(offset) for offset in (-1001, 5, 9, 9, 5, 9, 8)] == [False] * 6 + [True]
    assert [place.offset for place in progress.left()] == [5]
    progress.end(items[0])
    advance(progress)
    assert not look(6)
    progress.keep([])
    assert progress.left() == []


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
