"""The law of replays holds in random histories of kills, other commits, and replays at once.

The model has tables and the folder in memory; what replays is the code of the pipeline. After each step no
record is in the tables of events twice, and what has landed by an outcome is in them.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline import InUse, PipelineError, ReplayOptions, WrongTable
from cloudevents_kafka.spark.pipeline.notes import (
    EVENTS,
    OUTCOMES,
    Ledger,
    OffsetRange,
    ReadSettings,
    WrongCheckpoint,
)
from cloudevents_kafka.spark.pipeline.replays import _replay
from cloudevents_kafka.spark.pipeline.replays._replay_landing import TablesReplay
from cloudevents_kafka.spark.pipeline.replays._replay_notes import ReplayNote, ReplayNotes
from cloudevents_kafka.spark.pipeline.tables import LedgerChanged, Staged

HISTORIES = int(os.environ.get("HISTORIES", "500"))
STEPS = 12
TABLES = (EVENTS, "payments")
Row = tuple[int, str]  # offset, and the table of its event, or "" while it is refused
MODULE = "cloudevents_kafka.spark.pipeline.replays._rereading"


class Killed(BaseException):
    """The process ends here."""


@dataclass
class World:
    """What outlives a process, and when the process is killed."""

    rng: random.Random
    quarantine: list[int] = field(default_factory=list)
    tables: dict[str, MemoryTable] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    steps_to_live: int = -1
    landed: int = 0  # offsets that the pipeline has landed

    def table(self, name: str) -> MemoryTable:
        return self.tables.setdefault(name, MemoryTable(self, name))

    def step(self) -> None:
        """Kill the process if its time has come."""
        self.steps_to_live -= 1
        if self.steps_to_live == 0:
            raise Killed

    def pipeline_lands(self) -> None:
        """Land a batch of the pipeline, of which some records are in the quarantine."""
        before = self.landed
        self.landed += self.rng.randrange(1, 6)
        self.quarantine += [number for number in range(before, self.landed) if number % 2]
        table = self.table(EVENTS)
        ranges = {"orders": {"0": OffsetRange(before, self.landed)}}
        table.state = table.state.add("p", {}, ranges)


class MemoryTable:
    """A table whose commit is one assignment."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.rows: list[Row] = []
        self.state = Ledger()

    def ledger(self) -> Ledger:
        return self.state

    def stage(self, rows: list[Row]) -> Staged:
        self.world.step()
        return Staged(list(rows), len(rows))

    def commit(self, staged: list[Staged], before: Ledger, after: Ledger) -> None:
        self.world.step()
        if self.world.rng.random() < 0.2 and self.name == EVENTS:
            self.world.pipeline_lands()
        if before.generation != self.state.generation:
            raise LedgerChanged("read again")
        self.rows = [*self.rows, *(row for part in staged for row in part.files)]
        self.state = after
        self.world.step()


class MemoryStore:
    """A folder whose files are created in one step."""

    def __init__(self, world: World) -> None:
        self.world, self.files = world, world.files

    def url(self, path: str) -> str:
        return path

    def list_names(self, folder: str) -> list[str]:
        prefix = f"{folder}/"
        return sorted({path[len(prefix) :].split("/")[0] for path in self.files if path.startswith(prefix)})

    def exists(self, path: str) -> bool:
        return path in self.files

    def read(self, path: str) -> bytes:
        content: bytes = self.files[path]
        return content

    def create(self, path: str, content: bytes) -> None:
        self.world.step()
        if path in self.files:
            raise FileExistsError(path)
        self.files[path] = content
        self.world.step()

    def replace(self, path: str, content: bytes) -> None:
        self.files.pop(path, None)
        self.world.step()
        self.files[path] = content

    def remove(self, path: str) -> None:
        for name in [name for name in self.files if name == path or name.startswith(f"{path}/")]:
            self.world.step()
            del self.files[name]


class Again:
    """Rows that were read again, and what happens while they are staged."""

    def __init__(self, world: World, rows: list[Row], meanwhile: Callable[[], None]) -> None:
        self.world, self.rows, self._meanwhile = world, rows, meanwhile
        self.write = self

    def parquet(self, path: str) -> None:
        self.world.step()
        self.world.files[path] = self.rows
        self._meanwhile()


class Folder(_replay._Folder):
    """The folder of a pipeline, in memory."""

    def __init__(self, world: World, mended: Callable[[int], str], meanwhile: Callable[[], None]) -> None:
        self.world, self._mended, self._meanwhile = world, mended, meanwhile
        self._store = cast("Any", MemoryStore(world))
        self._spark = cast("Any", None)
        self._options = ReplayOptions(out="lake", apply=True)
        self._notes = ReplayNotes(self._store)
        self._read = ReadSettings(routes={"payment": "payments"}, writers={})
        self._target = TablesReplay(cast("Any", world.table), ["payments"], self._spark)
        self.outcomes_table = ""

    def _chosen(self) -> Any:
        known = {offset for offset, table in self.world.table(OUTCOMES).rows if table}
        rows = [(offset, self._mended(offset)) for offset in self.world.quarantine if offset not in known]
        if self.world.rng.random() < 0.5:
            self._meanwhile()
        return Again(self.world, rows, self._meanwhile)

    def _staged(self, note: ReplayNote) -> Any:
        rows = self.world.files.get(f"{note.staging}/rows")
        if rows is None:
            raise WrongCheckpoint("the staged rows were removed")
        return rows


