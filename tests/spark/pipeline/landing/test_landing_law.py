"""The law of landing holds in random histories of kills, removals, restorations and other pipelines.

The model has tables and topics in memory; what lands batches is the code of the pipeline. After each step,
each table has the rows of its ledger once, and nothing that a run reported as landed is missing.
"""

from __future__ import annotations

import copy
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from cloudevents_kafka.spark.pipeline import (
    PipelineError,
    PipelineFailed,
    PipelineOptions,
    TopicChanged,
    WrongTable,
)
from cloudevents_kafka.spark.pipeline.landing import (
    BatchLander,
    Landed,
    TablesTarget,
    _lander,
    _tables_target,
)
from cloudevents_kafka.spark.pipeline.notes import (
    EVENTS,
    QUARANTINE,
    BatchCounts,
    BatchPlan,
    Ledger,
    OffsetRange,
    OffsetRanges,
    PartitionCounts,
    ReadSettings,
    iter_partitions,
)
from cloudevents_kafka.spark.pipeline.stores import Store
from cloudevents_kafka.spark.pipeline.tables import LedgerChanged, Staged
from tests.spark.pipeline.landing.parts import Parts

HISTORIES = int(os.environ.get("HISTORIES", "400"))
IN_A_RELEASE = 1500
STEPS = 14
TOPIC = "orders"
OPTIONS = PipelineOptions(bootstrap_servers="127.0.0.1:1", topics=(TOPIC,), out="lake", to="delta", once=True)
Row = tuple[str, str, int]  # topic id, partition, offset


class Killed(BaseException):
    """The process ends here."""


@dataclass
class World:
    """What outlives a process: tables, folders, checkpoints and a topic; and when the process is killed."""

    topic_id: str = "t0"
    begins: dict[str, int] = field(default_factory=lambda: {"0": 0, "1": 0})
    ends: dict[str, int] = field(default_factory=lambda: {"0": 0, "1": 0})
    tables: dict[str, MemoryTable] = field(default_factory=dict)
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)  # by pipeline
    checkpoints: dict[str, SparkState] = field(default_factory=dict)
    steps_to_live: int = -1
    made: int = 0
    dropped: set[Row] = field(default_factory=set)  # landed in tables that were dropped

    def table(self, name: str) -> MemoryTable:
        """Return a table, which may not exist yet."""
        return self.tables.setdefault(name, MemoryTable(self, name))

    def step(self) -> None:
        """Kill the process if its time has come."""
        self.steps_to_live -= 1
        if self.steps_to_live == 0:
            raise Killed


