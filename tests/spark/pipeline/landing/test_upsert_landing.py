"""A topic of changes becomes a table with one row for each key, in random histories of kills and runs."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.pipeline import WrongTable
from cloudevents_kafka.spark.pipeline.batches import row_changes
from cloudevents_kafka.spark.pipeline.landing import Landed, TablesTarget
from cloudevents_kafka.spark.pipeline.notes import EVENTS, BatchPlan, ReadSettings, Upsert
from cloudevents_kafka.spark.pipeline.stores import LocalStore
from cloudevents_kafka.spark.pipeline.tables import Table, table_in_folder
from cloudevents_kafka.spark.pipeline.tables._table import KEYS
from tests.spark.pipeline.landing.compared import STEPS, TOPIC, History, Place, Sent, cut
from tests.spark.pipeline.landing.parts import Parts
from tests.spark.pipeline.sample_batches import ranges, take
from tests.spark.pipeline.sample_batches import rows as rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
FORMATS = ["delta", "iceberg"]
BATCHES = int(os.environ.get("BATCHES", "25"))


def open_table(spark: SparkSession, table_format: Any, out: Path, upsert: Upsert | None, name: str) -> Table:
    keys = upsert if name == EVENTS else None
    return table_in_folder(spark, table_format, f"file://{out / name}", keys)


def history(spark: SparkSession, table_format: str, out: Path, upsert: Upsert) -> History:
    opened = partial(open_table, spark, table_format, out, upsert)

    def open_landing(store: LocalStore) -> Parts:
        landed = Landed(store, table_format, in_notes=False)
        read = ReadSettings(upsert=upsert)
        compare = partial(row_changes, upsert=upsert)
        return Parts(landed, TablesTarget(landed, opened, read, compare=compare), read)

    return History(spark, out / "notes", opened, open_landing)


def fail(*_: Any) -> None:
    """Stand for a kill."""
    raise KeyboardInterrupt


class Model:
    """What rows, quarantine and counts must be."""

    def __init__(self, key_of: Callable[[Sent], Any], deletes: Callable[[Sent], bool]) -> None:
        self.key_of, self.deletes = key_of, deletes
        self.rows: dict[Any, tuple[int, int, bool]] = {}  # partition, offset, and whether it is deleted
        self.refused: list[Place] = []
        self.changes: Counter[str] = Counter()

    def apply(self, log: list[list[Sent]], starts: list[int], ends: list[int]) -> None:
        batch = [
            (partition, offset, log[partition][offset])
            for partition in range(2)
            for offset in range(starts[partition], ends[partition])
        ]
        for partition, offset, sent in batch:
            key = self.key_of(sent)
            # In this order the first partition of a batch has a key without a row.
            row = self.rows.get(key, (partition, -1, True))
            if key is None or row[0] != partition:
                self.refused.append((partition, offset))
                continue
            assert offset > row[1]
            deleted = self.deletes(sent)
            self.changes["deleted" if deleted else "inserted" if row[2] else "updated"] += 1
            self.rows[key] = (partition, offset, deleted)


def change(chance: random.Random, partition: int) -> Sent:
    """Return a random change: of a customer mostly of this partition, or a record that is not one."""
    if chance.random() < 0.05:
        return Sent(b"k0", b"{", [("ce_id", b"1")])  # not an event
    number = chance.randrange(6)
    number = number - number % 2 + partition if chance.random() < 0.9 else number
    key = None if chance.random() < 0.05 else f"k{number}".encode()
    if chance.random() < 0.15:
        return Sent(key, None, [])
    extensions = {"op": chance.choice("cud")}
    data = None if chance.random() < 0.1 else chance.randbytes(3)
    mode = chance.choice(["binary", "structured"])
    event = Event(id="1", source="/s", type="t", subject=f"s{number}", data=data, **extensions)
    record = to_record(event, mode=mode, key=key)
    return Sent(record.key, record.value, list(record.headers))


def is_event(sent: Sent) -> bool:
    return len(sent.headers) > 1 or sent.headers[:1] == [
        ("content-type", b"application/cloudevents+json; charset=UTF-8")
    ]


def deletes(sent: Sent) -> bool:
    return sent.value is None or ("ce_op", b"d") in sent.headers or b'"op":"d"' in sent.value


def check(history: History, model: Model, quarantined: list[Place]) -> None:
    """Check rows, quarantine and counts."""
    rows = {bytes(row["key"]): (row["partition"], row["offset"], row["deleted"]) for row in history.rows()}
    assert rows == model.rows
    assert len(rows) == len(history.rows())
    assert history.quarantined() == sorted([*quarantined, *model.refused])
    total = history.total.check()
    assert dict(total.changes) == dict(model.changes)
    assert total.quarantined == len(history.quarantined())
    for row in history.rows():
        sent = history.log[row["partition"]][row["offset"]]
        assert row["data"] is None or not row["deleted"]
        if not row["deleted"] and ("ce_op", b"c") in sent.headers:
            assert bytes(row["data"]) == sent.value


def run(
    spark: SparkSession, table_format: str, out: Path, seed: int, batches: int, kills: Sequence[str] = ()
) -> None:
    chance = random.Random(seed)
    upsert = Upsert(("key",), ("op", "d"))
    subject = history(spark, table_format, out, upsert)
    model = Model(lambda sent: sent.key, deletes)
    bad: list[Place] = []
    for number in range(batches):
        for partition in range(2):
            for _ in range(chance.randint(1, 12)):
                sent = change(chance, partition)
                # A tombstone without a key, or another record, is not a change.
                if (sent.value is None and not sent.headers and sent.key is None) or sent.value == b"{":
                    bad.append((partition, len(subject.log[partition])))
                    sent = sent._replace(key=None)
                subject.log[partition].append(sent)
        starts, ends = list(subject.landed), cut(subject, chance)
        subject.land(ends, kills[number] if number < len(kills) else chance.choice([None, *STEPS]))
        model.apply(subject.log, starts, ends)
        seen = [place for place in bad if place[1] < ends[place[0]]]
        model.refused = [place for place in model.refused if place not in bad]
        check(subject, model, seen)
        if chance.random() < 0.2:
            subject.begin_run(fresh=True)


@pytest.mark.parametrize(
    "table_format", [pytest.param(to, marks=[] if to == "iceberg" else pytest.mark.release) for to in FORMATS]
)
def test_history(session: SparkSession, tmp_path: Path, table_format: str) -> None:
    """After each batch, killed or not, the table is what the records in order make of it."""
    run(session, table_format, tmp_path, 1, 2, ("quarantine", "events"))


@pytest.mark.release
@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("table_format", FORMATS)
def test_long_histories(session: SparkSession, tmp_path: Path, table_format: str, seed: int) -> None:
    """So it is in long histories."""
    run(session, table_format, tmp_path, seed, BATCHES)


def put(key: str, data: str) -> Sent:
    record = to_record(
        Event(id="1", source="/s", type="t", data=data.encode()), mode="binary", key=key.encode()
    )
    return Sent(record.key, record.value, list(record.headers))


def landed(spark: SparkSession, table_format: str, out: Path, upsert: Upsert) -> History:
    """Return a history whose table of events has one row."""
    subject = history(spark, table_format, out, upsert)
    subject.log[0] += [put("a", "1")]
    subject.land([1, 0])
    return subject


@pytest.mark.release
@pytest.mark.parametrize("table_format", FORMATS)
def test_older_records_change_nothing(session: SparkSession, tmp_path: Path, table_format: str) -> None:
    """Rows that are merged again do not replace newer ones, and do not bring deleted ones back."""
    upsert = Upsert(("key",), None)
    subject = history(session, table_format, tmp_path, upsert)
    subject.log[0] += [put("a", "1"), put("b", "1"), put("c", "1")]
    subject.land([3, 0])
    old = session.createDataFrame(subject.rows(), subject.open_table(EVENTS).read(session).schema)
    subject.log[0] += [put("a", "2"), Sent(b"b", None, [])]
    subject.land([5, 0])
    rows, table = subject.rows(), subject.open_table(EVENTS)
    assert [(bytes(row["key"]), row["offset"], row["deleted"]) for row in rows] == [
        (b"c", 2, False),
        (b"a", 3, False),
        (b"b", 4, True),
    ]
    before = table.ledger()
    table.commit([table.stage(old)], before, before.add("another", {}, {}))
    assert subject.rows() == rows
    assert subject.open_table(EVENTS).ledger().generation == before.generation + 1


@pytest.mark.release
@pytest.mark.parametrize("table_format", FORMATS)
def test_keys_of_a_run_that_landed_nothing(session: SparkSession, tmp_path: Path, table_format: str) -> None:
    """A run that was killed before its first commit does not decide by which keys the next one lands."""
    keys, other = Upsert(("key",), None), Upsert(("subject",), None)
    rows = landed(session, table_format, tmp_path, keys).open_table(EVENTS).read(session)
    killed = open_table(session, table_format, tmp_path / "new", keys, EVENTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(killed), "_merge", fail)
        before = killed.ledger()
        with pytest.raises(KeyboardInterrupt):
            killed.commit([killed.stage(rows)], before, before.add("p", {}, {}))
    table = open_table(session, table_format, tmp_path / "new", other, EVENTS)
    before = table.ledger()
    table.commit([table.stage(rows)], before, before.add("p", {}, {}))
    assert open_table(session, table_format, tmp_path / "new", other, EVENTS).ledger().generation == 1
    with pytest.raises(WrongTable, match="one row for each key, got one row for each subject"):
        open_table(session, table_format, tmp_path / "new", keys, EVENTS).ledger()


@pytest.mark.release
@pytest.mark.parametrize("table_format", FORMATS)
def test_keys_after_a_first_batch_without_rows(
    session: SparkSession, tmp_path: Path, table_format: str
) -> None:
    """Keys are noted with the first rows, if a run was killed before it noted them and landed no row."""
    keys = Upsert(("key",), None)
    rows = landed(session, table_format, tmp_path, keys).open_table(EVENTS).read(session)
    table = open_table(session, table_format, tmp_path / "new", keys, EVENTS)
    table.stage(rows)
    session.sql(f"ALTER TABLE {table._sql_name} UNSET TBLPROPERTIES ('{KEYS}')")
    for staged in ([], [rows]):
        table = open_table(session, table_format, tmp_path / "new", keys, EVENTS)
        before = table.ledger()
        table.commit([table.stage(part) for part in staged], before, before.add("p", {}, {}))
    assert open_table(session, table_format, tmp_path / "new", keys, EVENTS).ledger().generation == 2


@pytest.mark.release
@pytest.mark.parametrize("table_format", FORMATS)
def test_wrong_tables(session: SparkSession, tmp_path: Path, table_format: str) -> None:
    """A table is filled by one set of keys, or by appending, and from one topic of a name."""
    subject = landed(session, table_format, tmp_path, Upsert(("key",), None))
    others = [(Upsert(("subject",), None), "one row for each subject"), (None, "one row for each record")]
    for upsert, words in others:
        with pytest.raises(WrongTable, match=f"must have {words}, got one row for each key"):
            open_table(session, table_format, tmp_path, upsert, EVENTS).ledger()
    appended = open_table(session, table_format, tmp_path / "appended", None, EVENTS)
    take(appended, rows_of(session, 0, 2), ranges(0, 2))
    with pytest.raises(WrongTable, match="one row for each key, got one row for each record"):
        open_table(session, table_format, tmp_path / "appended", Upsert(("key",), None), EVENTS).ledger()
    table = subject.open_table(EVENTS)
    before = table.ledger()
    table.commit([], before, before.add("p", {TOPIC: "old"}, ranges(0, 1, TOPIC)))
    batch = subject.landing.begin(BatchPlan(1, ranges(1, 2, TOPIC)), "q", {})
    assert batch is not None
    with pytest.raises(WrongTable, match=r"topic orders that was deleted \(id old, now new\)"):
        subject.landing.target.start(session, replace(batch, ids={TOPIC: "new"}))
