"""Tables of Delta and Iceberg take each batch once, through replays and maintenance."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloudevents_kafka.spark._sql import name_parts
from cloudevents_kafka.spark.pipeline import WrongTable
from cloudevents_kafka.spark.pipeline.notes import OffsetRange
from cloudevents_kafka.spark.pipeline.stores import LocalStore
from cloudevents_kafka.spark.pipeline.tables import (
    LedgerChanged,
    Table,
    _table,
    find_tables,
    sibling_name,
    table_by_name,
    table_in_folder,
)
from tests.spark.pipeline.sample_batches import PIPELINE, SCHEMA, has, offsets, ranges, rows, take
from tests.support.cases import each

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
FORMATS = ("delta", "iceberg")


class Subject:
    """A table in a folder, opened again for each call as after a restart."""

    def __init__(self, spark: SparkSession, table_format: str, url: str) -> None:
        self.spark, self.format, self.url = spark, table_format, url

    def open(self) -> Table:
        return table_in_folder(self.spark, self.format, self.url)

    def append(self, start: int, end: int) -> bool:
        return take(self.open(), rows(self.spark, start, end), ranges(start, end))

    def frame(self) -> DataFrame:
        return self.spark.table(self.open()._sql_name)


# Delta's other tests are the same calls with the same results.
@pytest.fixture(params=[pytest.param("delta", marks=pytest.mark.release), "iceberg"])
def subject(request, session, tmp_path) -> Subject:
    return Subject(session, request.param, f"file://{tmp_path}/a {{b}} [c]/events")


def test_each_batch_once(subject):
    """A batch lands in one commit and not again; a table that does not exist has landed nothing."""
    table = subject.open()
    assert not table.exists()
    assert not has(table, ranges(0, 4))
    assert subject.append(0, 4)
    assert not subject.append(0, 4)
    assert has(subject.open(), ranges(0, 4))
    assert not has(subject.open(), ranges(4, 6))
    assert subject.append(4, 4) is False
    assert subject.append(4, 6)
    assert offsets(subject.frame()) == list(range(6))
    with pytest.raises(WrongTable, match=r"pipeline p1 must not land orders\[0\]@4 to 5, which pipeline p0"):
        take(table, rows(subject.spark, 4, 8), ranges(4, 8), "p1")
    assert take(table, rows(subject.spark, 0, 2, "other"), ranges(0, 2, "other"), "p1")
    assert subject.frame().count() == 8


def test_staged_rows_are_not_read(subject):
    """Rows are in no version of the table before their commit."""
    table = subject.open()
    staged = table.stage(rows(subject.spark, 0, 4))
    assert offsets(subject.frame()) == []
    assert staged.rows == 4
    before = table.ledger()
    table.commit([staged, table.stage(rows(subject.spark, 4, 6))], before, before.add("p", {}, ranges(0, 6)))
    assert offsets(subject.frame()) == list(range(6))


def test_one_of_two_commits(subject):
    """Of two commits that have read one ledger the second changes nothing, until it has read again."""
    tables = [subject.open(), subject.open()]
    staged = [table.stage(rows(subject.spark, 2 * n, 2 * n + 2)) for n, table in enumerate(tables)]
    before = [table.ledger() for table in tables]
    tables[0].commit([staged[0]], before[0], before[0].add("p0", {}, ranges(0, 2)))
    with pytest.raises(LedgerChanged):
        tables[1].commit([staged[1]], before[1], before[1].add("p1", {}, ranges(2, 4)))
    assert offsets(subject.frame()) == [0, 1]
    again = tables[1].ledger()
    tables[1].commit([staged[1]], again, again.add("p1", {}, ranges(2, 4)))
    assert offsets(subject.frame()) == list(range(4))
    assert subject.open().ledger() == before[0].add("p0", {}, ranges(0, 2)).add("p1", {}, ranges(2, 4))


def test_commits_of_others(subject):
    """Rows of other writers do not change the ledger, and its commits do not conflict with theirs."""
    subject.append(0, 2)
    table = subject.open()
    staged, before = table.stage(rows(subject.spark, 2, 4)), table.ledger()
    rows(subject.spark, 100, 101).writeTo(table._sql_name).append()
    table.commit([staged], before, before.add(PIPELINE, {}, ranges(2, 4)))
    assert offsets(subject.frame()) == [0, 1, 2, 3, 100]
    assert has(subject.open(), ranges(0, 4))


def test_many_partitions(subject):
    """The ledger has each partition, however many there are."""
    table = subject.open()
    many = {"orders": {str(number): OffsetRange(number, number + 9) for number in range(3000)}}
    assert take(table, rows(subject.spark, 0, 2), many)
    assert subject.open().ledger().topics["orders"][""][PIPELINE] == {
        number: (range_,) for number, range_ in many["orders"].items()
    }


def test_replays_after_maintenance(subject):
    """OPTIMIZE, VACUUM, rewrite_data_files and expire_snapshots keep what decides on a replay."""
    for number in range(2):
        subject.append(2 * number, 2 * number + 2)
    table = subject.open()
    assert table.count_files() == 4
    table.optimize()
    assert (table.count_files(), table.count_stored()) == (2, 6)
    table.vacuum(keep_hours=0)
    assert (table.count_files(), table.count_stored()) == (2, 2)
    for number in range(2):
        assert has(subject.open(), ranges(2 * number, 2 * number + 2))
        assert subject.append(2 * number, 2 * number + 2) is False
    assert offsets(subject.frame()) == list(range(4))


@pytest.mark.release
def test_clustered(subject):
    """Rows are clustered by columns where that is asked for, and none is lost."""
    for number in range(2):
        subject.append(2 * number, 2 * number + 2)
    subject.open().optimize(("type", "time"))
    assert subject.open().count_files() == 2
    assert offsets(subject.frame()) == list(range(4))


@pytest.mark.release  # test_replays_after_maintenance is its sample
@pytest.mark.parametrize(
    ("subject", "more_than"),
    [
        ("delta", "versions"),
        ("delta", "hour"),
        ("iceberg", "versions"),
        ("iceberg", "hour"),
    ],
    indirect=["subject"],
)
def test_old_versions(subject, monkeypatch, more_than):
    """Of a day, `vacuum` keeps a number of versions and those of the last hour; files and ledger stay."""
    monkeypatch.setattr(_table, "MOST_VERSIONS", 5)
    if more_than == "versions":
        monkeypatch.setattr(_table, "SHORTEST_HOURS", 0)
    versions = 24 if subject.format == "delta" else 10  # Delta cleans up before a checkpoint, each tenth
    for number in range(versions):
        subject.append(number, number + 1)
    table, folder = subject.open(), Path(subject.url.removeprefix("file://"))
    for path in folder.glob("_delta_log/0*"):  # a version each minute, as Delta counts in minutes
        created = time.time() - 60 * (30 - int(path.name[:20]))
        os.utime(path, (created, created))
    table.vacuum(keep_hours=24)
    if subject.format == "delta":
        kept = len(list(folder.glob("_delta_log/*[0-9].json")))
    else:
        kept = subject.spark.table(f"{table._sql_name}.history").count()
    most = 16 if subject.format == "delta" else 6
    assert (5 <= kept <= most) if more_than == "versions" else (kept >= versions)
    assert offsets(subject.frame()) == list(range(versions))
    assert table.count_stored() == versions
    assert subject.open().ledger().generation == versions
    assert subject.append(versions - 1, versions) is False
    assert subject.append(versions, versions + 1)


@pytest.mark.release
@pytest.mark.parametrize("subject", ["delta"], indirect=True)
def test_all_versions(subject, monkeypatch):
    """Delta's property that keeps its log is obeyed."""
    monkeypatch.setattr(_table, "MOST_VERSIONS", 1)
    monkeypatch.setattr(_table, "SHORTEST_HOURS", 0)
    subject.append(0, 1)
    table, folder = subject.open(), Path(subject.url.removeprefix("file://"))
    set_property = "SET TBLPROPERTIES ('delta.enableExpiredLogCleanup' = 'false')"
    subject.spark.sql(f"ALTER TABLE {table._sql_name} {set_property}")
    for number in range(1, 14):
        subject.append(number, number + 1)
    for path in folder.glob("_delta_log/0*"):
        os.utime(path, (0, 0))
    table.vacuum(keep_hours=0)
    assert (folder / "_delta_log" / f"{0:020}.json").exists()


