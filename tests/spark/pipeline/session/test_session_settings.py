"""No setting of a session changes what a pipeline lands: tables and counts are the same under each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.testing import LocalBroker
from tests.spark.pipeline.lake import Lake, produce, produce_broken
from tests.spark.settings import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

TYPES = ("shop.order.x", "shop.order.paid", "it's\\a.type", "shop.visit")
ROUTES = {"it's\\a.type": "quoted", "shop.*.x": "orders", "*.paid": "payments"}
EVENTS = (
    Event(id="a", source="/s", type="shop.order.x", time="0001-01-01T00:00:00Z", data={"a": None}),
    Event(id="b", source="/s", type="t", time="9999-12-31T23:59:59.123456Z", subject="é'\\", n=1, yes=True),
)
DEBEZIUM = b'{"specversion":"1.0","id":"1","source":"/d","type":"debezium","data":{"a":1}}'
SAMPLE = ("execution.arrow.maxRecordsPerBatch=0",)


def send(lake: Lake) -> None:
    """Send events in binary mode, JSON and Avro, one that is read leniently only, and broken records."""
    for type_ in TYPES:
        produce(lake.broker, lake.topic, 2, type_)
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    for event in EVENTS:
        records = [
            to_record(event),
            *(to_record(event, mode="structured", format=f) for f in ("avro", "json")),
        ]
        for record in records:
            headers = [*record.headers, ("traceparent", b"00")]
            producer.produce(lake.topic, value=record.value, headers=headers, key=b"\x00\xff")
    producer.produce(lake.topic, value=DEBEZIUM)
    producer.produce(lake.topic, value=None)
    assert producer.flush(30) == 0
    produce_broken(lake.broker, lake.topic, 2)


def land(lake: Lake) -> tuple[Any, dict[str, tuple[Any, list[str]]]]:
    """Return the counts of a run, and the schema and rows of each table."""
    summary = lake.run(tables=ROUTES, lenient=True)
    tables = {}
    for folder in sorted(path for path in lake.out.iterdir() if not path.name.startswith("_")):
        table = ds.dataset(folder, partitioning="hive").to_table()
        tables[folder.name] = (table.schema, sorted(map(repr, table.to_pylist())))
    return summary.counts, tables


@pytest.fixture(scope="module")
def default(
    session: SparkSession, kafka_broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Lake, Any]:
    """Return a lake, and what has landed there with the settings of the session."""
    lake = Lake(session, kafka_broker, tmp_path_factory.mktemp("default"))
    send(lake)
    landed = land(lake)
    counts, tables = landed
    assert (counts.events, counts.quarantined, counts.tolerated) == (15, 3, 1)
    assert set(tables) == {"events", "orders", "payments", "quarantine", "quoted"}
    return lake, landed


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.release] * (name not in SAMPLE)) for name in SETTINGS],
)
def test_tables_are_the_same(
    default: tuple[Lake, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """Events, errors, tables by type and counts do not depend on the setting, nor does who reads them."""
    lake, landed = default
    conf = lake.spark.conf
    before = {setting: conf.get(setting, None) for setting in SETTINGS[name]}
    try:
        for setting, value in SETTINGS[name].items():
            conf.set(setting, value)
        assert land(Lake.copy_to(lake, tmp_path)) == landed
    finally:
        for setting, old in before.items():
            conf.unset(setting) if old is None else conf.set(setting, old)
    assert "in Python workers" not in caplog.text
