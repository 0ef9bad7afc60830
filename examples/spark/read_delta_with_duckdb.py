"""Count the events in a Delta table by type, with DuckDB and without Spark.

delta-rs reads the table's log, and DuckDB its files: pip install duckdb deltalake pyarrow

python examples/spark/read_delta_with_duckdb.py FOLDER/events
"""

from __future__ import annotations

import sys

import duckdb
from deltalake import DeltaTable


def main(folder: str) -> None:
    events = DeltaTable(folder).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("events", events)
        counts = connection.sql(
            "select type, count(*) as number, max(time) as latest from events group by type order by type"
        )
        for row in counts.to_arrow_table().to_pylist():  # DuckDB's own rows with times need pytz
            print(row["type"], row["number"], row["latest"].isoformat())


if __name__ == "__main__":
    main(*sys.argv[1:])
