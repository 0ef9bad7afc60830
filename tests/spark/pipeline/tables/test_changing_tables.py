"""What becomes of rows when their columns or those of the table change, for the table of a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.spark.pipeline import WrongTable
from cloudevents_kafka.spark.pipeline.tables import Table, table_in_folder
from tests.spark.pipeline.sample_batches import ranges, take

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "changing_tables.md"
FORMATS = ("Delta", "Iceberg")
DATA = "data struct<amount:int, share:float, lines:array<struct<sku:string>>>"
COLUMNS = "id string, subject string, offset bigint, {data}, record_date date"
VALUE = "named_struct('amount', 1, 'share', 0.5f, 'lines', array(named_struct('sku', 'a')))"


class Changed:
    """A table of a format with one row, and the rows that come next."""

    def __init__(self, spark: SparkSession, table_format: str, folder: Path) -> None:
        self.spark, self.format = spark, table_format.lower()
        self.url, self.next = f"file://{folder}/events", 0
        self.land()

    def open(self) -> Table:
        return table_in_folder(self.spark, self.format, self.url)  # type: ignore[arg-type]

    def land(self, data: str = VALUE, *more: str, without: str = "") -> None:
        """Land a row whose data is this SQL, with more columns or without one."""
        columns = {
            "id": f"'{self.next}'",
            "subject": f"'s{self.next}'",
            "offset": f"{self.next}L",
            "data": data,
            "record_date": "date'2026-01-01'",
        }
        columns.pop(without, None)
        rows = self.spark.range(1).selectExpr(*(f"{sql} AS {name}" for name, sql in columns.items()), *more)
        table = self.open()
        assert take(table, rows, ranges(self.next, self.next + 1))
        self.next += 1

    def alter(self, change: str) -> None:
        """Change the table as someone else."""
        if self.format == "delta" and re.match("RENAME|DROP", change):
            mapping = "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
            self.spark.sql(f"ALTER TABLE {self.open()._sql_name} {mapping}")
        self.spark.sql(f"ALTER TABLE {self.open()._sql_name} {change}")

    def values(self, sql: str) -> list[Any]:
        """Return the values of an expression, by offset."""
        frame = self.open().read(self.spark).selectExpr("offset", f"{sql} AS value").sort("offset")
        return [row["value"] for row in frame.collect()]

    def type(self, sql: str) -> str:
        return self.open().read(self.spark).selectExpr(sql).schema.fields[0].dataType.simpleString()


def new_column(table: Changed) -> str:
    table.land(VALUE, "7 AS note")
    table.land()
    assert table.values("note") == [None, 7, None]
    return "added; null in other rows"


def new_field(table: Changed) -> str:
    table.land(VALUE.replace("'amount', 1", "'amount', 1, 'note', 7"))
    table.land()
    assert table.values("data.note") == [None, 7, None]
    return "added; null in other rows"


def new_field_in_array(table: Changed) -> str:
    table.land(VALUE.replace("'sku', 'a'", "'sku', 'a', 'count', 7"))
    table.land()
    # All fields are read: Spark reads an array of which old files have no field that is asked for as null.
    assert [data["lines"][0]["count"] for data in table.values("data")] == [None, 7, None]
    return "added; null in other rows"


def new_field_in_map(table: Changed) -> str:
    table.land(VALUE.replace("lines'", "notes', map('k', named_struct('x', 1, 'y', 1)), 'lines'"))
    table.land(VALUE.replace("lines'", "notes', map('k', named_struct('z', 2, 'y', 2)), 'lines'"))
    found = [data["notes"] and data["notes"]["k"].asDict() for data in table.values("data")]
    assert found == [None, {"x": 1, "y": 1, "z": None}, {"x": None, "y": 2, "z": 2}]
    return "added; null in other rows"


def without_column(table: Changed) -> str:
    table.land(without="subject")
    assert table.values("subject") == ["s0", None]
    return "null"


def without_field(table: Changed) -> str:
    table.land("named_struct('lines', array(named_struct('sku', 'b')), 'amount', 2)")
    assert table.values("data.share") == [0.5, None]
    assert table.values("data.lines[0].sku") == ["a", "b"]
    return "null"


def wider(table: Changed) -> str:
    data = VALUE.replace("'amount', 1", "'amount', 5000000000L").replace("0.5f", "0.25D")
    if table.format == "delta":
        with pytest.raises(WrongTable, match=r"column data\.amount of the table .* the type bigint, got int"):
            table.land(data)
        table.alter("SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    table.land(data)
    assert (table.type("data.amount"), table.type("data.share")) == ("bigint", "double")
    assert table.values("data.amount") == [1, 5_000_000_000]
    table.land()
    return "widened with `delta.enableTypeWidening`, else refused" if table.format == "delta" else "widened"


def narrower(table: Changed) -> str:
    table.alter("ADD COLUMNS (number bigint)")
    table.land(VALUE, "7 AS number")
    assert table.values("number") == [None, 7]
    return "widened in the rows"


def other_type(table: Changed) -> str:
    with pytest.raises(WrongTable, match=r"the column data\.amount .* must have the type string, got int"):
        table.land(VALUE.replace("'amount', 1", "'amount', 'x'"))
    assert table.values("data.amount") == [1]
    return "refused"


def other_case(table: Changed) -> str:
    with pytest.raises(
        WrongTable, match=r"data\.Amount must be written .*, which has data\.amount: for Spark"
    ):
        table.land(VALUE.replace("'amount', 1", "'Amount', 1"))
    return "refused"


def theirs_added(table: Changed) -> str:
    table.alter("ADD COLUMNS (note string, data.mine string)")
    table.land()
    assert table.values("coalesce(note, data.mine)") == [None, None]
    return "null in new rows"


def theirs_renamed(table: Changed) -> str:
    table.alter("RENAME COLUMN subject TO about")
    table.land()
    assert table.values("about") == ["s0", None]
    assert table.values("subject") == [None, "s1"]
    return "added again as a new column; the old column is null in new rows"


def theirs_dropped(table: Changed) -> str:
    table.alter("DROP COLUMN subject")
    table.alter("DROP COLUMN data.share")
    table.land()
    assert table.values("subject") == [None, "s1"]
    assert table.values("data.share") == [None, 0.5]
    return "added again"


def theirs_moved(table: Changed) -> str:
    table.alter("ALTER COLUMN subject FIRST")
    table.land()
    assert table.values("subject") == ["s0", "s1"]
    return "found by name"


def theirs_widened(table: Changed) -> str:
    if table.format == "delta":
        table.alter("SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    table.alter("ALTER COLUMN data.amount TYPE bigint")
    table.land()
    assert table.values("data.amount") == [1, 1]
    return "widened in the rows"


CASES: dict[str, Callable[[Changed], str]] = {
    "rows have a new column": new_column,
    "rows have a new field in a struct": new_field,
    "rows have a new field in structs of an array": new_field_in_array,
    "rows have a new field in structs of a map": new_field_in_map,
    "rows do not have a column": without_column,
    "rows do not have a field": without_field,
    "a number of the rows is wider": wider,
    "a number of the rows is narrower": narrower,
    "rows have another type": other_type,
    "rows have a name in another case": other_case,
    "someone adds a column or a field": theirs_added,
    "someone renames a column": theirs_renamed,
    "someone drops a column": theirs_dropped,
    "someone moves a column": theirs_moved,
    "someone widens a number": theirs_widened,
}
IN_EACH_RUN = (new_field_in_array, "Iceberg")


def shown() -> dict[str, dict[str, str]]:
    """Return the cells of the page's table, by case and format."""
    found = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {case: dict(zip(FORMATS, cells, strict=True)) for case, *cells in found if case in CASES}


def test_the_page_has_all_cases() -> None:
    """The table of the page has the cases that are tested, in their order."""
    assert list(shown()) == list(CASES)


@pytest.mark.parametrize(
    ("case", "table_format"),
    [
        pytest.param(case, name, marks=[] if (CASES[case], name) == IN_EACH_RUN else pytest.mark.release)
        for case in CASES
        for name in FORMATS
    ],
)
def test_cells(session: SparkSession, tmp_path: Path, table_format: str, case: str) -> None:
    """Each cell of the page says what a real table does."""
    assert CASES[case](Changed(session, table_format, tmp_path)) == shown()[case][table_format]
