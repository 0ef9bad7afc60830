"""A batch that has begun decides nothing before a table has a row of it, in random histories of options.

A pipeline is started with routes, schemas and other options that change, of which some fail at each start,
and is killed at any step. The tables are in memory; what lands batches is the code of the pipeline. HISTORIES
is the number of histories.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from contextlib import suppress
from typing import Any, NamedTuple, cast

import pytest
from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline import PipelineError, PipelineFailed
from cloudevents_kafka.spark.pipeline.landing import BatchLander, Landed, Landing, TablesTarget
from cloudevents_kafka.spark.pipeline.notes import (
    EVENTS,
    QUARANTINE,
    BatchCounts,
    BegunBatch,
    OffsetRanges,
    ReadSettings,
)
from cloudevents_kafka.spark.pipeline.runs._fresh_start import use_newest_start
from cloudevents_kafka.spark.pipeline.stores import Store
from cloudevents_kafka.spark.typed.framed import Writer as Registered
from cloudevents_kafka.spark.typed.schemas import DataSchema
from cloudevents_kafka.spark.typed.shape import Member, Shape, struct
from tests.spark.pipeline.landing.test_landing_law import (
    OPTIONS,
    TOPIC,
    Killed,
    MemoryStore,
    Records,
    SparkState,
    Topics,
    World,
    in_memory,  # noqa: F401  # a fixture
    only,
    read,
)
from tests.spark.pipeline.landing.test_landing_law import count as count_rows

HISTORIES = int(os.environ.get("HISTORIES", "100"))
IN_A_RELEASE = 300
STEPS = 16
TYPES = ("a", "b", "c")
WRONG = "wrong"


class Start(NamedTuple):
    """How a run is started; no table can take the rows of the schema `WRONG`."""

    routes: tuple[tuple[str, str], ...]
    schema: str
    rescue: bool
    lenient: bool
    registry: str

    @property
    def schemas(self) -> dict[str, DataSchema]:
        member = Member(self.schema, Shape("INT"))
        return {"a": DataSchema("json", struct((member,), ""))} if self.schema else {}

    @property
    def writers(self) -> dict[str, Registered] | None:
        return {"1": Registered("AVRO", (self.registry,))} if self.registry else None

    @property
    def reading(self) -> Any:
        """What must be the same for all rows of a batch, and in its note."""
        return (dict(self.routes), self.schemas, self.rescue, self.lenient, self.writers)


def reading_of(batch: BegunBatch) -> Any:
    return (batch.routes, batch.schemas, batch.rescue, batch.lenient, batch.writers)


def table_of(offset: int, batch: BegunBatch) -> str:
    """Return the table of a record as a batch reads it: some are events only leniently, or with rescue."""
    if offset % 7 == 3 or (offset % 7 == 4 and not batch.lenient):
        return QUARANTINE
    type_ = TYPES[offset % 3]
    if type_ in batch.schemas and offset % 2 and not batch.rescue:
        return QUARANTINE
    return batch.routes.get(type_, EVENTS)


class Writer:
    """Stages the rows of each table, with how they were read; fails where the tables cannot take them."""

    def starts_in_java(self, _: Any) -> bool:
        return True

    def write(self, records: Records, batch: BegunBatch, append: Any) -> BatchCounts:
        by_table: dict[str, list[Any]] = {EVENTS: []}
        for row in only(records, batch.offsets).rows:
            by_table.setdefault(table_of(row[2], batch), []).append((*row, reading_of(batch)))
        wrong = any(schema.shape.members[0].name == WRONG for schema in batch.schemas.values())
        for table, rows in by_table.items():
            if wrong and table != QUARANTINE:
                raise PipelineFailed("the table cannot take the rows")
            append(table, rows)
        rows = [row[:3] for rows in by_table.values() for row in rows]
        found = {table: len(rows) for table, rows in by_table.items() if table != QUARANTINE}
        others = len(by_table.get(QUARANTINE, ()))
        events = len(rows) - others
        return replace(
            count_rows(rows),
            events=events,
            quarantined=others,
            by_type={"t": {"binary": events}} if events else {},
            by_reason={"r": {"c": others}} if others else {},
            routed={table: number for table, number in found.items() if number and table != EVENTS},
        )

    def write_kept(self, records: Records, batch: BegunBatch, take: Any, _: Any) -> BatchCounts:
        return self.write(records, batch, take.__self__.append)


class Lander(BatchLander):
    """Reads records from memory."""

    world: World
    start: Start

    def _records(self, spark: Any, offsets: OffsetRanges) -> Any:
        return read(self.world, offsets)

    def _find_writers(self, *_: Any) -> Any:
        return self.start.writers


class Run:
    """A run with the options of its start."""

    def __init__(self, world: World, start: Start, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        store = cast("Store", MemoryStore(world, "a"))
        self.landed = Landed(store, "delta", in_notes=False)
        read = ReadSettings(
            lenient=start.lenient, routes=dict(start.routes), schemas=start.schemas, rescue=start.rescue
        )
        target = TablesTarget(self.landed, cast("Any", world.table), read)
        self.landing = Landing(self.landed, target, read)
        state, topics, writer = world.checkpoints.get("a"), Topics(world), Writer()
        parts: Any = (state, topics, writer)
        self.lander = Lander(OPTIONS, *self.landing, *parts)
        self.lander.world, self.lander.start = world, start

    def go(self) -> None:
        """Land the topic to its end, as `Job` does."""
        world, lander = self.world, self.lander
        lander.recover()
        state = world.checkpoints.get("a")
        lander.check_start(state and state.query, state and state.last_committed())
        lander.finish_begun(cast("Any", None))
        if state is None:
            ranges = self.landed.landed.get(TOPIC, {})
            starts = {**world.begins, **{number: range_.end for number, range_ in ranges.items()}}
            world.made += 1
            state = world.checkpoints["a"] = SparkState(f"q{world.made}", starts)
        lander._checkpoint = cast("Any", state)
        while True:
            world.step()
            if len(state.ends) == state.committed:
                before = state.ends[-1] if state.ends else state.starts
                if before == world.ends and state.ends:
                    return
                most = self.rng.choice([3, 9, 99])
                state.ends.append({n: min(end, before[n] + most) for n, end in world.ends.items()})
            lander.land(read(world, state.plan(state.committed).ranges), state.committed, state.query)
            state.committed += 1


class History:
    """A random history, with what must hold after each step."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World()
        self.kinds: Counter[str] = Counter()

    def rows(self) -> dict[tuple[str, int], tuple[str, Any]]:
        """Return table and reading of each row; no record may be there twice."""
        found: dict[tuple[str, int], tuple[str, Any]] = {}
        for name, table in self.world.tables.items():
            for _, partition, offset, reading in cast("Any", table.rows):
                assert (partition, offset) not in found
                found[partition, offset] = (name, reading)
        return found

    def start(self, *, works: bool = False) -> Start:
        choose = self.rng.choice
        routes = choose([(), (("a", "orders"),), (("a", "orders"), ("b", "more")), (("b", "orders"),)])
        schema = choose(["", "x", "y", *([] if works else [WRONG, WRONG])])
        return Start(routes, schema, choose([True, False]), choose([True, False]), choose(["", "r"]))

    def begin(self) -> None:
        self.world.ends[self.rng.choice("01")] += self.rng.randrange(15)

    def run(self, *, works: bool = False, steps: int = -1) -> None:
        world, start, before = self.world, self.start(works=works), self.rows()
        # Rows of a batch whose events have not landed.
        ledger = world.table(EVENTS).state.landed({TOPIC: world.topic_id}).get(TOPIC, {})
        half = {place for place in before if place[1] >= (ledger[place[0]].end if place[0] in ledger else 0)}
        readings = [before[place][1] for place in half]
        world.steps_to_live = steps
        try:
            Run(world, start, self.rng).go()
        except Killed:
            self.kinds["killed"] += 1
        except PipelineError:
            self.kinds["failed" if start.schema == WRONG else "wrong"] += 1
        else:
            self.kinds["complete"] += 1
            self.check_complete()
        self.kinds["half"] += bool(half)
        for place, (_, reading) in self.rows().items():
            if place not in before:  # by this start, or as the rows of its batch that were there
                assert reading == start.reading or reading in readings, place

    def check_complete(self) -> None:
        found = self.rows()
        assert len(found) == sum(end - self.world.begins[n] for n, end in self.world.ends.items())

    def check(self) -> None:
        """Check that each row is in the table that its reading names."""
        for (_, offset), (table, reading) in self.rows().items():
            routes, schemas, rescue, lenient, _ = reading
            note: Any = BegunBatch(
                number=0,
                batch=0,
                query="",
                ids={},
                offsets={},
                planned={},
                in_java=True,
                routes=routes,
                schemas=schemas,
                rescue=rescue,
                lenient=lenient,
            )
            assert table == table_of(offset, note)

    def go(self) -> None:
        for _ in range(STEPS):
            kind = self.rng.randrange(9)
            if kind < 2:
                self.begin()
            elif kind < 4:
                self.run()
            elif kind < 5:
                self.world.checkpoints.pop("a", None)
            else:
                self.run(steps=self.rng.randrange(1, 25))
            self.check()
        self.run(works=True)
        self.check()
        self.check_complete()


