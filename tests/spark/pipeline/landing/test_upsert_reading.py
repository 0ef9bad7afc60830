"""A row is the last record of its key, in random histories of schemas, deletions, lenient runs and kills.

Each start has options of its own: schemas come, change and go. A model says what each row has. BATCHES is the
number of batches of a long history.
"""

from __future__ import annotations

import json
import os
import random
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.pipeline.batches import row_changes
from cloudevents_kafka.spark.pipeline.landing import Landed, TablesTarget
from cloudevents_kafka.spark.pipeline.notes import EVENTS, BatchPlan, OffsetRange, ReadSettings, Upsert
from cloudevents_kafka.spark.pipeline.stores import LocalStore
from cloudevents_kafka.spark.typed.schemas import DataSchema, data_schema
from tests.spark.pipeline.lake import Lake
from tests.spark.pipeline.landing.compared import STEPS, TOPIC, History, Sent, cut, killed_after
from tests.spark.pipeline.landing.parts import Parts
from tests.spark.pipeline.landing.test_typed_landing import rows_of, send_data
from tests.spark.pipeline.landing.test_upsert_landing import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
FORMATS = ("delta", "iceberg")
BATCHES = int(os.environ.get("BATCHES", "15"))
UPSERT = Upsert(("key",), ("op", "d"))
SCHEMAS = {"": "", "n INT": "n", "n INT, s STRING": "ns", "s STRING": "s"}  # with the names of their members
CHANGELOG = Path(__file__).parents[4] / "CHANGELOG.md"


class Options(NamedTuple):
    """How a start reads."""

    schema: str = ""
    rescue: bool = False
    lenient: bool = False
    in_java: bool = True

    @classmethod
    def draw(cls, chance: random.Random) -> Options:
        schema = chance.choice([*SCHEMAS])
        rescue = bool(schema) and chance.random() < 0.3
        return cls(schema, rescue, chance.random() < 0.4, chance.random() < 0.7)

    @property
    def schemas(self) -> dict[str, DataSchema]:
        return {"order": data_schema(self.schema)} if self.schema else {}


class Change(NamedTuple):
    """A record, and what it is about."""

    sent: Sent
    kind: str = "event"
    type: str = "note"
    data: dict[str, Any] | None = None
    deletes: bool = False
    deviates: bool = False


class Row(NamedTuple):
    """What a row must be."""

    partition: int
    offset: int
    deleted: bool = True
    data: Any = None
    value: Any = None
    tolerated: bool = False


def draw(chance: random.Random, partition: int) -> Change:
    """Return a random change of a key, mostly one of this partition."""
    number = chance.randrange(6)
    number = number - number % 2 + partition if chance.random() < 0.95 else number
    key = f"k{number}".encode()
    if chance.random() < 0.1:
        return Change(Sent(key, None, []), "tombstone", deletes=True)
    type_ = chance.choice(["order", "order", "note"])
    data = {"n": chance.choice([chance.randrange(99), chance.randrange(99), "x"]), "s": "ä"}
    rule = chance.random() < 0.25
    op = {"op": "d" if rule else "u"}
    if chance.random() < 0.15:
        record = to_record(Event(id="1", source="/s", type=type_, **op), mode="binary", key=key)
        return Change(Sent(record.key, None, list(record.headers)), type=type_, deletes=True)
    media = {"datacontenttype": "application/json"}
    event = Event(id="1", source="/s", type=type_, data=data, **media, **op)
    mode = chance.choice(["binary", "structured"])
    record = to_record(event, mode=mode, key=key)
    headers, deviates = list(record.headers), mode == "binary" and chance.random() < 0.25
    if deviates:  # an event for lenient runs only
        headers.append(("ce_subject", b""))
    return Change(Sent(record.key, record.value, headers), "event", type_, data, rule, deviates)


