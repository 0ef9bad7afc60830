"""The order in which a run handles records, their tries and bounds, and the offsets that it commits."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from itertools import product

import pytest
from confluent_kafka import TopicPartition

from cloudevents_kafka import Decoded, Event, Record
from cloudevents_kafka.clients._places import MARK, MOST_BITS, bits_of, mark_of
from cloudevents_kafka.clients._schedule import Schedule, Task
from tests.support.cases import each

EVENT = Event(id="1", source="/s", type="t")
BYTES = 10**12
SIZE = 1025  # of a record with a key of 1 byte
HISTORIES = int(os.environ.get("HISTORIES", "500"))
IN_A_RELEASE = 1500


def record(offset: int, partition: int = 0, key: bytes | None = None) -> Decoded:
    return Decoded(EVENT, Record(topic="t", partition=partition, offset=offset, key=key))


def what(place: TopicPartition) -> tuple[int, str | None]:
    """Return what a commit says of a partition."""
    return place.offset, place.metadata


class Group:
    """A schedule, driven at random, with a model of what the law allows."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.places, self.max_ahead = self.random.randint(1, 4), self.random.randint(1, 8)
        self.share = self.random.choice([1, 5, 999]) * SIZE
        self.schedule = Schedule(self.max_ahead, 3 * self.share)
        self.schedule.divide(3)
        self.paused: set[int] = set()  # as the client has it, which keeps pauses over rebalances
        self.passed: dict[int, list[object]] = {}  # ids of tasks that are ready to the lanes that began
        self.now = 0.0
        self.read: dict[int, list[Decoded]] = defaultdict(list)  # since the assignment, in order
        self.all: list[Decoded] = []  # keeps the ids of items unique
        self.ended: set[int] = set()  # ids of items
        self.begun: dict[int, int] = {}  # ids of items to their tries
        self.work: list[Task] = []
        self.waiting: dict[int, float] = {}
        self.positions = [self.random.randint(0, 9) for _ in range(3)]
        self.committed: dict[int, TopicPartition] = {}  # the last offset of a partition
        self.kept: dict[int, set[int]] = defaultdict(set)  # offsets that were done then
        self.handled: dict[int, set[int]] = defaultdict(set)  # those when the partition was assigned
        self.changed: set[int] = set()  # partitions of which more is done since then
        self.is_short = self.random.random() < 0.3  # whether the group refuses offsets with what is after
        self.refusals: dict[int, int] = defaultdict(int)
        self.plain: dict[int, int] = defaultdict(int)  # commits that have nothing but an offset

    def step(self) -> None:
        actions = [self.add, self.add, self.begin, self.begin, self.end, self.end, self.fail, self.later]
        self.random.choice(
            [*actions, self.revoke, self.seek, self.commit, self.lose]
            if self.random.random() < 0.1
            else actions
        )()
        self.pause()
        self.check()

    def pause(self) -> None:
        """The client pauses what is full, and resumes what is not, as the run does."""
        full = {partition for _, partition in self.schedule.full if partition is not None}
        for partition in full - self.paused:
            number, size = self.unfinished(partition)
            assert size >= self.share or number >= 16 * self.max_ahead, "a pause for few"
        self.paused = full

    def add(self) -> None:
        """A record is read; some offsets have none, as in a compacted topic."""
        partition = self.random.randrange(3)
        if partition in self.paused and self.random.random() < 0.9:  # the client may have fetched some
            return
        self.positions[partition] += self.random.choice([1, 1, 1, 4])
        item = record(self.positions[partition], partition, self.random.choice([None, b"a", b"b", b"c"]))
        self.put(item)

    def put(self, item: Decoded) -> None:
        partition = partition_of(item)
        if not self.schedule.is_known(item):
            self.schedule.note([self.committed.get(partition, TopicPartition("t", partition, -1001))])
            if partition not in self.committed:  # the group gets the first offset
                self.changed.add(partition)
        self.all.append(item)
        self.read[partition].append(item)
        if item.record.offset in self.handled[partition]:
            self.ended.add(id(item))
            if all(id(each) in self.ended for each in self.read[partition]):
                self.changed.add(partition)
        self.schedule.add(item, self.now)

    def begin(self) -> None:
        """A place in work is free."""
        if len(self.work) < self.places and (task := self.schedule.next(self.now)):
            assert any(task.item is each for each in self.read[partition_of(task.item)])
            assert id(task.item) not in self.ended, "a record that is done began again"
            assert self.waiting.pop(id(task.item), 0) <= self.now
            for before in self.lane(task.item):
                if before is task.item:
                    break
                assert id(before) in self.ended, "a record began before an earlier one of its lane was done"
            if task.error is None:
                self.begun[id(task.item)] = self.begun.get(id(task.item), 0) + 1
                assert task.attempt == self.begun[id(task.item)]
            self.work.append(task)
            self.take_turns(task)

    def unfinished(self, partition: int) -> tuple[int, int]:
        """Return the number of records from the oldest unfinished one on, and the bytes of the unfinished."""
        items = self.read[partition]
        open_ = [each for each in items if id(each) not in self.ended]
        number = len(items) - items.index(open_[0]) if open_ else 0
        return number, sum(1024 + len(each.record.key or b"") for each in open_)

    def take_turns(self, task: Task) -> None:
        """A record that is ready begins before any other lane begins twice."""
        ready = {id(each) for each in self.schedule._ready if not each.partition.is_closed}
        passed = {each: lanes for each, lanes in self.passed.items() if each in ready}
        self.passed = passed | {each: [*passed.get(each, []), task.lane] for each in ready}
        assert all(len(lanes) == len(set(lanes)) for lanes in self.passed.values()), "no turns"

    def lane(self, item: Decoded) -> list[Decoded]:
        """Return the records of an item's lane that were read, in order, one partition after the other."""
        if item.record.key is None:
            return [each for each in self.read[partition_of(item)] if each.record.key is None]
        # Between partitions no order is promised; within each it is.
        return [each for each in self.read[partition_of(item)] if each.record.key == item.record.key]

    def leave(self) -> Task | None:
        if not self.work:
            return None
        return self.work.pop(self.random.randrange(len(self.work)))

    def end(self) -> None:
        """A record is done."""
        if task := self.leave():
            self.ended.add(id(task.item))
            if any(task.item is each for each in self.read[partition_of(task.item)]):
                self.changed.add(partition_of(task.item))
            stopped = self.stopped(task)
            assert self.schedule.end(task, self.now) is (self.stopped(task) < stopped)

    def stopped(self, task: Task) -> int:
        """Return for how many reasons a task's partition is not read, or none of its records begins."""
        return sum(task.partition.name in names for names in (self.schedule.ahead, self.schedule.full))

    def commit(self) -> None:
        """What more is done is committed, with all that is done; the group refuses some of it."""
        places = self.schedule.done()
        assert {place.partition for place in places} == self.changed
        self.schedule.commit(places)
        assert self.schedule.done() == []
        assert self.schedule.asked(unfinished=False) == places
        refused = {
            place.partition
            for place in places
            if self.random.random() < 0.2 or (self.is_short and place.metadata != MARK)
        }
        answers = [self.answer(place, refused) for place in places]
        lost = {b.partition for a, b in zip(answers, places, strict=True) if what(a) != what(b)}
        if self.random.random() < 0.3:  # a client that says so itself, such as aiokafka's
            self.schedule.commit([place for place in places if place.partition in lost], failed=True)
            self.schedule.confirm([place for place in answers if place.partition not in lost])
        else:
            assert {place.partition for place in self.schedule.confirm(answers)} == lost
        again = set(lost)
        for place in places:
            if place.partition not in lost:
                self.keep(place)
                again |= self.confirm(place)
            elif place.metadata != MARK:
                self.refusals[place.partition] += 1
                self.plain[place.partition] = 2 ** min(self.refusals[place.partition], 10)
        assert {place.partition for place in self.schedule.done()} == again, (
            "a refused commit is not made again"
        )
        assert {place.partition for place in self.schedule.asked(unfinished=False)} == again
        self.changed |= again

    def confirm(self, place: TopicPartition) -> set[int]:
        """Return the partition if the next commit may have more than the offset, after those that had not."""
        if place.metadata != MARK:
            self.refusals[place.partition] = 0
        elif self.plain[place.partition]:
            self.plain[place.partition] -= 1
            return set() if self.plain[place.partition] else {place.partition}
        return set()

    def forget(self, partition: int) -> None:
        """What is known of a partition is forgotten when it goes."""
        self.changed.discard(partition)
        self.refusals.pop(partition, None)
        self.plain.pop(partition, None)

    def answer(self, place: TopicPartition, refused: set[int]) -> TopicPartition:
        """Return what the group has after a commit: the place, or what it had before if it refuses."""
        nothing = TopicPartition("t", place.partition, -1001)
        before = self.committed.get(place.partition, nothing) if place.partition in refused else place
        return TopicPartition(place.topic, place.partition, before.offset, before.metadata or "")

    def keep(self, place: TopicPartition) -> None:
        """The group has an offset, and which records after it are done."""
        partition, read = place.partition, self.read[place.partition]
        unread = {offset for offset in self.handled[partition] if offset > self.positions[partition]}
        done = {each.record.next_offset - 1 for each in read if id(each) in self.ended} | unread
        bits = bits_of(place.metadata)
        if self.plain[partition]:
            assert not bits
            done = {offset for offset in done if offset < place.offset}
        assert {place.offset + each for each in range(bits.bit_length()) if bits >> each & 1} == {
            offset for offset in done if offset >= place.offset
        }, "not all that is done is committed"
        self.committed[partition], self.kept[partition] = place, done
        self.changed.discard(partition)

    def lose(self) -> None:
        """Another member has a partition already: it begins at the last commit, and this one gets it back."""
        partition = self.random.randrange(3)
        self.schedule.close([("t", partition)])
        self.schedule.forget([("t", partition)])
        if read := self.read.pop(partition, []):
            self.positions[partition] = (read[0].record.offset or 0) - 1
        if place := self.committed.get(partition):
            self.positions[partition] = place.offset - 1
        self.handled[partition] = self.kept[partition]
        self.forget(partition)

    def fail(self) -> None:
        """A handler has failed, or what it has sent, and another try may follow."""
        if not (task := self.leave()):
            return
        if task.error is None and self.random.random() < 0.3:
            self.schedule.fail(task, ValueError())
        else:
            until = self.now + self.random.random()
            self.schedule.wait(task, until)
            self.waiting[id(task.item)] = until

    def later(self) -> None:
        self.now += self.random.random()

    def revoke(self) -> None:
        """A partition goes to another member: none of its records begins, and what is done is committed."""
        partition = self.random.randrange(3)
        name = "t", partition
        self.schedule.close([name])
        read = self.read.pop(partition, [])
        working = [task for task in self.work if any(task.item is each for each in read)]
        assert self.schedule.working([name]) == len(working)
        for task in [task for task in working if self.random.random() < 0.5]:
            self.work.remove(task)  # it ends in time
            self.ended.add(id(task.item))
            self.schedule.end(task, self.now)
        left = [each.record.offset for each in read if id(each) not in self.ended]
        places = self.schedule.done([name], again=True)
        assert len(places) == bool(read)
        for place in places:
            assert place.offset <= min(left, default=self.positions[partition] + 1)
            before = [each.record.next_offset for each in read if each.record.offset < min(left, default=999)]
            assert place.offset >= max(before, default=0), "what is done is not committed"
            self.read[partition] = read
            self.keep(place)
            del self.read[partition]
            self.positions[partition] = place.offset - 1
            self.handled[partition] = self.kept[partition]
        self.schedule.forget([name])
        self.forget(partition)

    def seek(self) -> None:
        """The program reads again from an earlier record."""
        partition = self.random.randrange(3)
        if self.read[partition]:
            self.handled[partition] = set()
            self.forget(partition)
            item = self.random.choice(self.read.pop(partition))
            self.positions[partition] = item.record.offset
            self.put(record(item.record.offset, partition, item.record.key))

    def check(self) -> None:
        lanes = [task.lane for task in self.work]
        assert len(lanes) == len(set(lanes)), "two records of a lane are in work"
        done = {place.partition: place.offset for place in self.schedule.done(again=True)}
        for partition, items in self.read.items():
            open_ = [each for each in items if id(each) not in self.ended]
            begun = [each for each in open_ if id(each) in self.begun]
            if items:
                assert done[partition] == (open_ or [record(items[-1].record.offset + 1)])[0].record.offset
            if open_:
                first = items.index(open_[0])
                ahead = [each for each in items[first + 1 :] if id(each) in self.begun]
                assert len(ahead) <= self.max_ahead, (ahead, begun)
        for partition in self.read:
            number, size = self.unfinished(partition)
            if partition in self.paused:
                assert number, "a partition is paused, and nothing would resume it"
            else:
                assert number < 16 * self.max_ahead, "too many records are read"
                assert size < self.share, "too much is read"
        for partition in self.paused:
            assert partition in self.read, "a pause is kept over a rebalance"

    def drain(self) -> None:
        """Everything that was read is done in the end."""
        while not self.schedule.is_idle:
            self.later()
            self.begin()
            self.end()
            self.pause()
            self.check()
        assert all(id(item) in self.ended for items in self.read.values() for item in items)
        assert not self.schedule.in_work
        assert not self.schedule.ahead | self.schedule.full
        assert self.schedule.may_read(3)


