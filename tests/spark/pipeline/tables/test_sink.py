"""Tables of Delta and Iceberg take each batch once, through replays and maintenance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloudevents_kafka.spark.pipeline.notes import OffsetRange
from cloudevents_kafka.spark.pipeline.stores import LocalStore
from cloudevents_kafka.spark.pipeline.tables import (
    Table,
    WrongTable,
    find_tables,
    name_parts,
    sibling_name,
    table_by_name,
    table_in_folder,
)
from cloudevents_kafka.spark.pipeline.tables._sink import offsets_text
from tests.spark.pipeline.sample_batches import KEY, SCHEMA, offsets, ranges, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
FORMATS = ("delta", "iceberg")


class Subject:
    """A table in a folder, opened again for each call as after a restart."""

    def __init__(self, spark: SparkSession, table_format: str, url: str) -> None:
        self.spark, self.format, self.url = spark, table_format, url

    def open(self) -> Table:
        return table_in_folder(self.spark, self.format, self.url)

    def append(self, start: int, end: int, number: int, **options: str) -> bool:
        batch = rows(self.spark, start, end, **options)
        return self.open().append(batch, KEY, number, ranges(start, end, **options))

    def frame(self) -> DataFrame:
        return self.spark.table(self.open()._sql_name)


@pytest.fixture(params=FORMATS)
def subject(request, session, tmp_path) -> Subject:
    return Subject(session, request.param, f"file://{tmp_path}/a {{b}} [c]/events")


def test_each_batch_once(subject):
    """A batch lands in one commit and not again, also one without rows; a missing table has no batch."""
    table = subject.open()
    assert not table.exists()
    assert not table.has_batch(KEY, 0, ranges(0, 4))
    assert table.append(rows(subject.spark, 0, 4), KEY, 0, ranges(0, 4)) is True
    assert table.append(rows(subject.spark, 0, 4), KEY, 0, ranges(0, 4)) is False
    assert table.exists()
    assert table.append(rows(subject.spark, 4, 4), KEY, 1, ranges(4, 6)) is True
    assert subject.append(4, 6, 1) is False
    assert not subject.open().has_batch(KEY, 2, ranges(6, 8))
    assert subject.open().has_batch(KEY, 0, ranges(0, 4))
    assert offsets(subject.frame()) == list(range(4))
    with pytest.raises(WrongTable, match=r"must have the offsets \{\"orders\":\{\"0\":\[4,8\]\}\}, got"):
        subject.append(4, 8, 1)
    assert table.append(rows(subject.spark, 0, 2, "other"), "b/events", 0, ranges(0, 2, "other"))
    assert subject.frame().count() == 6


@pytest.mark.parametrize(
    "subject", [pytest.param("delta", marks=pytest.mark.release), "iceberg"], indirect=True
)
def test_replays_after_maintenance(subject):
    """OPTIMIZE, VACUUM, rewrite_data_files and expire_snapshots keep what decides on a replay."""
    for number in range(2):
        subject.append(2 * number, 2 * number + 2, number)
    table = subject.open()
    optimized = table.optimize()
    assert (optimized.files_before, optimized.files_after) == (4, 2)
    vacuumed = table.vacuum(keep_hours=0)
    assert (vacuumed.files_before, vacuumed.files_after) == (6, 2)
    for number in range(2):
        assert subject.open().has_batch(KEY, number, ranges(2 * number, 2 * number + 2))
        assert subject.append(2 * number, 2 * number + 2, number) is False
    assert offsets(subject.frame()) == list(range(4))


@pytest.mark.release
def test_clustered(subject):
    """Rows are clustered by columns where that is asked for, and none is lost."""
    for number in range(2):
        subject.append(2 * number, 2 * number + 2, number)
    assert subject.open().optimize(("type", "time")).files_after == 2
    assert offsets(subject.frame()) == list(range(4))


def test_set_back(session, tmp_path):
    """Delta would skip a number below its last one: rows that are not in the table are refused."""
    subject = Subject(session, "delta", f"file://{tmp_path}/events")
    subject.append(0, 4, 7)
    with pytest.raises(
        WrongTable, match=r"has batch 7 .* but not the records of batch 3, orders\[0\]@4 to 5"
    ):
        subject.append(4, 6, 3)


def test_partitions(subject, tmp_path):
    """The folders are those of the record's date."""
    subject.append(0, 4, 0)
    folders = {path.parent.name for path in tmp_path.rglob("*.parquet")}
    assert folders == {"record_date=2026-01-01", "record_date=2026-01-02"}
    assert find_tables(LocalStore(tmp_path / "a {b} [c]")) == {"events": subject.format}
    assert find_tables(LocalStore(tmp_path / "a {b} [c]" / "events")) == {"": subject.format}