class Model:
    """What the rows of the table must be, and which records are in the quarantine."""

    def __init__(self) -> None:
        self.rows: dict[bytes, Row] = {}
        self.quarantine: list[tuple[int, int]] = []
        self.checked: dict[bytes, str] = {}  # the column of someone else

    def fits(self, change: Change, options: Options) -> bool:
        """Return whether a record is an event, or a tombstone, for these options."""
        if change.deviates and not options.lenient:
            return False
        if change.deletes or change.type != "order" or not options.schema or options.rescue:
            return True
        return change.data is not None and not ("n" in SCHEMAS[options.schema] and change.data["n"] == "x")

    def row(self, change: Change, options: Options, partition: int, offset: int) -> Row:
        tolerated = change.deviates
        if change.deletes:
            return Row(partition, offset, tolerated=tolerated)
        if change.type != "order" or not options.schema:
            return Row(partition, offset, False, change.data, None, tolerated)
        assert change.data is not None
        fitting = {
            name: part
            for name, part in change.data.items()
            if name in SCHEMAS[options.schema] and (name, part) != ("n", "x")
        }
        others = {f"/{name}": part for name, part in change.data.items() if name not in fitting}
        value = {**fitting, "_rescued": others} if options.rescue and others else fitting
        return Row(partition, offset, False, None, value, tolerated)

    def apply(self, batch: list[tuple[int, int, Change]], options: Options) -> None:
        for partition, offset, change in batch:
            key = change.sent.key
            assert key is not None
            known = self.rows.get(key)
            if not self.fits(change, options) or (known is not None and known.partition != partition):
                self.quarantine.append((partition, offset))
            else:
                self.rows[key] = self.row(change, options, partition, offset)


class ReadHistory:
    """Starts with random options that land in one table, and the model."""

    def __init__(self, spark: SparkSession, table_format: str, out: Path, seed: int) -> None:
        self.spark, self.format, self.chance = spark, table_format, random.Random(seed)
        self.options = Options()
        self.changes: list[list[Change]] = [[], []]
        self.model = Model()
        self._opened = partial(open_table, spark, table_format, out, UPSERT)
        self.history = History(spark, out / "notes", self._opened, self._open_landing)

    def _open_landing(self, store: LocalStore) -> Parts:
        options, landed = self.options, Landed(store, self.format, in_notes=False)
        compare = partial(row_changes, upsert=UPSERT)
        read = ReadSettings(
            lenient=options.lenient, schemas=options.schemas, rescue=options.rescue, upsert=UPSERT
        )
        target = TablesTarget(landed, self._opened, read, compare=compare)
        return Parts(landed, target, target.fit())

    def start(self) -> None:
        self.options = Options.draw(self.chance)
        self.history.begin_run()

    def land(self, kill: str | None) -> None:
        """Land a batch, also if it is killed at a step; the next start has other options."""
        history, before = self.history, list(self.history.landed)
        ends = cut(history, self.chance)
        batch = [
            (partition, offset, self.changes[partition][offset])
            for partition in range(2)
            for offset in range(before[partition], ends[partition])
        ]
        parts = {str(number): OffsetRange(before[number], ends[number]) for number in range(2)}
        plan, read = BatchPlan(history.batches, {TOPIC: parts}), self.options
        begun = history.landing.begin(plan, "q", {}, in_java=read.in_java, lenient=read.lenient)
        assert begun is not None
        history.batches += 1
        with killed_after(kill):
            history._finish(begun)
        if kill is not None:
            self.start()
            if begun := history.landing.begun():
                if kill == "staged":  # no table has a row
                    read = self.options
                    options = {"in_java": read.in_java, "lenient": read.lenient}
                    assert not history.landing.target.is_decided(begun)
                    begun = history.landing.begin_again(begun, **options)  # type: ignore[arg-type]
                else:
                    assert history.landing.target.is_decided(begun)
                history._finish(begun)
        history.landed = ends
        self.model.apply(batch, read)

    def alter(self) -> None:
        """Add a column to the table, and fill it, as someone else."""
        table: Any = self._opened(EVENTS)
        if table.exists() and not self.model.checked:
            self.spark.sql(f"ALTER TABLE {table._sql_name} ADD COLUMNS (checked string)")
            self.spark.sql(f"UPDATE {table._sql_name} SET checked = 'yes'")
            self.model.checked = dict.fromkeys(self.model.rows, "yes")

    def check(self) -> None:
        rows = self.history.rows()
        found = {bytes(row["key"]): row for row in rows}
        assert len(found) == len(rows)
        assert {key: read_row(row) for key, row in found.items()} == self.model.rows
        checked = {key: row.asDict().get("checked") for key, row in found.items()}
        assert {key: text for key, text in checked.items() if text} == self.model.checked
        assert self.history.quarantined() == sorted(self.model.quarantine)
        assert self.history.total.check().quarantined == len(self.model.quarantine)

    def go(self, batches: int, kills: tuple[str | None, ...] = ()) -> None:
        for number in range(batches):
            for partition in range(2):
                for _ in range(self.chance.randint(2, 14)):
                    change = draw(self.chance, partition)
                    self.changes[partition].append(change)
                    self.history.log[partition].append(change.sent)
            if self.chance.random() < 0.6:
                self.start()
            kill = kills[number] if number < len(kills) else self.chance.choice([None, None, *STEPS])
            self.land(kill)
            self.check()
            if self.chance.random() < 0.3 or number == 0:
                self.alter()