@pytest.mark.release
@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
@pytest.mark.parametrize("subject", ["delta"], indirect=True)
def test_listings(subject):
    """Rows are staged and committed with two listings of Delta's log, however many versions it has."""
    subject.append(0, 1)
    table = subject.open()
    table.stage(rows(subject.spark, 1, 2))  # its schema is compared once
    before = table.ledger()
    with counted_listings(Path(subject.url.removeprefix("file://")) / "_delta_log") as listings:
        staged = table.stage(rows(subject.spark, 1, 2))
        table.commit([staged], before, before.add(PIPELINE, {}, ranges(1, 2)))
        assert table.id()
    assert listings() <= 2


@contextmanager
def counted_listings(folder: Path) -> Iterator[Callable[[], int]]:
    """Yield a function that returns how many times a folder was opened in the block."""
    opened, closed = 0x20, 0x10  # equal events that follow each other would be one
    libc = ctypes.CDLL(None)
    events = libc.inotify_init1(os.O_NONBLOCK)
    try:
        assert libc.inotify_add_watch(events, bytes(folder), opened | closed) > 0
        yield lambda: found
        found, data = 0, os.read(events, 1 << 20)
        while data:
            _, mask, _, length = struct.unpack_from("iIII", data)
            found += length == 0 and bool(mask & opened)
            data = data[16 + length :]
    finally:
        os.close(events)