@pytest.mark.parametrize("count", [HISTORIES, pytest.param(IN_A_RELEASE, marks=pytest.mark.release)])
def test_random_options(count: int) -> None:
    """After any history one start with options that work lands all; all rows of a batch are read alike."""
    seen: Counter[str] = Counter()
    for seed in range(count):
        history = History(seed)
        try:
            history.go()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        seen += history.kinds
    assert not seen["wrong"]
    assert min(seen[kind] for kind in ("complete", "killed", "failed", "half")) > count / 5, seen


def test_another_start_after_rows() -> None:
    """A start at other offsets does not forget a batch of which a table has rows."""
    world, rng = World(ends={"0": 30, "1": 0}), random.Random(1)
    start = Start((), "", rescue=False, lenient=False, registry="")
    kept = None
    while kept is None:  # killed later and later, until the quarantine has rows and the events have none
        world.steps_to_live = rng.randrange(1, 20)
        with suppress(Killed):
            Run(world, start, rng).go()
        if world.table(QUARANTINE).rows and not world.table(EVENTS).state.generation:
            kept = world
        elif world.table(EVENTS).state.generation:
            world = World(ends={"0": 30, "1": 0})
    world.steps_to_live = -1
    run, warnings = Run(world, start, rng), list[str]()
    run.lander.recover()
    use_newest_start(run.landing, cast("Any", None), "latest", run.lander.recover, warnings.append)
    assert "has no effect" in warnings[0]


def test_a_note_of_a_failed_start() -> None:
    """What a failed start has noted is read by the options of the next one, for the same offsets."""
    world, rng = World(ends={"0": 9, "1": 3}), random.Random(2)
    wrong = Start((("a", "orders"),), WRONG, rescue=True, lenient=True, registry="r")
    with pytest.raises(PipelineFailed):
        Run(world, wrong, rng).go()
    right = Start((), "y", rescue=False, lenient=False, registry="")
    run = Run(world, right, rng)
    run.lander.recover()
    begun = run.landed.begun()
    assert begun is not None
    assert not run.landing.target.is_decided(begun)
    assert reading_of(begun) == wrong.reading
    run = Run(world, right, rng)
    run.go()
    readings = [row[3] for table in world.tables.values() for row in cast("Any", table.rows)]
    assert readings == [right.reading] * 12