def partition_of(item: Decoded) -> int:
    assert item.record.partition is not None
    return item.record.partition


@pytest.mark.parametrize("count", [HISTORIES, pytest.param(IN_A_RELEASE, marks=pytest.mark.release)])
def test_random_histories_obey_the_law(count: int) -> None:
    """Order, bounds, offsets and room hold after each step, with tries, revoked partitions and seeks."""
    for seed in range(count):
        group = Group(seed)
        try:
            for _ in range(60):
                group.step()
            group.drain()
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def test_a_partition_at_its_bound_goes_on_when_half_of_it_is_free() -> None:
    """Records after the bound are held, also if all but the oldest are done; those of others begin."""
    schedule = Schedule(4, BYTES)
    for offset in range(9):
        schedule.add(record(offset, key=b"%d" % offset), 0)
    schedule.add(record(0, partition=1, key=b"other"), 0)
    tasks = [schedule.next(0) for _ in range(6)]
    assert schedule.next(0) is None
    assert schedule.ahead == {("t", 0)}
    assert [task and task.item.record.offset for task in tasks] == [0, 1, 2, 3, 4, 0]
    for task in tasks[1:5]:
        assert task is not None
        schedule.end(task, 0)
        assert schedule.next(0) is None
    assert tasks[0] is not None
    schedule.end(tasks[0], 0)
    begun = [schedule.next(0) for _ in range(4)]
    assert [task and task.item.record.offset for task in begun] == [5, 6, 7, 8]
    assert not schedule.ahead
    assert [(place.partition, place.offset) for place in schedule.done(again=True)] == [(0, 5), (1, 0)]