def read_row(row: Any) -> Row:
    """Return what a row of the table has."""
    fields = row.asDict(recursive=True)
    data, value = fields["data"], fields.get("value")
    if value is not None:
        value = {name: part for name, part in value.items() if part is not None}
        if "_rescued" in value:
            value["_rescued"] = json.loads(value["_rescued"])
    return Row(
        row["partition"],
        row["offset"],
        row["deleted"],
        None if data is None else json.loads(bytes(data)),
        value,
        fields.get("tolerated") is not None,
    )


@pytest.mark.parametrize(
    "table_format", [pytest.param(to, marks=[] if to == "iceberg" else pytest.mark.release) for to in FORMATS]
)
def test_history(session: SparkSession, tmp_path: Path, table_format: str) -> None:
    """After each batch each row is what the last record of its key is by the options of its batch."""
    ReadHistory(session, table_format, tmp_path, 5).go(2, (None, "quarantine"))


@pytest.mark.release
@pytest.mark.parametrize("table_format", FORMATS)
def test_history_of_two_kills(session: SparkSession, tmp_path: Path, table_format: str) -> None:
    """So it is if each batch is killed."""
    ReadHistory(session, table_format, tmp_path, 5).go(2, ("staged", "quarantine"))


@pytest.mark.release
@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("table_format", FORMATS)
def test_long_histories(session: SparkSession, tmp_path: Path, table_format: str, seed: int) -> None:
    """So it is in long histories."""
    ReadHistory(session, table_format, tmp_path, seed).go(BATCHES)


@pytest.mark.broker
@pytest.mark.release
@pytest.mark.parametrize("table_format", FORMATS)
def test_a_deletion_is_decided_before_its_data_is_read(lake: Lake, table_format: str) -> None:
    """With a schema, an event without a value or of the rule deletes its row, also if it does not fit."""
    options: Any = {"to": table_format, "upsert": ("subject",), "deleted": "type=order.deleted"}
    schemas = {"schemas": {"order*": "total INT NOT NULL"}}
    for subject in "abcd":
        send(lake, "order", subject, b'{"total":1}')
    lake.run(**options, **schemas)
    send(lake, "order", "a", None)
    send(lake, "order.deleted", "b", b'{"total":"x"}')
    send(lake, "order.deleted", "c", b"{")
    send(lake, "order", "d", b'{"total":2}')
    summary = lake.run(**options, **schemas)
    assert (summary.counts.changes, summary.total.quarantined) == ({"updated": 1, "deleted": 3}, 0)
    rows = rows_of(lake, table_format, "events").selectExpr("subject", "deleted", "value.total", "data")
    assert sorted(map(tuple, rows.collect())) == [
        ("a", True, None, None),
        ("b", True, None, None),
        ("c", True, None, None),
        ("d", False, 2, None),
    ]


@pytest.mark.broker
@pytest.mark.release
@pytest.mark.parametrize("table_format", FORMATS)
def test_the_statement_of_the_changelog(lake: Lake, table_format: str) -> None:
    """The statement empties the columns of rows that earlier versions deleted, and no other row."""
    options: Any = {"to": table_format, "upsert": ("subject",), "lenient": True}
    for subject in "ab":
        send(lake, "order", subject, b'{"total":1}')
    lake.run(**options, schemas={"order": "total INT"})
    send(lake, "order", "a", None)
    lake.run(**options)
    table = f"delta.`{lake.out}/events`"
    if table_format == "iceberg":
        table = rows_of_name(lake)
    # As earlier versions left it.
    lake.spark.sql(f"UPDATE {table} SET value = named_struct('total', 1) WHERE deleted")
    (statement,) = re.findall(r"`(UPDATE lake\.shop\.current SET [^`]*)`", CHANGELOG.read_text("utf-8"))
    lake.spark.sql(statement.replace("lake.shop.current", table))
    rows = rows_of(lake, table_format, "events").selectExpr("subject", "deleted", "value.total")
    assert sorted(map(tuple, rows.collect())) == [("a", True, None), ("b", False, 1)]


def rows_of_name(lake: Lake) -> str:
    from cloudevents_kafka.spark.pipeline.tables import table_in_folder

    opened: Any = table_in_folder(lake.spark, "iceberg", f"file://{lake.out}/events")
    name: str = opened._sql_name
    return name


def send(lake: Lake, type_: str, subject: str, payload: bytes | None) -> None:
    """Send an event."""
    send_data(lake, type_, "application/json", payload, subject=subject)
