"""Tables by the dates of events: Delta computes a column, and Iceberg has a partition by time."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark._sql import settings
from tests.spark.pages import DOCS, spark_blocks
from tests.spark.pipeline.lake import Lake

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.release,  # the page runs in each gate
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
PAGE = DOCS / "how-to" / "delta_and_iceberg.md"


def send(lake: Lake, *times: str | None) -> None:
    """Send events of some times, with data that may be too wide for its column."""
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    for number, time in enumerate(times):
        record = to_record(Event(id=str(number), source="/s", type="t", time=time, data={"n": 1}))
        producer.produce(lake.topic, record.value, headers=list(record.headers))
    assert producer.flush(30) == 0


def test_delta(lake: Lake) -> None:
    """Delta computes a generated column of the page in UTC, also after other columns were added."""
    send(lake, "2020-01-01T23:00:00Z", "2021-01-02T01:00:00Z", None)
    lake.run(to="delta")
    (block,) = (block for block in spark_blocks(PAGE) if "generationExpression" in block)
    other = Lake.copy_to(lake, lake.out / "by-time")
    code = block[: block.index("options =")].replace("lake/orders/", f"{lake.out}/")
    exec(compile(code.replace("lake/by-time", str(other.out)), PAGE, "exec"), {"spark": lake.spark})
    with settings(lake.spark, {"spark.sql.session.timeZone": "Pacific/Kiritimati"}):
        summary = other.run(to="delta", max_records=2)
        assert (summary.batches, summary.counts.events) == (2, 3)
        send(lake, "2022-01-01T00:00:00Z")
        other.run(to="delta", schemas={"t": "n TINYINT"})
        send(lake, "2023-01-01T00:00:00Z")
        other.run(to="delta", schemas={"t": "n INT"})
    rows = (
        lake.spark.read.format("delta").load(f"{other.out}/events").select("offset", "event_date").collect()
    )
    dates = {row["offset"]: row["event_date"] and row["event_date"].isoformat() for row in rows}
    assert dates == {0: "2020-01-01", 1: "2021-01-02", 2: None, 3: "2022-01-01", 4: "2023-01-01"}


def test_iceberg(lake: Lake) -> None:
    """Batches after the change of the partition have files by the time of events, under the same ledger."""
    conf: Any = lake.spark.conf
    conf.set("spark.sql.catalog.dates", "org.apache.iceberg.spark.SparkCatalog")
    conf.set("spark.sql.catalog.dates.type", "hadoop")
    conf.set("spark.sql.catalog.dates.warehouse", f"{lake.out}/warehouse")
    options: Any = {"to": "iceberg", "table": "dates.shop.orders"}
    send(lake, "2020-01-01T23:00:00Z")
    lake.run(**options)
    (block,) = (block for block in spark_blocks(PAGE) if "REPLACE PARTITION" in block)
    change = block[block.index("spark.sql(") :].replace("ice.shop", "dates.shop")
    exec(compile(change, PAGE, "exec"), {"spark": lake.spark})
    send(lake, "2021-01-02T01:00:00Z", "2022-01-01T00:00:00Z")
    assert lake.run(**options).total.events == 3
    assert lake.run(**options).batches == 0
    found = lake.spark.sql("SELECT partition.time_day FROM dates.shop.orders.partitions").collect()
    days = sorted(str(row["time_day"]) for row in found)
    assert days == ["2021-01-02", "2022-01-01", "None"]