class MemoryTable:
    """A table whose commit is one assignment."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.number = ""
        self.rows: list[Row] = []
        self.state = Ledger()
        self.is_foreign = False

    def exists(self) -> bool:
        return bool(self.number)

    def id(self) -> str:
        return self.number

    def ledger(self, *, adopt: bool = False) -> Ledger:
        if self.is_foreign and not self.state.generation and not adopt:
            raise WrongTable(self.name)
        return self.state

    def stage(self, rows: Sequence[Row]) -> Staged:
        self.world.step()
        if not self.number:
            self.world.made += 1
            self.number = f"id{self.world.made}"
        return Staged(list(rows), len(rows))

    def commit(self, staged: Sequence[Staged], before: Ledger, after: Ledger) -> None:
        self.world.step()
        if before.generation != self.state.generation:
            raise LedgerChanged("read again")
        if not self.number:
            self.world.made += 1
            self.number = f"id{self.world.made}"
        self.rows = [*self.rows, *(row for part in staged for row in part.files)]
        self.state = after
        self.world.step()


class MemoryStore:
    """A folder whose files are created in one step."""

    makes_folders = False

    def __init__(self, world: World, pipeline: str) -> None:
        self.world, self.files = world, world.files.setdefault(pipeline, {})

    def url(self, path: str) -> str:
        return f"memory:/{path}"

    def list_names(self, folder: str) -> list[str]:
        prefix = f"{folder}/"
        return sorted({path[len(prefix) :].split("/")[0] for path in self.files if path.startswith(prefix)})

    def exists(self, path: str) -> bool:
        return path in self.files

    def read(self, path: str) -> bytes:
        return self.files[path]

    def create(self, path: str, content: bytes) -> None:
        self.world.step()
        if path in self.files:
            raise FileExistsError(path)
        self.files[path] = content
        self.world.step()

    def remove(self, path: str) -> None:
        self.files.pop(path, None)

    def replace(self, path: str, content: bytes) -> None:
        self.remove(path)
        self.create(path, content)


class Records:
    """The records of a plan."""

    sparkSession = None  # noqa: N815  # PySpark's name

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows


def only(records: Any, offsets: OffsetRanges) -> Any:
    """Filter as `filter_offsets` does."""
    rows = records.rows if isinstance(records, Records) else records
    kept = [
        row
        for row in rows
        if any(
            number == row[1] and row[2] in range(range_.start, range_.end)
            for _, number, range_ in iter_partitions(offsets)
        )
    ]
    return Records(kept) if isinstance(records, Records) else kept


def table_of(row: Row, *, lenient: bool) -> str:
    """Return the table of a record; lenient reading accepts half of the wrong records."""
    return QUARANTINE if row[2] % 5 == 3 and not (lenient and row[2] % 2) else EVENTS


class Writer:
    """Stages events in two parts, as records that need Python are, and then the other records."""

    def __init__(self, meanwhile: Any = None) -> None:
        self._meanwhile = meanwhile

    def starts_in_java(self, records: Any) -> bool:
        return True

    def write(self, records: Records, batch: Any, append: Any) -> BatchCounts:
        rows = only(records, batch.offsets).rows
        events = [row for row in rows if table_of(row, lenient=batch.lenient) == EVENTS]
        append(EVENTS, [row for row in events if row[2] % 3])
        if rest := [row for row in events if not row[2] % 3]:
            append(EVENTS, rest)
        if others := [row for row in rows if row not in events]:
            append(QUARANTINE, others)
        if self._meanwhile is not None:
            self._meanwhile()
        return count(rows, len(others))


def count(rows: list[Row], others: int = 0) -> BatchCounts:
    """Return the counts of rows, of which ``others`` are not events."""
    events = len(rows) - others
    offsets: dict[str, list[int]] = {}
    for _, partition, offset in rows:
        offsets.setdefault(partition, []).append(offset)
    parts = {number: PartitionCounts(min(found), max(found), len(found)) for number, found in offsets.items()}
    return BatchCounts(
        read=len(rows),
        events=events,
        quarantined=others,
        by_type={"t": {"binary": events}} if events else {},
        by_reason={"r": {"c": others}} if others else {},
        offsets={TOPIC: parts} if parts else {},
    )


class Topics:
    """Compares the topic's id and ends as `TopicMonitor` does."""

    names = (TOPIC,)

    def __init__(self, world: World) -> None:
        self._world = world

    def check_ids(self, ids: Any, topics: Any) -> None:
        if TOPIC in topics and ids.get(TOPIC, self._world.topic_id) != self._world.topic_id:
            raise TopicChanged("the topic is another one")

    def check(self, ids: Any, landed: OffsetRanges, planned: Any = None, **_: float) -> dict[str, str]:
        self.check_ids(ids, (TOPIC,))
        for _topic, partition, offsets in iter_partitions(landed):
            if offsets.end > self._world.ends[partition]:
                raise TopicChanged("the topic ends before")
        return {TOPIC: self._world.topic_id}


@dataclass
class SparkState:
    """Spark's checkpoint: the ends of planned batches, and how many are committed."""

    query: str
    starts: dict[str, int]
    ends: list[dict[str, int]] = field(default_factory=list)
    committed: int = 0

    def plan(self, batch: int) -> BatchPlan:
        before = self.ends[batch - 1] if batch else self.starts
        ranges = {number: OffsetRange(before[number], end) for number, end in self.ends[batch].items()}
        return BatchPlan(batch, {TOPIC: ranges})

    def last_committed(self) -> BatchPlan | None:
        if not self.committed:
            return None
        ends = self.ends[self.committed - 1]
        return BatchPlan(self.committed - 1, {TOPIC: {n: OffsetRange(end, end) for n, end in ends.items()}})


