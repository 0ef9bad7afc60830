"""The law of landing holds in random histories of pipelines and backfills, killed anywhere.

The model is that of `test_landing_law`: tables, folders and a topic in memory. A pipeline may begin at the
end of the topic, and a backfill reads a part of what was before. At the end all of it has landed, once.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cloudevents_kafka.spark.pipeline import PipelineError, PipelineOptions
from cloudevents_kafka.spark.pipeline.landing import (
    BatchLander,
    Landed,
    Landing,
    TablesTarget,
    _lander,
    _tables_target,
)
from cloudevents_kafka.spark.pipeline.notes import EVENTS, ReadSettings
from cloudevents_kafka.spark.pipeline.options import BackfillRange
from cloudevents_kafka.spark.pipeline.runs import _backfill
from cloudevents_kafka.spark.pipeline.runs._backfill import Backfill
from tests.spark.pipeline.landing import test_landing_law as law

HISTORIES = int(os.environ.get("HISTORIES", "150"))
IN_A_RELEASE = 500
STEPS = 12


class Topics(law.Topics):
    """Topics with two partitions."""

    @property
    def partitions(self) -> dict[str, int]:
        return {"orders": 2}


class Lander(BatchLander):
    """Reads records of the model."""

    world: law.World

    def _records(self, spark: Any, offsets: Any) -> Any:
        return law.read(self.world, offsets)


class Gaps(Backfill):
    """A backfill of a folder in memory; see `Backfill`."""

    def __init__(
        self,
        world: law.World,
        pipeline: str,
        asked: str,
        read: ReadSettings,
        rng: random.Random,
        meanwhile: Any,
    ) -> None:
        most = rng.choice([1, 3, 99])
        self._asked = BackfillRange.of(asked)
        self._options = PipelineOptions(
            bootstrap_servers="b:1",
            topics=("orders",),
            out=f"{pipeline}-own",
            to="delta",
            backfill=asked,
            max_records=most,
        )
        landed = Landed(cast("Any", law.MemoryStore(world, pipeline)), "delta", in_notes=False)
        self._landing = Landing(landed, TablesTarget(landed, cast("Any", world.table), read), read)
        parts: Any = (None, Topics(world), law.Writer(meanwhile))
        lander = Lander(self._options, *self._landing, *parts)
        lander.world = world
        self._lander, self._admin = lander, cast("Any", self)
        self._world, self._spark, self._stopping = world, cast("Any", world), False
        counts = SimpleNamespace(batches=0, count=lambda _: None, report=lambda _: None)
        self._watch = cast("Any", counts)
        self._recover()
        self._find_gaps()

    def offsets_at(self, topic: str, numbers: Any, position: Any) -> dict[str, int]:
        return dict(self._world.begins if position == "earliest" else self._world.ends)


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for user in (_lander, _tables_target):
        monkeypatch.setattr(user, "filter_offsets", law.only)
    monkeypatch.setattr(_backfill, "open_store", lambda out, world: law.MemoryStore(world, out))


def backfill(
    world: law.World, asked: str, read: ReadSettings, rng: random.Random, meanwhile: Any = None
) -> None:
    gaps = Gaps(world, "a", asked, read, rng, meanwhile)
    while gaps._gaps:
        gaps._land_next()


class History:
    """A random history, and the law after each of its steps."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = law.World()
        self.kinds: Counter[str] = Counter()
        # Backfills that run at the same time must have the same settings. A lock keeps others out.
        self.alone = self.rng.random() < 0.5

    def go(self) -> None:
        steps = [*[self.produce] * 3, *[self.run] * 3, *[self.run_killed] * 3, *[self.backfill] * 3]
        steps += [*[self.backfill_killed] * 4, *[self.both] * (2 if self.alone else 8)]
        for _ in range(STEPS):
            self.rng.choice(steps)()
            law.check(self.world)
        self.world.steps_to_live = -1
        self._run()
        if not self.world.table(EVENTS).exists():
            return
        backfill(self.world, "earliest..latest", ReadSettings(), self.rng)
        law.check(self.world)
        law.check_complete(self.world)

    def produce(self) -> None:
        self.world.ends[self.rng.choice("01")] += self.rng.randrange(12)

    def _run(self) -> None:
        """Run the pipeline; a new one begins at the earliest offsets or at the latest."""
        begins = self.world.begins
        if "a" not in self.world.checkpoints and self.rng.random() < 0.8:
            self.world.begins = dict(self.world.ends)
        try:
            law.run(self.world, "a", self.rng)
        finally:
            self.world.begins = begins

    def run(self) -> None:
        self.world.steps_to_live = -1
        self._run()
        self.kinds["run"] += 1

    def run_killed(self) -> None:
        self.world.steps_to_live = self.rng.randrange(1, 20)
        self._attempt(self._run)

    def backfill(self, meanwhile: Any = None) -> None:
        self.world.steps_to_live = -1
        self._attempt(lambda: self._backfill(meanwhile))

    def backfill_killed(self) -> None:
        self.world.steps_to_live = self.rng.randrange(1, 20)
        self._attempt(self._backfill)

    def both(self) -> None:
        """Backfill while the pipeline, or another backfill, lands a batch."""
        other = self._run if self.alone else self.rng.choice([self._run, self._backfill])
        self.backfill(lambda: self._attempt(other) if self.rng.random() < 0.5 else None)

    def _backfill(self, meanwhile: Any = None) -> None:
        start, size = self.rng.randrange(20), self.rng.randrange(20)
        asked = self.rng.choice(["earliest..latest", f"{start}..{start + size}", f"{start}..latest"])
        read = ReadSettings(lenient=self.alone and self.rng.random() < 0.5)
        backfill(self.world, asked, read, self.rng, meanwhile)
        self.kinds["backfill"] += 1

    def _attempt(self, step: Any) -> None:
        try:
            step()
        except PipelineError as error:
            self.kinds[type(error).__name__] += 1
        except law.Killed:
            self.kinds["killed"] += 1


@pytest.mark.parametrize("count", [HISTORIES, pytest.param(IN_A_RELEASE, marks=pytest.mark.release)])
def test_random_histories(count: int) -> None:
    """After each step each table has the rows of its ledger once, and no run of the pipeline is stopped."""
    seen: Counter[str] = Counter()
    for seed in range(count):
        history = History(seed)
        try:
            history.go()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        seen += history.kinds
    assert min(seen[kind] for kind in ("run", "backfill", "killed")) > count / 20, seen
    assert seen["WrongTable"] or count < 500, seen  # of two at once