def test_added_column(subject):
    """A table without the column tolerated gets it with the first rows that have it; others have null."""
    spark = subject.spark
    subject.append(0, 2, 0)
    more = rows(spark, 2, 4).selectExpr("*", "array(named_struct('attribute', id)) AS tolerated")
    assert subject.open().append(more, KEY, 1, ranges(2, 4))
    assert subject.append(4, 6, 2)
    found = sorted(subject.frame().select("offset", "tolerated.attribute").collect())
    assert [row["attribute"] for row in found] == [None, None, ["2"], ["3"], None, None]


def test_schemas(subject):
    """A table with more columns takes the rows; one with fewer or other columns is refused."""
    spark, table = subject.spark, subject.open()
    schema = spark.createDataFrame([], SCHEMA).schema
    table.check_schema(schema)
    subject.append(0, 2, 0)
    spark.sql(f"ALTER TABLE {table._sql_name} ADD COLUMN mine string")
    table.check_schema(schema)
    subject.append(2, 4, 1)
    assert subject.frame().where("mine is null").count() == 4
    more = spark.createDataFrame([], SCHEMA + ", data_kind string").schema
    with pytest.raises(
        WrongTable, match=r"must have the column data_kind of type string\. Add it: ALTER TABLE"
    ):
        table.check_schema(more)
    other = spark.createDataFrame([], SCHEMA.replace("offset bigint", "offset string")).schema
    with pytest.raises(
        WrongTable, match=r"column offset of the table .* must have the type string, got bigint"
    ):
        table.check_schema(other)


def test_settings_of_the_user(subject):
    """A batch whose settings the user changed is written with exact times all the same."""
    import pyarrow.parquet as pq

    name = "spark.sql.parquet.outputTimestampType"
    subject.spark.conf.set(name, "INT96")
    try:
        subject.append(0, 1, 0)
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


@pytest.mark.parametrize("kind", ["delta", "hadoop", "jdbc"])
def test_catalogs(session, tmp_path, kind):
    """Tables of Spark's own catalog, and of a hadoop and a JDBC catalog of Iceberg, take each batch once."""
    if kind == "delta":
        name, table_format = f"spark_catalog.default.{tmp_path.name}".replace("-", "_"), "delta"
    else:
        name, table_format = f"{_catalog(session, tmp_path, kind)}.lake.events", "iceberg"
    for expected in (True, False):
        table = table_by_name(session, table_format, name)
        assert table.append(rows(session, 0, 4), KEY, 0, ranges(0, 4)) is expected
    assert table.name == name
    assert table.append(rows(session, 4, 6), KEY, 1, ranges(4, 6))
    assert table.optimize().files_after == 2
    table.check_schema(session.createDataFrame([], SCHEMA).schema)
    assert table.has_batch(KEY, 0, ranges(0, 4))
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


@pytest.mark.parametrize(
    ("name", "parts"),
    [("a.b.c", ("a", "b", "c")), ("`a.b`.c", ("a.b", "c")), ("a.`b``c`", ("a", "b`c")), ("c", ("c",))],
)
def test_name_parts(name, parts):
    """Names have parts, in backticks where they have dots."""
    assert name_parts(name) == parts


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "a b", "`a", "a.`b`c"])
def test_wrong_names(name):
    """Other texts are not names of tables."""
    with pytest.raises(ValueError, match=r"must be catalog\.schema\.name"):
        name_parts(name)


def test_sibling_name():
    """The quarantine is next to the table of events."""
    assert sibling_name("a.b.orders") == "a.b.orders_quarantine"
    assert sibling_name("a.b.`my orders`") == "a.b.`my orders_quarantine`"


def test_offsets_text():
    """Offsets are JSON in order, without empty ranges; long ones are a digest."""
    some = {"b": {"1": OffsetRange(3, 3)}, "a": {"1": OffsetRange(1, 2), "0": OffsetRange(0, 9)}}
    assert offsets_text(some) == '{"a":{"0":[0,9],"1":[1,2]}}'
    assert offsets_text({}) == "{}"
    many = {"a": {str(partition): OffsetRange(0, 9) for partition in range(1000)}}
    assert len(offsets_text(many)) == 71
