"""Events land without duplicates, none is lost, and all are counted, in histories of kills and runs."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.pipeline import WrongTable
from cloudevents_kafka.spark.pipeline.batches import without_duplicates
from cloudevents_kafka.spark.pipeline.landing import Landed, TablesTarget
from cloudevents_kafka.spark.pipeline.stores import LocalStore
from cloudevents_kafka.spark.pipeline.tables import Table, table_in_folder
from tests.spark.pipeline.landing.compared import START, STEPS, History, Place, Sent, cut
from tests.spark.pipeline.landing.parts import Parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
FORMATS = ["delta", "iceberg"]
BATCHES = int(os.environ.get("BATCHES", "25"))
HOUR = 3600
FAR = [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, 59, tzinfo=dt.UTC), None]


def open_table(spark: SparkSession, table_format: Any, out: Path, name: str) -> Table:
    return table_in_folder(spark, table_format, f"file://{out / name}")


def history(spark: SparkSession, table_format: str, out: Path, notes: str = "notes") -> History:
    opened = partial(open_table, spark, table_format, out)

    def open_landing(store: LocalStore) -> Parts:
        landed = Landed(store, table_format, in_notes=False)
        compare = partial(without_duplicates, within=HOUR)
        return Parts(landed, TablesTarget(landed, opened, compare=compare))

    return History(spark, out / notes, opened, open_landing)


def sent(id_: str, at: dt.datetime | None, mode: Any = "binary") -> Sent:
    record = to_record(Event(id=id_, source="/s", type=f"t{mode}", data=b"1"), mode=mode)
    return Sent(None, record.value, list(record.headers), at)


BROKEN = Sent(None, b"{", [("ce_id", b"1")])


def at(minutes: float) -> dt.datetime:
    return START + dt.timedelta(minutes=minutes)


def seconds(time: dt.datetime | None) -> float:
    return 0.0 if time is None else (time - FAR[0]).total_seconds()  # type: ignore[operator]


def id_of(record: Sent) -> str:
    headers = dict(record.headers)
    found = headers.get("ce_id")
    return found.decode() if found else str(record.value).partition('"id":"')[2].partition('"')[0]


class Model:
    """The places of the rows that must have landed."""

    def __init__(self) -> None:
        self.rows: dict[Place, Sent] = {}
        self.broken: list[Place] = []

    def apply(self, log: list[list[Sent]], starts: list[int], ends: list[int], within: int) -> None:
        new: dict[str, tuple[Place, Sent]] = {}
        for partition in range(2):
            for offset in range(starts[partition], ends[partition]):
                record = log[partition][offset]
                if record is BROKEN:
                    self.broken.append((partition, offset))
                elif not any(
                    id_of(row) == id_of(record)
                    and abs(seconds(row.timestamp) - seconds(record.timestamp)) <= within
                    for row in self.rows.values()
                ):
                    new.setdefault(id_of(record), ((partition, offset), record))
        self.rows.update(new.values())


def check(history: History, model: Model) -> None:
    """Check the rows, the quarantine, the counts, and the law itself."""
    rows = [(row["partition"], row["offset"]) for row in history.rows()]
    assert rows == sorted(model.rows)
    assert history.quarantined() == sorted(model.broken)
    total = history.total.check()
    assert (total.events, total.quarantined) == (len(rows), len(model.broken))
    assert total.read == sum(history.landed) == total.events + total.quarantined + total.duplicates
    ids = {id_of(row) for row in model.rows.values()}
    for partition, end in enumerate(history.landed):
        for record in history.log[partition][:end]:
            assert record is BROKEN or id_of(record) in ids


def run(
    spark: SparkSession, table_format: str, out: Path, seed: int, batches: int, kills: Sequence[str] = ()
) -> None:
    chance = random.Random(seed)
    subject, model = history(spark, table_format, out), Model()
    for number in range(batches):
        for log in subject.log:
            for _ in range(chance.randint(1, 10)):
                time = at(40 * number + chance.randint(-90, 90))
                time = chance.choice(FAR) if chance.random() < 0.1 else time
                mode = chance.choice(["binary", "structured"])
                log.append(BROKEN if chance.random() < 0.2 else sent(str(chance.randrange(15)), time, mode))
        starts, ends = list(subject.landed), cut(subject, chance)
        subject.land(ends, kills[number] if number < len(kills) else chance.choice([None, *STEPS]))
        model.apply(subject.log, starts, ends, HOUR)
        check(subject, model)
        if chance.random() < 0.2:
            subject.begin_run(fresh=True)


@pytest.mark.parametrize(
    "table_format", [pytest.param(to, marks=[] if to == "iceberg" else pytest.mark.release) for to in FORMATS]
)
def test_history(session: SparkSession, tmp_path: Path, table_format: str) -> None:
    """After each batch, killed or not, rows, quarantine and counts are those of the model."""
    run(session, table_format, tmp_path, 1, 1, ("events",))


@pytest.mark.release
@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("table_format", FORMATS)
def test_long_histories(session: SparkSession, tmp_path: Path, table_format: str, seed: int) -> None:
    """So it is in long histories."""
    run(session, table_format, tmp_path, seed, BATCHES)


@pytest.mark.release  # random timestamps are in each history
def test_no_timestamp_moves_the_bound(session: SparkSession, tmp_path: Path) -> None:
    """After a record of the year 9999 others land, also those without a timestamp; broken ones all stay."""
    subject = history(session, "delta", tmp_path)
    subject.log[0] += [sent("1", FAR[1]), sent("2", at(0)), BROKEN]
    subject.land([3, 0])
    subject.log[0] += [sent("1", at(1)), sent("2", at(60)), sent("2", at(61)), BROKEN, BROKEN]
    subject.log[1] += [sent("3", None), sent("1", FAR[1])]
    subject.land([6, 2])
    places = [(row["partition"], row["offset"]) for row in subject.rows()]
    assert places == [(0, 0), (0, 1), (0, 3), (0, 5), (1, 0)]
    subject.land([8, 2])
    assert len(subject.quarantined()) == 3
    assert (subject.total.read, subject.total.duplicates) == (10, 2)


@pytest.mark.release
def test_another_commit_after_the_comparison(session: SparkSession, tmp_path: Path) -> None:
    """If another pipeline commits after the comparison, the run ends, and a later one compares again."""
    first, second = (history(session, "delta", tmp_path, notes) for notes in ("first", "second"))
    first.log[0] += [sent("1", at(0))]
    second.log[1] += [sent("1", at(1))]
    first.land([1, 0])
    first.log[0] += [sent("2", at(0))]
    stage = first.landing.target.append

    def be_late(table: str, rows: Any) -> bool:
        staged = stage(table, rows)
        second.land([0, 1])
        return staged

    first.landing.target.append = be_late  # type: ignore[attr-defined]
    with pytest.raises(WrongTable, match="one pipeline at a time"):
        first.land([2, 0])
    assert second.total.duplicates == 1
    first.begin_run()
    begun = first.landing.begun()
    assert begun is not None
    first._finish(begun)
    assert [row["id"] for row in first.rows()] == ["1", "2"]
