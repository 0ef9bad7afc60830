"""The examples for Spark do what their docstrings say, and the pages of docs run, all in one session."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from contextlib import closing
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from cloudevents_kafka import Event, Record, from_record, to_record
from tests.docs.pages import TRY, titled
from tests.spark.pages import CONNECT_PAGE, spark_blocks
from tests.spark.pipeline.lake import Lake, create
from tests.support.cases import each

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "spark"
RUN = {
    *("backfill", "current_customers", "deduplicate", "enrich", "fan_out", "land", "land_debezium"),
    *("read_delta_with_duckdb", "replay_quarantine", "typed_orders"),
}


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


@pytest.fixture
def page_orders(lake: Lake, tmp_path: Path) -> Lake:
    """Return a lake whose topic has the three events of the page about trying pages."""
    blocks = dict(titled(TRY))
    (tmp_path / "order_17.jsonl").write_text(blocks["order_17.jsonl"], "utf-8")
    _, *arguments = shlex.split(blocks["terminal 2, for Spark"])
    own = {"localhost:9092": lake.broker.bootstrap_servers, "orders": lake.topic}
    argv = [sys.executable, "-m", "cloudevents_kafka", *(own.get(one, one) for one in arguments)]
    subprocess.run(argv, check=True, capture_output=True, timeout=60, cwd=tmp_path)
    return lake


SPARK_PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if spark_blocks(page) and page != CONNECT_PAGE  # which runs in tests/spark/test_connect.py
]
# The page that most readers begin with; the others have tests of what they show.
IN_EACH_RUN = {"land_with_spark"}
PAGES = [
    pytest.param(page, marks=[pytest.mark.release] * (page.stem not in IN_EACH_RUN)) for page in SPARK_PAGES
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_run(page_orders: Lake, page: Path) -> None:
    """The Python blocks of a page that use Spark run, one after the other, on a topic of three events."""
    orders = page_orders
    code = "\n".join(spark_blocks(page)).replace("localhost:9092", orders.broker.bootstrap_servers)
    code = code.replace('"orders"', f'"{orders.topic}"').replace("lake/", f"{orders.out}/")
    for name in ("invoices", "orders-clean", "orders-clean_quarantine", "orders-placed"):
        if f'"{name}"' in code:
            code = code.replace(f'"{name}"', f'"{create(orders.broker, f"{orders.topic}-{name}")}"')
    exec(compile(code, page, "exec"), {"spark": orders.spark})


@each("page", [page for page in SPARK_PAGES if page != TRY], ids=lambda page: page.stem)
def test_pages_say_how_to_make_their_topic(page: Path) -> None:
    """A page about Spark has a link to the records and the session of its examples."""
    assert "(../try_these_pages.md#pages-about-spark)" in page.read_text("utf-8").partition("\n## ")[0]


def test_all_examples_have_a_test() -> None:
    """No example is without a test."""
    assert {path.stem for path in FOLDER.glob("*.py")} == RUN


@pytest.mark.parametrize(
    "to", ["delta", *(pytest.param(to, marks=pytest.mark.release) for to in ("parquet", "iceberg"))]
)
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


@pytest.mark.release  # test_land is its sample
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


@pytest.mark.release  # test_land is its sample
def test_replay_quarantine(orders: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """A record without an id lands after it was mended, once."""
    producer = Producer({"bootstrap.servers": orders.broker.bootstrap_servers})
    headers = [("ce_specversion", b"1.0"), ("ce_source", b"/shop"), ("ce_type", b"order.placed")]
    producer.produce(orders.topic, b"{}", headers=headers, partition=0)
    producer.produce(orders.topic, b"no event", partition=0)
    assert producer.flush(30) == 0
    load("replay_quarantine").main(
        orders.spark, orders.broker.bootstrap_servers, orders.topic, str(orders.out)
    )
    output = capsys.readouterr().out
    assert "1 record chosen: 1 would land; nothing was changed" in output
    applied, again, *rows = output.splitlines()[-6:]
    assert (applied, again) == ("{'landed': 1}", "{}")
    assert [row.split() for row in rows] == [
        *[[str(number), f"order-17-{number}"] for number in range(3)],
        ["3", f"{orders.topic}[0]@3"],
    ]


@pytest.mark.release  # test_land is its sample
def test_backfill(orders: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """What was before the pipeline's start lands in batches while it runs."""
    load("backfill").main(orders.spark, orders.broker.bootstrap_servers, orders.topic, str(orders.out))
    assert capsys.readouterr().out.splitlines() == [
        "batch 0 of the backfill: 2 records, 1 are left",
        "batch 1 of the backfill: 1 records, 0 are left",
        f"{orders.topic}[0]: 3 gaps, 0 had landed",
        "3 events",
    ]