def run(
    world: World, pipeline: str, rng: random.Random, meanwhile: Any = None, *, adopt: bool = False
) -> None:
    """Run a pipeline until it has read the topic, as `Job` does."""
    store = cast("Store", MemoryStore(world, pipeline))
    landed = Landed(store, "delta", in_notes=False)
    target = TablesTarget(landed, cast("Any", world.table), adopt=adopt)
    state = world.checkpoints.get(pipeline)
    writer, topics = Writer(meanwhile), Topics(world)
    parts: Any = (state, topics, writer)
    lander = BatchLander(OPTIONS, landed, target, ReadSettings(), *parts)
    lander.recover()
    lander.check_start(state and state.query, state and state.last_committed())
    if state is None:
        ranges = landed.landed.get(TOPIC, {})
        starts = {**world.begins, **{number: range_.end for number, range_ in ranges.items()}}
        world.made += 1
        state = world.checkpoints[pipeline] = SparkState(f"q{world.made}", starts)
        lander._checkpoint = cast("Any", state)
    if (begun := landed.begun()) is not None:
        lander._finish(begun, read(world, begun.planned))
    while True:
        world.step()
        if len(state.ends) == state.committed:
            before = state.ends[-1] if state.ends else state.starts
            if before == world.ends and state.ends:
                return
            most = rng.choice([3, 9, 99])
            state.ends.append({n: min(end, before[n] + most) for n, end in world.ends.items()})
        number = state.committed
        records = read(world, state.plan(number).ranges)
        lander.land(records, number, state.query)
        state.committed += 1


def read(world: World, planned: OffsetRanges) -> Any:
    """Return the records of a plan, as Spark does."""
    if any(offsets.end > world.ends[partition] for _, partition, offsets in iter_partitions(planned)):
        raise PipelineFailed("Spark cannot read offsets after the end")
    return Records(
        [
            (world.topic_id, partition, offset)
            for _, partition, offsets in iter_partitions(planned)
            for offset in range(offsets.start, offsets.end)
        ]
    )


def check(world: World) -> None:
    """Check the law: each table has each row once, and all tables have what the ledger of events has."""
    for table in world.tables.values():
        assert max(Counter(table.rows).values(), default=1) == 1
        assert set(table.rows) <= set(offsets_of(table.state))
    everywhere = {row for table in world.tables.values() for row in table.rows}
    assert set(offsets_of(world.table(EVENTS).state)) <= everywhere | world.dropped


def check_complete(world: World) -> None:
    """Check that the tables have all records of the topic once, after a run has said so."""
    found = Counter(row for table in world.tables.values() for row in table.rows)
    for partition, end in world.ends.items():
        for offset in range(world.begins[partition], end):
            row = (world.topic_id, partition, offset)
            assert found[row] == 1 or (row in world.dropped and not found[row]), row


def offsets_of(ledger: Ledger) -> Iterator[Row]:
    for entry in ledger.entries():
        for offset in range(entry.offsets.start, entry.offsets.end):
            yield entry.topic_id, entry.partition, offset