def test_partitions(subject, tmp_path):
    """The folders are those of the record's date."""
    subject.append(0, 4)
    folders = {path.parent.name for path in tmp_path.rglob("*.parquet")}
    assert folders == {"record_date=2026-01-01", "record_date=2026-01-02"}
    assert find_tables(LocalStore(tmp_path / "a {b} [c]")) == {"events": subject.format}
    assert find_tables(LocalStore(tmp_path / "a {b} [c]" / "events")) == {"": subject.format}


def test_added_column(subject):
    """A table without the column tolerated gets it with the first rows that have it; others have null."""
    spark = subject.spark
    subject.append(0, 2)
    more = rows(spark, 2, 4).selectExpr("*", "array(named_struct('attribute', id)) AS tolerated")
    assert take(subject.open(), more, ranges(2, 4))
    assert subject.append(4, 6)
    found = sorted(subject.frame().select("offset", "tolerated.attribute").collect())
    assert [row["attribute"] for row in found] == [None, None, ["2"], ["3"], None, None]


def test_schemas(subject):
    """A table of pipelines takes rows with more columns; one of others, or with other types, is refused."""
    spark, table = subject.spark, subject.open()
    schema = spark.createDataFrame([], SCHEMA).schema
    more = spark.createDataFrame([], SCHEMA + ", data_kind string").schema
    table.check_schema(schema)
    table._create(schema)
    with pytest.raises(
        WrongTable, match=r"must have the column data_kind of type string\. Add it: ALTER TABLE"
    ):
        subject.open().check_schema(more)
    subject.append(0, 2)
    spark.sql(f"ALTER TABLE {table._sql_name} ADD COLUMN mine string")
    subject.open().check_schema(schema)
    subject.open().check_schema(more)  # the pipeline adds the column
    subject.append(2, 4)
    assert subject.frame().where("mine is null").count() == 4
    other = spark.createDataFrame([], SCHEMA.replace("offset bigint", "offset string")).schema
    with pytest.raises(
        WrongTable, match=r"column offset of the table .* must have the type string, got bigint"
    ):
        subject.open().check_schema(other)


def test_settings_of_the_user(subject):
    """A batch whose settings the user changed is written with exact times all the same."""
    import pyarrow.parquet as pq

    name = "spark.sql.parquet.outputTimestampType"
    subject.spark.conf.set(name, "INT96")
    try:
        subject.append(0, 1)
        assert subject.spark.conf.get(name) == "INT96"
    finally:
        subject.spark.conf.unset(name)
    (file,) = Path(subject.url.removeprefix("file://")).rglob("*.parquet")
    assert str(pq.ParquetFile(file).schema_arrow.field("time").type) == "timestamp[us, tz=UTC]"


def _catalog(spark: SparkSession, folder: Path, kind: str) -> str:
    """Set a catalog of Iceberg and return its name."""
    name = f"ice_{kind}_{folder.name}".replace("-", "_")
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": kind,
        ".warehouse": f"file://{folder}/warehouse",
        ".uri": f"jdbc:sqlite:{folder}/catalog.db",
        ".jdbc.schema-version": "V1",
    }
    for setting, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{name}{setting}", value)
    return name