def count(rows: list[Row], _routes: Any) -> dict[str, Any]:
    tables = Counter(table for _, table in rows if table)
    outcomes = Counter("landed" if table else "refused" for _, table in rows)
    return {"counts": {}, "outcomes": dict(outcomes), "tables": dict(tables)}


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rows be lists."""
    reading = SimpleNamespace(
        read_again=lambda rows, *_: rows,
        count_outcomes=count,
        event_rows=lambda staged, note, table: [row for row in staged if row[1] == table],
        outcome_rows=lambda staged, note: staged,
    )
    monkeypatch.setitem(sys.modules, MODULE, cast("Any", reading))
    monkeypatch.setattr(_replay, "write_settings", lambda _: nullcontext())


def check(world: World) -> None:
    """Check the law."""
    events = [offset for table in TABLES for offset, _ in world.table(table).rows]
    assert max(Counter(events).values(), default=1) == 1
    outcomes = [offset for offset, table in world.table(OUTCOMES).rows if table]
    assert max(Counter(outcomes).values(), default=1) == 1
    assert set(outcomes) <= set(events)
    for table in TABLES:
        assert all(row[1] == table for row in world.table(table).rows)


class History:
    """A random history, and the law after each of its steps."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World(self.rng)
        self.kinds: Counter[str] = Counter()

    def go(self) -> None:
        steps = [self.world.pipeline_lands, *[self.replay] * 2, *[self.replay_killed] * 4, self.replay_both]
        steps.append(self.remove_notes)
        for _ in range(STEPS):
            self.rng.choice(steps)()
            check(self.world)
        self.world.steps_to_live = -1
        if self.kinds["removed"]:
            return
        Folder(self.world, lambda _: EVENTS, lambda: None).replay(None)
        check(self.world)
        events = {offset for table in TABLES for offset, _ in self.world.table(table).rows}
        decided = set(self.world.quarantine)
        assert decided - events <= self.late  # which came while the last replay was committed

    @property
    def late(self) -> set[int]:
        known = {offset for offset, _ in self.world.table(OUTCOMES).rows}
        return set(self.world.quarantine) - known

    def _mended(self) -> Callable[[int], str]:
        """Return a function that mends some records, others than the one before."""
        table = {number: self.rng.choice(["", *TABLES]) for number in range(self.world.landed + 99)}
        return table.__getitem__

    def _run(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        try:
            summary = Folder(self.world, self._mended(), meanwhile).replay(None)
        except (InUse, WrongTable, WrongCheckpoint) as error:
            self.kinds[type(error).__name__] += 1
        except Killed:
            self.kinds["killed"] += 1
        else:
            self.kinds["finished" if summary.finished else "complete"] += 1

    def replay(self) -> None:
        self.world.steps_to_live = -1
        self._run()

    def replay_killed(self) -> None:
        self.world.steps_to_live = self.rng.randrange(1, 22)
        self._run()

    def replay_both(self) -> None:
        """Replay while another run does."""
        self.world.steps_to_live = -1
        self._run(self._run)

    def remove_notes(self) -> None:
        """Remove the notes of replays, some of which may be unfinished."""
        if self.rng.random() < 0.1:
            self.kinds["removed"] += 1
            for name in list(self.world.files):
                del self.world.files[name]


class LockedHistory(History):
    """A history of a folder that is locked: replays are killed, and begun with other options."""

    def go(self) -> None:
        for _ in range(STEPS):
            self.rng.choice([self.world.pipeline_lands, self.replay, *[self.replay_killed] * 3])()
            check(self.world)
        self.replay()
        check(self.world)

    def rows(self) -> set[Row]:
        return {row for table in TABLES for row in self.world.table(table).rows}

    def _run(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        numbers = [self.world.table(name).state.replays for name in (*TABLES, OUTCOMES)]
        is_decided, before, lenient = max(numbers) > numbers[-1], self.rows(), self.rng.random() < 0.5

        def mended(offset: int) -> str:
            """Return what a record is, which only the options of the start decide."""
            return ("", *TABLES)[(offset + lenient) % 3]

        folder = Folder(self.world, mended, meanwhile)
        folder.is_locked, folder._read = True, replace(folder._read, lenient=lenient)
        try:
            folder.replay(None)
        except Killed:
            self.kinds["killed"] += 1
        else:
            self.kinds["decided" if is_decided else "anew"] += 1
        if not is_decided:
            assert all(table == mended(offset) for offset, table in self.rows() - before)


def test_random_options() -> None:
    """In a locked folder a replay that is in no table is withdrawn by a start with other options."""
    seen: Counter[str] = Counter()
    for seed in range(HISTORIES):
        history = LockedHistory(seed)
        try:
            history.go()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        seen += history.kinds
    assert min(seen[kind] for kind in ("anew", "killed", "decided")) > HISTORIES / 20, seen


def histories() -> Iterator[Counter[str]]:
    for seed in range(HISTORIES):
        history = History(seed)
        try:
            history.go()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        yield history.kinds


def test_random_histories() -> None:
    """After each step no record has landed twice, and at the end all have landed that are events."""
    seen = sum(histories(), Counter[str]())
    assert min(seen[kind] for kind in ("complete", "killed", "finished", "InUse")) > HISTORIES / 20, seen
    assert issubclass(InUse, PipelineError)