@pytest.mark.parametrize("most", [9, 64])
def test_a_partition_is_full_from_its_high_to_its_low_mark(most: int) -> None:
    """The high mark is a share of the bytes; another partition is read meanwhile."""
    schedule = Schedule(4, 2 * most * 1025)
    schedule.divide(2)
    read = 0
    while ("t", 0) not in schedule.full:
        assert schedule.may_read(2)
        schedule.add(record(read, key=b"k"), 0)
        read += 1
    assert read == most
    assert schedule.may_read(2)
    assert not schedule.may_read(1)
    while schedule.full:
        task = schedule.next(0)
        assert task is not None
        schedule.end(task, 0)
        read -= 1
    assert read <= most / 2
    assert schedule.may_read(1)


def test_no_partition_is_full_where_all_are_slow() -> None:
    """Nothing is read while all have ``max_ahead`` records, so nothing that was fetched is dropped."""
    schedule = Schedule(4, 1_000_000)
    schedule.divide(3)
    chance = random.Random(7)
    offsets = [0, 0, 0]
    for _ in range(5000):
        if schedule.may_read(3):
            partition = chance.randrange(3)
            schedule.add(record(offsets[partition], partition=partition, key=b"k%d" % partition), 0)
            offsets[partition] += 1
        elif (task := schedule.next(0)) is not None:
            schedule.end(task, 0)
        assert not schedule.full
    assert min(offsets) > 500


