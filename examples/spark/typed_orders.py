"""Land orders by a schema in Delta, and print the totals of each minute of event time.

python examples/spark/typed_orders.py BOOTSTRAP_SERVERS TOPIC FOLDER
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudevents_kafka.spark import EventPipeline, PipelineOptions
from cloudevents_kafka.spark.pipeline import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Item:
    sku: str
    price: float
    number: int = 1


@dataclass
class Order:
    order: int
    items: list[Item]


TOTALS = """
    SELECT window.start AS minute, count(DISTINCT order) AS orders,
        sum(item.price * coalesce(item.number, 1)) AS total -- an absent member is null
    FROM (SELECT window(time, '1 minute') AS window, value.order, explode(value.items) AS item FROM {orders})
    GROUP BY window.start ORDER BY minute
"""


def main(spark: SparkSession, servers: str, topic: str, folder: str) -> None:
    options = PipelineOptions(
        bootstrap_servers=servers,
        topics=(topic,),
        out=folder,
        to="delta",
        once=True,
        tables={"com.example.order.placed": "orders"},
        schemas={"com.example.order.placed": Order},
    )
    summary = EventPipeline(options, spark=spark).run()
    orders = spark.read.format("delta").load(summary.tables["orders"])
    for row in spark.sql(TOTALS, orders=orders).collect():
        print(f"{row.minute:%H:%M} {row.orders} orders, {row.total:.2f}")
    for reason, count in summary.counts.by_reason.get("broken-data", {}).items():
        print(f"{count} set aside: {reason}")


if __name__ == "__main__":
    with local_session(formats=["delta"]) as session:
        main(session, *sys.argv[1:])
