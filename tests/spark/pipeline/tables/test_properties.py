"""Tables with properties, defaults, constraints and numbers of their owners take batches, or say why not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.spark._sql import settings
from cloudevents_kafka.spark.pipeline import WrongTable
from cloudevents_kafka.spark.pipeline.notes import Upsert
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from tests.spark.pipeline.sample_batches import ranges, take
from tests.spark.pipeline.tables.test_changing_tables import VALUE, Changed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
PROPERTIES = {
    "delta": (
        *("delta.appendOnly=true", "delta.enableRowTracking=true", "delta.enableDeletionVectors=true"),
        *(
            "delta.checkpointPolicy=v2",
            "delta.enableInCommitTimestamps=true",
            "delta.enableChangeDataFeed=true",
        ),
    ),
    "iceberg": (
        *("gc.enabled=false", "write.format.default=orc", "write.format.default=avro", "format-version=3"),
        *("write.distribution-mode=hash", "write.spark.fanout.enabled=false", "write.wap.enabled=false"),
    ),
}


@pytest.mark.parametrize("table_format", PROPERTIES)
def test_properties(session: SparkSession, tmp_path: Path, table_format: str) -> None:
    """With each of these properties a batch lands, and one with another column."""
    for number, text in enumerate(PROPERTIES[table_format]):
        table = Changed(session, table_format, tmp_path / str(number))
        name, _, value = text.partition("=")
        table.alter(f"SET TBLPROPERTIES ('{name}' = '{value}')")
        table.land()
        table.land(VALUE, "7 AS note")
        assert table.values("id") == ["0", "1", "2"], text
        assert table.values("note") == [None, None, 7], text
        assert table.open().ledger().generation == 3


def test_names_that_iceberg_takes_for_one(session: SparkSession, tmp_path: Path) -> None:
    """A field with a dot in its name is refused next to a nested field with the same name in Iceberg."""
    table = Changed(session, "iceberg", tmp_path)
    rows = table.open().read()
    table.open().check_schema(rows.selectExpr("*", "'' AS `data.more`").schema)
    for name in ("data.amount", "data.lines.element.sku"):
        with pytest.raises(WrongTable, match=rf"must not have two fields with the name {name}, "):
            table.open().check_schema(rows.selectExpr("*", f"'' AS `{name}`").schema)
    with pytest.raises(WrongTable, match=r"must not have two fields with the name data\.share, "):
        table.open().check_schema(rows.selectExpr("id", "0 AS `data.share`").schema)


def test_a_branch_of_the_session(session: SparkSession, tmp_path: Path) -> None:
    """A session that writes to a branch of Iceberg's tables is refused with the setting."""
    for branch in ("audit", ""):
        with (
            settings(session, {"spark.wap.branch": branch}),
            pytest.raises(WrongTable, match=rf"the setting spark\.wap\.branch, got '{branch}': "),
        ):
            table_in_folder(session, "iceberg", f"file://{tmp_path}/events")