@pytest.mark.parametrize(
    "kind", ["hadoop", *(pytest.param(kind, marks=pytest.mark.release) for kind in ("delta", "jdbc"))]
)
def test_catalogs(session, tmp_path, kind):
    """Tables of Spark's own catalog, and of a hadoop and a JDBC catalog of Iceberg, take each batch once."""
    if kind == "delta":
        name, table_format = f"spark_catalog.default.{tmp_path.name}".replace("-", "_"), "delta"
    else:
        name, table_format = f"{_catalog(session, tmp_path, kind)}.lake.events", "iceberg"
    for expected in (True, False):
        table = table_by_name(session, table_format, name)
        assert take(table, rows(session, 0, 4), ranges(0, 4)) is expected
    assert table.name == name
    assert take(table, rows(session, 4, 6), ranges(4, 6))
    table.optimize()
    assert table.count_files() == 2
    table.check_schema(session.createDataFrame([], SCHEMA).schema)
    assert has(table, ranges(0, 4))
    assert offsets(session.table(name)) == list(range(6))
    session.sql(f"DROP TABLE {name}")


def test_another_format(session, tmp_path):
    """A table of a catalog that has another format is refused."""
    name = f"default.{tmp_path.name}".replace("-", "_")
    session.sql(f"CREATE TABLE {name} (id string) USING parquet")
    schema = session.createDataFrame([], SCHEMA).schema
    with pytest.raises(WrongTable, match="must be a Delta table, got parquet"):
        table_by_name(session, "delta", name).check_schema(schema)
    with pytest.raises(WrongTable, match="must be an Iceberg table, got parquet"):
        table_by_name(session, "iceberg", name).check_schema(schema)
    session.sql(f"DROP TABLE {name}")


def test_no_catalog(session):
    """A catalog that the session does not have is reported with the settings that it needs."""
    with pytest.raises(WrongTable, match=r"spark\.sql\.catalog\.nowhere=org\.apache\.iceberg"):
        table_by_name(session, "iceberg", "nowhere.lake.events").exists()


@each(
    ("name", "parts"),
    [("a.b.c", ("a", "b", "c")), ("`a.b`.c", ("a.b", "c")), ("a.`b``c`", ("a", "b`c")), ("c", ("c",))],
)
def test_name_parts(name, parts):
    """Names have parts, in backticks where they have dots."""
    assert name_parts(name) == parts


@each("name", ["", ".", "a.", ".a", "a..b", "a b", "`a", "a.`b`c"])
def test_wrong_names(name):
    """Other texts are not names of tables."""
    with pytest.raises(ValueError, match=r"must be catalog\.schema\.name"):
        name_parts(name)


def test_sibling_name():
    """The quarantine is next to the table of events."""
    assert sibling_name("a.b.orders") == "a.b.orders_quarantine"
    assert sibling_name("a.b.`my orders`") == "a.b.`my orders_quarantine`"


def test_an_altered_table(subject):
    """A column that someone adds between the files of a batch and their commit does not fail the commit."""
    subject.append(0, 2)
    table = subject.open()
    staged, before = table.stage(rows(subject.spark, 2, 4)), table.ledger()
    subject.spark.sql(f"ALTER TABLE {table._sql_name} ADD COLUMN note string")
    after = before.add(PIPELINE, {}, ranges(2, 4))
    try:
        table.commit([staged], before, after)
    except LedgerChanged:  # it is tried again
        table.commit([staged], table.ledger(), after)
    assert subject.append(4, 6)
    assert offsets(subject.frame()) == list(range(6))


@pytest.mark.parametrize("subject", ["iceberg"], indirect=True)
def test_a_moved_folder(subject):
    """A table of Iceberg whose folder was moved is refused, as its files have full paths."""
    subject.append(0, 2)
    folder = Path(subject.url.removeprefix("file://"))
    folder.rename(folder.with_name("moved"))
    subject.url = subject.url.removesuffix("events") + "moved"
    with pytest.raises(WrongTable, match=r"must be in .*, where it was made"):
        subject.open().ledger()
