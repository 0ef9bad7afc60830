"""Upkeep of tables runs while a pipeline writes to them, and no record is lost or twice in them."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline import InUse
from cloudevents_kafka.spark.pipeline.maintenance import vacuum_tables
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from tests.spark.pipeline.lake import Lake, produce

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.release,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_upkeep_during_batches(lake: Lake, to: Any) -> None:
    """OPTIMIZE and VACUUM of a day and more run while batches land; a shorter VACUUM is refused."""
    produce(lake.broker, lake.topic, 3)
    lake.run(to=to)
    records = 3
    with closing(lake.start(to=to, once=False, interval=0.05, max_records=5)) as pipeline:
        table = table_in_folder(lake.spark, to, f"file://{lake.out}/events")
        for _ in range(6):
            produce(lake.broker, lake.topic, 20)
            records += 20
            with table.lock():
                table.optimize()
            with table.lock():
                table.vacuum(keep_hours=25)
            assert not pipeline.wait(0.1)
        with pytest.raises(InUse):
            list(vacuum_tables(folder=str(lake.out), keep_hours=1))
        while pipeline.summary().total.read < records:
            assert not pipeline.wait(0.2)
    if to == "iceberg":
        lake.spark.catalog.refreshTable(table._sql_name)
    found = [row["offset"] for row in lake.spark.table(table._sql_name).select("offset").collect()]
    assert sorted(found) == list(range(records))
