"""Tables by the dates of events: Delta computes a column, and Iceberg has a partition by time."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql.types import DateType, StructField, StructType

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark._sql import settings
from cloudevents_kafka.spark.pipeline import PipelineFailed
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


def test_dates_of_another_zone(lake: Lake) -> None:
    """If old rows have dates of another time zone, a batch that rewrites them fails, and says what to do."""
    send(lake, "2020-01-01T23:00:00Z", "2020-01-01T23:30:00Z")
    lake.run(to="delta", upsert=("id",))
    fields = lake.spark.read.format("delta").load(f"{lake.out}/events").schema
    generated = {"delta.generationExpression": "CAST(time AS DATE)"}
    columns = StructType([*fields, StructField("event_date", DateType(), metadata=generated)])
    other = Lake.copy_to(lake, lake.out / "by-time")
    table = f"delta.`{other.out}/events`"
    lake.spark.createDataFrame([], columns).write.format("delta").save(f"{other.out}/events")
    other.run(to="delta", upsert=("id",))
    update = f"UPDATE {table} SET event_date = CAST(time AS DATE)"
    lake.spark.sql(f"OPTIMIZE {table}").collect()  # one file has both rows
    with settings(lake.spark, {"spark.sql.session.timeZone": "Pacific/Kiritimati"}):
        lake.spark.sql(update).collect()
    send(lake, "2020-01-03T00:00:00Z")
    with pytest.raises(
        PipelineFailed, match=r"event_date <=> .*\n.*UPDATE … SET column = expression"
    ) as raised:
        other.run(to="delta", upsert=("id",))
    assert raised.value.final
    with settings(lake.spark, {"spark.sql.session.timeZone": "UTC"}):
        lake.spark.sql(update).collect()
    other.run(to="delta", upsert=("id",))
    rows = lake.spark.sql(f"SELECT id, CAST(event_date AS STRING) FROM {table}").collect()
    assert {tuple(row) for row in rows} == {("0", "2020-01-03"), ("1", "2020-01-01")}


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