def test_one_record_may_have_more_bytes_than_all() -> None:
    """It is handled, and the partition is read on."""
    schedule = Schedule(4, 10)
    schedule.add(record(0), 0)
    assert schedule.full == {("t", 0)}
    task = schedule.next(0)
    assert task is not None
    schedule.end(task, 0)
    assert not schedule.full


def test_an_old_record_is_found_once() -> None:
    """It is the oldest of its partition that is not done."""
    schedule = Schedule(10, BYTES)
    schedule.add(record(3), 5.0)
    schedule.add(record(4), 5.0)
    assert list(schedule.find_old(5.0)) == []
    assert [task.item.record.offset for task in schedule.find_old(6.0)] == [3]
    assert list(schedule.find_old(6.0)) == []


def in_work(*offsets: int) -> Schedule:
    schedule = Schedule(9, BYTES)
    for offset in offsets:
        schedule.add(record(offset), 0)
    return schedule


@each(
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
    schedule = in_work(5, 6, 7)
    if at_assignment is not None:
        schedule.note([TopicPartition("t", 0, at_assignment)])
    seen = [schedule.find_foreign([TopicPartition("t", 0, at), TopicPartition("u", 0, 9)]) for at in looks]
    assert seen[:-1] == [None] * (len(looks) - 1)
    assert seen[-1] == TopicPartition("t", 0, found)


def test_marked_offsets_are_of_a_run() -> None:
    """Another member may be further; a mark that is gone later shows a commit of somebody else."""
    schedule = in_work(5, 6, 7)
    assert schedule.find_foreign([TopicPartition("t", 0, 18, MARK)]) is None
    assert schedule.find_foreign([TopicPartition("t", 0, 18)]) is not None
    assert {place.metadata for place in schedule.left() + schedule.done(again=True)} == {MARK}


def test_offsets_of_the_group_are_known_until_the_partition_is_revoked() -> None:
    """A seek back keeps them, and those of a partition that is assigned again are asked for."""
    schedule = in_work(5)
    schedule.note([TopicPartition("t", 0, 9)])
    again = record(3)
    schedule.add(again, 0)
    assert schedule.find_foreign([TopicPartition("t", 0, 9)]) is None
    schedule.keep([TopicPartition("t", 0)])
    assert schedule.is_known(again)
    schedule.keep([])
    assert not schedule.is_known(again)


def test_only_new_offsets_are_committed() -> None:
    """An offset that was committed is not committed again, but after a seek back an earlier one is."""
    schedule = Schedule(9, BYTES)

    def handle(offset: int) -> list[int]:
        schedule.add(record(offset), 0)
        task = schedule.next(0)
        assert task is not None
        schedule.end(task, 0)
        places = schedule.done()
        schedule.commit(places)
        assert schedule.done() == []
        return [place.offset for place in places]

    assert [handle(offset) for offset in (5, 6, 7)] == [[6], [7], [8]]
    assert handle(5) == [6]
    assert handle(0) == [1]


@each(("committed", "places"), [(-1001, [5]), (None, [5]), (5, []), (3, []), (0, [])])
def test_the_first_offset_is_committed_if_the_group_has_no_offset_or_did_not_answer(
    committed: int | None, places: list[int]
) -> None:
    """If the process is killed, the next process does not begin at the end of the partition."""
    schedule = Schedule(9, BYTES)
    if committed is not None:
        schedule.note([TopicPartition("t", 0, committed)])
    schedule.add(record(5), 0)
    assert [place.offset for place in schedule.done()] == places


@each("metadata", ["other", f"{MARK}*", f"{MARK}====", MARK, f"{MARK}AAA"])
def test_other_metadata_has_no_done_records(metadata: str) -> None:
    """Metadata are what any program has committed."""
    schedule = Schedule(9, BYTES)
    schedule.note([TopicPartition("t", 0, 3, metadata)])
    schedule.add(record(3), 0)
    assert schedule.next(0) is not None


def test_the_metadata_of_an_offset_are_bounded() -> None:
    """Brokers accept 4,096 bytes; records far behind the oldest one may be handled again."""
    schedule = Schedule(99_999, BYTES)
    for offset in range(50_000):
        schedule.add(record(offset, key=b"%d" % offset), 0)
    first = schedule.next(0)
    while task := schedule.next(0):
        schedule.end(task, 0)
    [place] = schedule.done(again=True)
    assert place.offset == 0
    assert first is not None
    assert 1000 < len(place.metadata) < 2100


def take(schedule: Schedule, now: float = 0) -> Task:
    """Return the record that is to be handled next."""
    task = schedule.next(now)
    assert task is not None
    return task


@pytest.mark.parametrize(("max_ahead", "left"), [(1, 1), (4, 3), (5, 3), (8, 5)])
def test_a_partition_leaves_its_bound_with_half_of_it_and_the_oldest(max_ahead: int, left: int) -> None:
    """`end` returns whether a partition may be read again."""
    schedule = Schedule(max_ahead, BYTES)
    for offset in range(max_ahead + 1):
        assert not schedule.ahead
        schedule.add(record(offset, key=b"%d" % offset), 0)
    assert schedule.ahead == {("t", 0)}
    number = max_ahead + 1
    while schedule.ahead:
        is_last = number == left + 1
        assert schedule.end(take(schedule), 0) is is_last
        number -= 1
    assert number == left
    assert not schedule.end(take(schedule), 0)


@pytest.mark.parametrize("shares", [4, 5])
def test_a_partition_is_read_again_at_half_of_its_share(shares: int) -> None:
    """The half itself is enough, and the share itself is too much."""
    schedule = Schedule(99, shares * SIZE)
    for offset in range(shares):
        assert not schedule.full
        schedule.add(record(offset, key=b"%d" % offset), 0)
    assert schedule.full == {("t", 0)}
    ends = [schedule.end(take(schedule), 0) for _ in range(shares)]
    assert ends.index(True) + 1 == shares - shares // 2
    assert ends.count(True) == 1


def test_bytes_are_divided_by_the_number_of_partitions() -> None:
    """Without partitions one has all of them."""
    for partitions, most in [(0, 6), (1, 6), (2, 3), (3, 2), (6, 1)]:
        schedule = Schedule(99, 6 * SIZE)
        schedule.divide(partitions)
        read = 0
        while not schedule.full:
            schedule.add(record(read, key=b"k"), 0)
            read += 1
        assert read == most


def test_partitions_that_are_full_or_at_their_bound_are_not_read() -> None:
    """Others are, if there is one."""
    schedule = Schedule(1, 4 * SIZE)
    schedule.divide(2)
    assert schedule.may_read(0)
    for offset in (0, 1):
        schedule.add(record(offset, 0, b"%d" % offset), 0)
    assert (schedule.ahead, schedule.full) == ({("t", 0)}, {("t", 0)})
    assert [schedule.may_read(partitions) for partitions in (1, 2)] == [False, True]
    schedule.divide(1)
    for offset in (0, 1):
        schedule.add(record(offset, 1, b"%d" % offset), 0)
    assert (schedule.ahead, schedule.full) == ({("t", 0), ("t", 1)}, {("t", 0)})
    assert [schedule.may_read(partitions) for partitions in (1, 2, 3)] == [False, False, True]
    schedule.close([("t", 0)])
    assert (schedule.ahead, schedule.full) == ({("t", 1)}, set())
    schedule.divide(4)
    schedule.add(record(0, 2, b"k"), 0)
    assert (schedule.ahead, schedule.full) == ({("t", 1)}, {("t", 2)})
    assert [schedule.may_read(partitions) for partitions in (2, 3)] == [False, True]


def test_a_try_begins_when_it_is_due() -> None:
    """Not before; the time is that of the earliest, and a closed partition has none."""
    schedule = in_work(1)
    schedule.add(record(1, partition=1), 0)
    assert schedule.next_try() is None
    for until in (2.0, 3.0):
        task = take(schedule)
        assert (task.attempt, schedule.in_work[task]) == (1, 0)
        schedule.wait(task, until)
        assert task.is_waiting
    assert (schedule.next_try(), schedule.next(1.9), schedule.is_ready) == (2.0, None, False)
    task = take(schedule, 2.0)
    assert (task.attempt, task.is_waiting, task.is_in_work, schedule.in_work) == (2, False, True, {task: 2.0})
    schedule.close([("t", 1)])
    assert schedule.next(3.0) is None
    assert not schedule.is_idle
    schedule.end(task, 3.0)
    assert schedule.is_idle


def test_what_was_not_delivered_is_no_new_try() -> None:
    """A record that is ready again has the number and the error of its last try."""
    schedule = in_work(1)
    task, error = take(schedule), ValueError()
    schedule.fail(task, error)
    assert (task.is_in_work, task.error) == (False, error)
    assert (take(schedule), task.attempt) == (task, 1)
    schedule.leave(task)
    assert (schedule.next(9.0), schedule.is_idle, task.is_in_work) == (None, False, False)


@pytest.mark.parametrize("first", [0, 3])
def test_records_that_others_have_handled_do_not_begin(first: int) -> None:
    """They are those whose bits stand next to the group's offset, and no others."""
    schedule = Schedule(9, BYTES)
    schedule.note([TopicPartition("t", 0, first, mark_of(0b1010))])
    for offset in range(first, first + 6):
        schedule.add(record(offset, key=b"%d" % offset), 0)
    begun = []
    while task := schedule.next(0):
        begun.append(task.item.record.offset)
        schedule.end(task, 0)
    assert begun == [first, first + 2, first + 4, first + 5]
    assert schedule.is_idle


def test_bits_belong_to_the_offset_of_the_group() -> None:
    """A group without an offset has none, and one that is further on has not handled what is before."""
    for first in (-1001, 9):
        schedule = Schedule(9, BYTES)
        schedule.note([TopicPartition("t", 0, first, mark_of(0b1111))])
        schedule.add(record(2), 0)
        assert take(schedule).item.record.offset == 2


def test_bits_beyond_what_was_read_are_committed_again() -> None:
    """What other members have handled after the last record here stays handled, at any distance."""
    schedule = Schedule(9, BYTES)
    schedule.note([TopicPartition("t", 0, 3, mark_of(0b1001_0110))])
    for offset in (3, 5):
        schedule.add(record(offset, key=b"%d" % offset), 0)
    [place] = schedule.done(again=True)
    assert (place.offset, bits_of(place.metadata)) == (
        3,
        0b1001_0100,
    )  # of the compacted record 4 nothing is known
    schedule.end(take(schedule), 0)
    [place] = schedule.done()
    assert (place.offset, bits_of(place.metadata)) == (6, 0b10_010)
    schedule = Schedule(9, BYTES)
    schedule.note([TopicPartition("t", 0, 3, mark_of(0b1_0110))])
    schedule.add(record(3), 0)
    schedule.end(take(schedule), 0)
    [place] = schedule.done()
    assert (place.offset, bits_of(place.metadata)) == (4, 0b1011)


def test_the_last_bit_of_an_offset() -> None:
    """A record further behind the oldest one than there are bits may be handled again."""
    for behind in (MOST_BITS - 1, MOST_BITS, MOST_BITS + 1):
        schedule = Schedule(9, BYTES)
        for offset in (0, behind):
            schedule.add(record(offset, key=b"%d" % offset), 0)
        take(schedule)
        schedule.end(take(schedule), 0)
        [place] = schedule.done(again=True)
        assert bits_of(place.metadata).bit_length() == (behind + 1 if behind < MOST_BITS else 0)
    schedule = Schedule(9, BYTES)
    schedule.note([TopicPartition("t", 0, 0, mark_of(0b100_0011 << MOST_BITS - 1))])
    schedule.add(record(0), 0)
    [place] = schedule.done(again=True)
    assert bits_of(place.metadata) == 1 << MOST_BITS - 1


def test_refusals_double_the_commits_without_records_after_the_offset() -> None:
    """A refused offset alone does not count, and an accepted one with records after it ends the series."""
    schedule = Schedule(9, BYTES)
    for offset in (0, 1):
        schedule.add(record(offset, key=b"%d" % offset), 0)
    take(schedule)
    schedule.end(take(schedule), 0)

    def commit(*, accepted: bool, with_bits: bool) -> bool:
        """Return whether there is more to commit afterwards."""
        [place] = schedule.done(again=True)
        assert (place.metadata != MARK) is with_bits
        schedule.commit([place])
        refused = schedule.confirm([place if accepted else TopicPartition("t", 0, -1001)])
        assert bool(refused) is not accepted
        return bool(schedule.done())

    for plain in (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024):
        assert commit(accepted=False, with_bits=True)
        assert commit(accepted=False, with_bits=False)
        again = [commit(accepted=True, with_bits=False) for _ in range(plain)]
        assert again == [*[False] * (plain - 1), True]
    assert not commit(accepted=True, with_bits=True)
    assert commit(accepted=False, with_bits=True)
    assert [commit(accepted=True, with_bits=False) for _ in range(2)] == [False, True]
    assert not commit(accepted=True, with_bits=True)


def test_a_client_may_say_that_a_commit_failed() -> None:
    """Its offsets are committed again, those of partitions that have gone are not."""
    schedule = in_work(1)
    schedule.end(take(schedule), 0)
    [place] = schedule.done()
    schedule.commit([place, TopicPartition("u", 0, 5)], failed=True)
    assert [each.offset for each in schedule.done()] == [place.offset]
    schedule.commit([place])
    assert schedule.confirm([TopicPartition("u", 0, 5)]) == []
    assert [each.offset for each in schedule.asked(unfinished=False)] == [place.offset]
    assert (
        schedule.confirm([place]) == schedule.asked(unfinished=False) == schedule.asked(unfinished=True) == []
    )
    assert schedule.confirm([TopicPartition("t", 0, 1)]) == []  # it was confirmed before
    schedule.commit([place])
    assert schedule.confirm([TopicPartition("t", 0, place.offset)]) == []  # some answers have no metadata
    schedule.commit([place])
    assert schedule.confirm([TopicPartition("t", 0, place.offset, "other")]) != []


def test_partitions_with_unfinished_records_are_asked_for() -> None:
    """They are those of which the group's offset may be changed by others."""
    schedule = in_work(5)
    schedule.add(record(7, partition=1), 0)
    schedule.commit(schedule.done())
    schedule.confirm(schedule.done(again=True))
    assert schedule.asked(unfinished=False) == []
    assert [(each.partition, each.offset) for each in schedule.asked(unfinished=True)] == [(0, 5), (1, 7)]
    assert [each.partition for each in schedule.left([("t", 1), ("u", 0)])] == [1]
    assert [each.partition for each in schedule.left()] == [0, 1]
    schedule.end(take(schedule), 0)
    assert [each.partition for each in schedule.left()] == [1]
    assert [each.partition for each in schedule.done([("t", 1)], again=True)] == [1]
    assert [each.partition for each in schedule.done([("t", 1)])] == []


def test_partitions_that_are_not_assigned_are_forgotten() -> None:
    """Whether only offsets of the group are known of them, or only records."""
    schedule = in_work(5)
    schedule.note([TopicPartition("u", 0, 9)])
    assert schedule.knows(("t", 0))
    assert schedule.knows(("u", 0))
    task = take(schedule)
    schedule.keep([TopicPartition("v", 0)])
    assert not schedule.knows(("t", 0))
    assert not schedule.knows(("u", 0))
    assert schedule.working([("t", 0)]) == 0
    assert not schedule.end(task, 0)
    assert schedule.is_idle


def test_a_record_that_is_held_was_read() -> None:
    """A seek to it, or back before it, begins the partition again; the record after it does not."""
    for again, ahead in ((4, 0), (3, 0), (5, 1)):
        schedule = Schedule(1, BYTES)
        for offset in range(5):
            schedule.add(record(offset, key=b"%d" % offset), 0)
        assert schedule.ahead
        schedule.add(record(again, key=b"x"), 0)
        assert len(schedule.ahead) == ahead
        assert take(schedule).item.record.offset == (0 if ahead else again)


def test_lanes_of_a_closed_partition_are_free_for_others() -> None:
    """Where the first record of a lane goes with its partition, the next one of another is ready."""
    schedule = Schedule(9, BYTES)
    for offset, partition in enumerate((0, 0, 1)):
        schedule.add(record(offset, partition, b"k"), 0)
    schedule.close([("t", 0)])
    task = take(schedule)
    assert task.item.record.partition == 1
    assert schedule.next(0) is None
    schedule.end(task, 0)
    assert schedule.is_idle


def test_a_partition_may_be_closed_again() -> None:
    """Lanes of others that are closed with it are closed, too."""
    schedule = Schedule(99, BYTES)
    for partition, number in product((0, 1), range(9)):
        schedule.add(record(number, partition, b"%d%d" % (partition, number)), 0)
    schedule.close([("t", 0)])
    assert not schedule.is_idle
    schedule.close([("t", 0), ("t", 1)])
    assert schedule.is_idle


def test_other_partitions_in_an_answer_hide_none() -> None:
    """A partition that is not known here may stand before one with an offset of somebody else."""
    schedule = in_work(5, 6)
    others = [TopicPartition("u", 0, 9), TopicPartition("t", 0, 18)]
    schedule.commit(schedule.done())
    assert schedule.done() == []
    assert schedule.find_foreign(others) is None
    assert [place.offset for place in schedule.done()] == [5]  # the group is set back
    assert schedule.find_foreign([others[0], TopicPartition("t", 0, 19)]) == TopicPartition("t", 0, 19)
    task = take(schedule)
    assert not task.is_waiting
    schedule.commit(schedule.done())
    assert schedule.confirm(others) == others[1:]
