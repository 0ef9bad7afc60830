"""Readers that are not Spark read the tables: values, zones, years 1 and 9999, maps, nulls, empty lists."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.spark._sql import write_settings
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from tests.spark.pipeline.sample_batches import PIPELINE, ranges, take

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

deltalake = pytest.importorskip("deltalake")
duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")
pytest.importorskip("pyiceberg")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Iceberg scan planning with the polars_iceberg plugin"),
]
ROWS = """
select 0L as offset, timestamp'0001-01-01 00:00:00+00:00' as time, map('a', 'ä') as extensions,
  x'00ff' as data,
  array(named_struct('key', 'k', 'value', x'ff')) as headers, date'2026-01-01' as record_date,
  'orders' as topic, 0 as partition
union all select 1L, timestamp'9999-12-31 23:59:59.999999+00:00', cast(map() as map<string,string>), x'',
  cast(array() as array<struct<key:string,value:binary>>), date'9999-12-31', 'orders', 0
union all select 2L, timestamp'2026-03-29 01:30:00.123456+00:00', null, null, null, date'0001-01-01',
  'orders', 0
"""
HEADER = {"key": "k", "value": b"\xff"}
EXPECTED = [
    (0, datetime(1, 1, 1, tzinfo=UTC), {"a": "ä"}, b"\x00\xff", [HEADER], date(2026, 1, 1)),
    (1, datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), {}, b"", [], date(9999, 12, 31)),
    (2, datetime(2026, 3, 29, 1, 30, 0, 123456, UTC), None, None, None, date(1, 1, 1)),
]
COLUMNS = ("offset", "time", "extensions", "data", "headers", "record_date")


@pytest.fixture(scope="module")
def lake(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the rows to a table of each format."""
    folder = tmp_path_factory.mktemp("readers")
    for table_format in ("delta", "iceberg"):
        table = table_in_folder(session, table_format, f"file://{folder}/{table_format}")
        take(table, session.sql(ROWS), ranges(0, 3))
    with write_settings(session):
        session.sql(ROWS).write.partitionBy("record_date").parquet(f"{folder}/parquet")
    return folder


def _arrow(table: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.select(list(COLUMNS)).to_pylist()
    return found


def _by_pyarrow(lake: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.dataset as ds

    partitioning = ds.partitioning(pa.schema([("record_date", pa.date32())]), flavor="hive")
    return _arrow(ds.dataset(lake / "parquet", format="parquet", partitioning=partitioning).to_table())


def _by_duckdb(source: Any) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        if isinstance(source, str):
            query = f"from read_parquet('{source}/*/*.parquet', hive_partitioning = true)"
        else:
            connection.register("source", source)
            query = "from source"
        return _arrow(connection.sql(query).to_arrow_table())


def _by_polars(frame: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame.select(COLUMNS).to_dicts()
    return found


def _iceberg(lake: Path) -> Any:
    from pyiceberg.table import StaticTable

    version = (lake / "iceberg" / "metadata" / "version-hint.text").read_text().strip()
    return StaticTable.from_metadata(f"file://{lake}/iceberg/metadata/v{version}.metadata.json")


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "parquet by pyarrow": _by_pyarrow,
    "parquet by duckdb": lambda lake: _by_duckdb(f"{lake}/parquet"),
    "parquet by polars": lambda lake: _by_polars(
        pl.read_parquet(f"{lake}/parquet/*/*.parquet", hive_partitioning=True, try_parse_hive_dates=True)
    ),
    "delta by delta-rs": lambda lake: _arrow(deltalake.DeltaTable(lake / "delta").to_pyarrow_table()),
    "delta by duckdb": lambda lake: _by_duckdb(deltalake.DeltaTable(lake / "delta").to_pyarrow_dataset()),
    "delta by polars": lambda lake: _by_polars(pl.read_delta(str(lake / "delta"))),
    "iceberg by pyiceberg": lambda lake: _arrow(_iceberg(lake).scan().to_arrow()),
    "iceberg by duckdb": lambda lake: _by_duckdb(_iceberg(lake).scan().to_arrow()),
    "iceberg by polars": lambda lake: _by_polars(pl.scan_iceberg(_iceberg(lake)).collect()),
}
# pyiceberg reads null lists and maps as empty ones.
NULLS_ARE_EMPTY = ("iceberg by pyiceberg", "iceberg by duckdb")


@pytest.mark.parametrize("name", READERS)
def test_read_back(lake: Path, name: str) -> None:
    """Each reader returns the values that were written."""
    found = sorted((_plain(row) for row in READERS[name](lake)), key=lambda row: row[0])
    expected = list(EXPECTED)
    if name in NULLS_ARE_EMPTY:
        offset, time, _, data, _, day = expected[2]
        assert found[2] in [
            expected[2],
            (offset, time, None, data, [], day),
            (offset, time, {}, data, [], day),
        ]
        found, expected = found[:2], expected[:2]
    assert found == expected


def _plain(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a row with a map as a dict: readers have pairs, structs or dicts."""
    extensions = row["extensions"]
    if isinstance(extensions, list):
        pairs = (pair.values() if isinstance(pair, dict) else pair for pair in extensions)
        extensions = dict(map(tuple, pairs))  # type: ignore[arg-type]
    time = row["time"]
    assert time.utcoffset().total_seconds() == 0
    return (row["offset"], time.astimezone(UTC), extensions, row["data"], row["headers"], row["record_date"])


def test_transactions_by_delta_rs(lake: Path) -> None:
    """Delta-rs reads the last batch of a writer."""
    assert (
        deltalake.DeltaTable(lake / "delta").transaction_version(f"cloudevents-kafka/orders//0/0/{PIPELINE}")
        == 3
    )
