"""The examples for Spark do what their docstrings say, and the pages of docs run, all in one session."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Event, to_record
from tests.spark.pipeline.lake import Lake, create
from tests.spark.pipeline.pages import CONNECT_PAGE, spark_blocks

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "spark"
RUN = {"fan_out", "land", "land_debezium", "read_delta_with_duckdb", "typed_orders"}


def load(name: str) -> ModuleType:
    """Return an example as a module."""
    spec = spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for the names of their types there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def orders(lake: Lake) -> Lake:
    """Return a lake whose topic has the three events of `examples/emit.py`."""
    argv = [sys.executable, str(ROOT / "examples" / "emit.py"), lake.broker.bootstrap_servers, lake.topic]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    return lake


PAGES = [
    # README has a sample of the long page.
    pytest.param(page, marks=[pytest.mark.release] * (page.stem == "transform_with_spark"))
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if spark_blocks(page) and page != CONNECT_PAGE  # which runs in test_connect_pipeline
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_run(orders: Lake, page: Path) -> None:
    """The Python blocks of a page that use Spark run, one after the other, on a topic of three events."""
    code = "\n".join(spark_blocks(page)).replace("localhost:9092", orders.broker.bootstrap_servers)
    code = code.replace('"orders"', f'"{orders.topic}"').replace("lake/", f"{orders.out}/")
    for name in ("invoices", "orders-placed"):
        if f'"{name}"' in code:
            code = code.replace(f'"{name}"', f'"{create(orders.broker, f"{orders.topic}-{name}")}"')
    exec(compile(code, page, "exec"), {"spark": orders.spark})


def test_all_examples_have_a_test() -> None:
    """No example is without a test."""
    assert {path.stem for path in FOLDER.glob("*.py")} == RUN | {"land_connect"}  # in test_connect_pipeline


@pytest.mark.parametrize("to", ["parquet", "delta", "iceberg"])
def test_land(orders: Lake, to: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The three events are in each kind of table, and DuckDB counts them in Delta's."""
    load("land").main(orders.spark, orders.broker.bootstrap_servers, orders.topic, str(orders.out), to)
    first, *rows = capsys.readouterr().out.splitlines()
    assert first == "3 events, 0 quarantined"
    assert [row.split()[:2] for row in rows] == [
        [f"order-17-{number}", f"com.example.order.{step}"]
        for number, step in enumerate(("placed", "paid", "shipped"))
    ]
    if to == "delta":
        load("read_delta_with_duckdb").main(str(orders.out / "events"))
        counts = capsys.readouterr().out.splitlines()
        steps = ("paid", "placed", "shipped")
        assert [row.split()[:2] for row in counts] == [[f"com.example.order.{step}", "1"] for step in steps]


def test_fan_out(orders: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """Each table has the events of its types."""
    load("fan_out").main(orders.spark, orders.broker.bootstrap_servers, orders.topic, str(orders.out))
    output = capsys.readouterr().out
    assert [line for line in output.splitlines() if line.endswith("events")] == [
        "events: 0 events",
        "orders: 2 events",
        "payments: 1 events",
    ]
    payments = output.partition("payments: ")[2]
    assert "com.example.order.paid" in payments
    assert "com.example.order.placed" not in payments


def test_typed_orders(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """Totals by minutes of event time come from the columns; an order that does not fit is set aside."""
    items = [{"sku": "a", "price": 9.5}, {"sku": "b", "price": 1.25, "number": 2}]
    data: list[Any] = [{"order": n, "items": items} for n in range(3)] + [
        {"order": 3, "items": [{"sku": "a"}]}
    ]
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    for number, order in enumerate(data):
        time = f"2024-01-01T10:0{number // 2}:00Z"
        event = Event(id=str(number), source="/s", type="com.example.order.placed", time=time, data=order)
        record = to_record(event)
        producer.produce(lake.topic, value=record.value, headers=list(record.headers))
    assert producer.flush(30) == 0
    load("typed_orders").main(lake.spark, lake.broker.bootstrap_servers, lake.topic, str(lake.out))
    assert capsys.readouterr().out.splitlines() == [
        "10:00 2 orders, 24.00",
        "10:01 1 orders, 12.00",
        "1 set aside: data: /items/*/price must be there",
    ]


def test_land_debezium(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """An insertion and a deletion, as Debezium writes them, are changes in the table."""
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    event = {"specversion": "1.0", "source": "/debezium/postgresql/shop", "type": "io.debezium.change"}
    for number, (operation, before, after) in enumerate((("c", None, {"pk": 1}), ("d", {"pk": 1}, None))):
        names = {"iodebeziumop": operation, "iodebeziumtxId": str(number), "iodebeziumxmin": None}
        data = {"data": {"before": before, "after": after}}
        producer.produce(lake.topic, json.dumps({**event, "id": str(number), **names, **data}))
    producer.produce(lake.topic, None)
    assert producer.flush(30) == 0
    load("land_debezium").main(lake.spark, lake.broker.bootstrap_servers, lake.topic, str(lake.out))
    assert capsys.readouterr().out.splitlines() == [
        "2 events: header is missing: the value was read as a JSON event (K-09)",
        "2 events: was read as (N-01)",
        "1 without a value",
        'c None -> {"pk":1}',
        'd {"pk":1} -> None',
    ]