class History:
    """A random history, and the law after each of its steps."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._world = World()
        self.topic_anew()
        self._backups: list[Any] = []
        self.kinds: Counter[str] = Counter()

    def go(self) -> None:
        steps = [
            *[self.produce] * 4,
            *[self.run] * 6,
            *[self.run_killed] * 6,
            *[self.run_both] * 3,
            *(self.forget_checkpoint, self.forget_notes, self.forget_folder, self.back_up, self.restore),
            *(self.topic_anew, self.drop_table, self.restore_events, self.produce_and_run),
            self.make_table,
        ]
        for _ in range(STEPS):
            step = self._rng.choice(steps)
            step()
            check(self._world)
        self._world.steps_to_live = -1
        self.forget_folder("a")
        run(self._world, "a", self._rng, adopt=True)  # a fresh folder mends everything
        check(self._world)
        check_complete(self._world)

    def _pipeline(self) -> str:
        return self._rng.choice("ab")

    def produce(self) -> None:
        self._world.ends[self._rng.choice("01")] += self._rng.randrange(12)

    def produce_and_run(self) -> None:
        self.produce()
        self.run()

    def run(self, meanwhile: Any = None) -> None:
        self._world.steps_to_live = -1
        try:
            run(self._world, self._pipeline(), self._rng, meanwhile, adopt=self._rng.random() < 0.3)
        except PipelineError as error:
            self.kinds[type(error).__name__] += 1
        else:
            self.kinds["complete"] += 1
            check_complete(self._world)

    def run_killed(self) -> None:
        self._world.steps_to_live = self._rng.randrange(1, 25)
        try:
            run(self._world, self._pipeline(), self._rng)
        except PipelineError as error:
            self.kinds[type(error).__name__] += 1
        except Killed:
            self.kinds["killed"] += 1

    def run_both(self) -> None:
        """Run a pipeline while another one, or another run of it, lands the same batch."""
        other = self._pipeline()

        def meanwhile() -> None:
            if self._rng.random() < 0.5:
                try:
                    run(self._world, other, self._rng)
                except PipelineError as error:
                    self.kinds[f"other {type(error).__name__}"] += 1

        self.run(meanwhile)

    def forget_checkpoint(self) -> None:
        self._world.checkpoints.pop(self._pipeline(), None)

    def forget_notes(self) -> None:
        self._world.files.pop(self._pipeline(), None)

    def forget_folder(self, pipeline: str | None = None) -> None:
        pipeline = pipeline or self._pipeline()
        self._world.files.pop(pipeline, None)
        self._world.checkpoints.pop(pipeline, None)

    def back_up(self) -> None:
        pipeline = self._pipeline()
        world = self._world
        kept = (
            world.files.get(pipeline),
            world.checkpoints.get(pipeline),
            world.tables.get(EVENTS),
            world.topic_id,
        )
        self._backups.append(
            (
                pipeline,
                *copy.deepcopy(kept[:2]),
                kept[2] and (kept[2].rows, kept[2].state, kept[2].number),
                kept[3],
            )
        )

    def restore(self) -> None:
        if self._backups:
            pipeline, files, checkpoint, _, topic_id = copy.deepcopy(self._rng.choice(self._backups))
            if topic_id == self._world.topic_id and files and checkpoint:
                self._world.files[pipeline], self._world.checkpoints[pipeline] = files, checkpoint

    def restore_events(self) -> None:
        """Restore the table of events with its ledger, as of an earlier time."""
        if self._backups:
            *_, table, _topic_id = self._rng.choice(self._backups)
            now = self._world.table(EVENTS)
            if table and now.number == table[2]:
                now.rows, now.state = list(table[0]), table[1]

    def topic_anew(self) -> None:
        world = self._world
        world.made += 1
        world.topic_id = f"t{world.made}"
        world.begins = {"0": 0, "1": self._rng.choice([0, 5])}  # earlier records have expired
        world.ends = dict(world.begins)

    def drop_table(self) -> None:
        world = self._world
        table = world.tables.pop(self._rng.choice([EVENTS, QUARANTINE]), None)
        if table is not None and table.name == QUARANTINE:
            world.dropped.update(table.rows)

    def make_table(self) -> None:
        """Another writer makes a table with rows, where there was no table."""
        table = self._world.table(self._rng.choice([EVENTS, QUARANTINE]))
        if not table.exists():
            self._world.made += 1
            table.number, table.is_foreign = f"id{self._world.made}", True


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let records in memory be filtered by their offsets."""
    for user in (_lander, _tables_target):
        monkeypatch.setattr(user, "filter_offsets", only)


@pytest.mark.parametrize("count", [HISTORIES, pytest.param(IN_A_RELEASE, marks=pytest.mark.release)])
def test_random_histories(count: int) -> None:
    """After each step each table has the rows of its ledger once, and a complete run has missed nothing."""
    seen: Counter[str] = Counter()
    for seed in range(count):
        history = History(seed)
        try:
            history.go()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        seen += history.kinds
    assert min(seen[kind] for kind in ("complete", "killed", "WrongTable")) > count / 20, seen


def test_a_first_batch_without_records() -> None:
    """After a first batch without records, as a start at the end has, the same run continues after it."""
    world = World(ends={"0": 9, "1": 0})
    store = cast("Store", MemoryStore(world, "a"))
    landed = Landed(store, "delta", in_notes=False)
    landing = Parts(landed, TablesTarget(landed, cast("Any", world.table)))
    landing.recover()
    landing.use_topic_ids({TOPIC: world.topic_id})
    landing.check(None, None)
    for number, (start, end) in enumerate([(5, 5), (5, 9)]):
        plan = BatchPlan(number, {TOPIC: {"0": OffsetRange(start, end)}})
        batch = landing.begin(plan, "q", {TOPIC: world.topic_id})
        assert batch is not None
        records = read(world, batch.planned)
        landing.complete(batch, landing.write(cast("Any", Writer()), records, batch))
    assert list(offsets_of(world.table(EVENTS).state)) == [("t0", "0", offset) for offset in range(5, 9)]
    check(world)