@pytest.mark.release  # test_land is its sample
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


@pytest.mark.release  # test_land is its sample
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


@pytest.mark.release  # test_land is its sample
def test_deduplicate(orders: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """Three events that were sent twice are three rows, in the table and in the stream."""
    argv = [sys.executable, str(ROOT / "examples" / "emit.py"), orders.broker.bootstrap_servers, orders.topic]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    load("deduplicate").main(orders.spark, orders.broker.bootstrap_servers, orders.topic, str(orders.out))
    assert capsys.readouterr().out.splitlines() == [
        "landed: 3 events + 0 quarantined + 3 duplicates",
        "streamed: 3, 3 dropped",
    ]


def send_changes(lake: Lake, changes: list[tuple[str, str, str | None]]) -> None:
    """Send events about customers, by key, type and data; one without a type is a tombstone."""
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    for number, (key, type_, data) in enumerate(changes):
        if not type_:
            producer.produce(lake.topic, None, key)
            continue
        event = Event(id=str(number), source="/shop", type=type_, subject=key, data=(data or "").encode())
        record = to_record(event, mode="binary", key=key.encode())
        producer.produce(lake.topic, record.value, record.key, headers=list(record.headers))
    assert producer.flush(30) == 0


@pytest.mark.release  # test_land is its sample
def test_current_customers(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    """A topic of changes is the table of customers that are there."""
    put, delete = "customer.changed", "customer.deleted"
    send_changes(lake, [("c-1", put, "Ada"), ("c-2", put, "Bob"), ("c-3", put, "Grace"), ("c-4", put, "x")])
    main = load("current_customers").main
    main(lake.spark, lake.broker.bootstrap_servers, lake.topic, str(lake.out))
    send_changes(lake, [("c-1", put, "Ada L."), ("c-2", delete, "Bob"), ("c-4", "", None), ("c-5", put, "E")])
    main(lake.spark, lake.broker.bootstrap_servers, lake.topic, str(lake.out))
    assert capsys.readouterr().out.splitlines() == [
        *("4 inserted", "c-1 Ada", "c-2 Bob", "c-3 Grace", "c-4 x"),
        *("1 inserted, 1 updated, 2 deleted", "c-1 Ada L.", "c-3 Grace", "c-5 E"),
    ]


@pytest.mark.release  # test_land is its sample
def test_enrich(lake: Lake) -> None:
    """Events are in the other topic with the names of customers, as events of their own."""
    send_changes(lake, [("c-1", "order.placed", "17"), ("c-9", "order.placed", "18")])
    enriched = create(lake.broker, f"{lake.topic}-enriched")
    load("enrich").main(lake.spark, lake.broker.bootstrap_servers, lake.topic, enriched)
    settings = {"bootstrap.servers": lake.broker.bootstrap_servers, "group.id": lake.topic}
    with closing(Consumer({**settings, "auto.offset.reset": "earliest"})) as consumer:
        consumer.subscribe([enriched])
        records = [Record.of(message) for message in consumer.consume(2, timeout=30)]
    events = sorted(map(from_record, records), key=lambda event: event.id)
    assert [(event.id, event.type, event["enrichedfrom"], event.data) for event in events] == [
        ("enriched-0", "order.placed.enriched", "0", {"original": "17", "name": "Ada"}),
        ("enriched-1", "order.placed.enriched", "1", {"original": "18"}),
    ]
    assert {record.key for record in records} == {b"c-1", b"c-9"}