def test_properties_that_forbid_a_command(session: SparkSession, tmp_path: Path) -> None:
    """A table that only takes rows is refused with upsert, and one whose files must stay by vacuum."""
    table = Changed(session, "delta", tmp_path / "delta")
    table.alter("SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    upserted = table_in_folder(session, "delta", table.url, Upsert(("subject",), None))
    with pytest.raises(WrongTable, match=r"must not have the property delta\.appendOnly=true, because"):
        upserted.check_schema(table.open().read().schema)
    table = Changed(session, "iceberg", tmp_path / "iceberg")
    table.alter("SET TBLPROPERTIES ('gc.enabled' = 'false')")
    with pytest.raises(WrongTable, match=r"must not have the property gc\.enabled=false, because Iceberg"):
        table.open().vacuum(168.0)


def test_defaults(session: SparkSession, tmp_path: Path) -> None:
    """A column that the rows do not have gets its default, which makes one that must not be null usable."""
    table = Changed(session, "delta", tmp_path)
    table.alter("SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')")
    table.alter("ADD COLUMNS (team string, count bigint)")
    table.alter("ALTER COLUMN team SET DEFAULT 'a' || 'b'")
    table.alter("ALTER COLUMN count SET DEFAULT 3 + 4")
    table.land()
    table.land(VALUE, "CAST(NULL AS string) AS team")
    assert table.values("team") == [None, "ab", None]
    assert table.values("count") == [None, 7, 7]
    table.alter("ADD COLUMNS (at timestamp)")
    table.alter("ALTER COLUMN at SET DEFAULT TIMESTAMP'2026-01-01 00:00:00'")
    with settings(session, {"spark.sql.session.timeZone": "Asia/Kolkata"}):
        table.land()
    assert table.values("unix_seconds(at)")[-1] == 1_767_225_600  # in UTC


def test_numbers_on_which_a_rule_depends(session: SparkSession, tmp_path: Path) -> None:
    """Delta does not widen a number of a constraint or of a computed column, so wider ones do not fit."""
    table = Changed(session, "delta", tmp_path / "constraint")
    table.alter("SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    table.alter("ADD CONSTRAINT positive CHECK (DATA.amount > 0)")
    table.alter("ADD COLUMNS (number int)")
    with pytest.raises(WrongTable, match=r"column data\.amount .* must have the type bigint, got int"):
        table.land(VALUE.replace("'amount', 1", "'amount', 5000000000L"))
    table.land(VALUE, "5000000000L AS number")
    assert table.values("number") == [None, 5_000_000_000]
    url = built(
        session, tmp_path / "computed", "next", lambda column: column.generatedAlwaysAs("partition + 1L")
    )
    session.sql(f"ALTER TABLE delta.`{url}` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    rows = session.sql("SELECT 'a' AS id, 0L AS partition, 0L AS offset, date'2026-01-01' AS record_date")
    with pytest.raises(WrongTable, match=r"column partition .* must have the type bigint, got int"):
        table_in_folder(session, "delta", url).stage(rows)


def built(spark: SparkSession, folder: Path, name: str, define: Callable[[Any], Any]) -> str:
    """Return the URL of a table of Delta with a column that Delta fills."""
    delta: Any = spark._jvm.io.delta.tables.DeltaTable  # type: ignore[union-attr]
    java = spark._jsparkSession
    filled = define(delta.columnBuilder(java, name).dataType("BIGINT")).build()
    builder = delta.create(java).location(f"{folder}/events").addColumn(filled)
    columns = {"id": "STRING", "subject": "STRING", "topic": "STRING", "partition": "INT", "offset": "BIGINT"}
    for column, type_ in {**columns, "record_date": "DATE", "deleted": "BOOLEAN"}.items():
        builder = builder.addColumn(column, type_)
    builder.execute()
    return f"file://{folder}/events"


def test_numbers_of_rows(session: SparkSession, tmp_path: Path) -> None:
    """A table that numbers its rows is refused; with upsert its numbers are those of MERGE."""

    def numbered(folder: str) -> str:
        return built(session, tmp_path / folder, "number", lambda column: column.generatedAlwaysAsIdentity())

    def row(number: int, *more: str) -> DataFrame:
        place = f"'t' AS topic, 0 AS partition, {number}L AS offset, date'2026-01-01' AS record_date"
        columns = [f"'{number}' AS id", f"'s{number}' AS subject", place, *more]
        return session.sql(f"SELECT {', '.join(columns)}")

    table = table_in_folder(session, "delta", numbered("rows"))
    with pytest.raises(WrongTable, match=r"column number of the table .* must not be an identity column"):
        take(table, row(0), ranges(0, 1))
    assert table.read().isEmpty()
    upserted = table_in_folder(session, "delta", numbered("keys"), Upsert(("subject",), None))
    for number in range(2):
        assert take(upserted, row(number, "false AS deleted"), ranges(number, number + 1))
    assert len({found["number"] for found in upserted.read().collect()} - {None}) == 2
