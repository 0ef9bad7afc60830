"""Options that have tests of their own hold together: schemas with replays, keys and duplicates."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer
from msgspec.structs import replace

from cloudevents_kafka import Event, Record, to_record
from cloudevents_kafka.spark.pipeline import ReplayOptions, replay_quarantine
from cloudevents_kafka.spark.pipeline.maintenance import contents_of
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from tests.spark.pipeline.lake import Lake

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
SCHEMAS = {"order.*": {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}}
FORMATS = ("delta", "iceberg")
KINDS = [pytest.param("delta", marks=pytest.mark.release), "iceberg"]


def send(lake: Lake, *sent: tuple[str, str | None, bytes | None]) -> None:
    """Send events with these ids and keys; None is a record without headers and value."""
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    for id_, key, payload in sent:
        event = Event(
            id=id_, source="/s", type="order.placed", datacontenttype="application/json", data=payload
        )
        record = Record(key=key) if payload is None else to_record(event, key=key)
        producer.produce(lake.topic, record.value, record.key, headers=list(record.headers), partition=0)
    assert producer.flush(30) == 0


def values(lake: Lake, to: Any) -> dict[str, Any]:
    """Return the values of the rows of events by their ids."""
    rows = table_in_folder(lake.spark, to, f"file://{lake.out}/events").read(lake.spark).collect()
    return {row["id"]: row["value"] and row["value"]["total"] for row in rows}


def mend(record: Record) -> Record:
    """Return a record whose total is a number."""
    return Record(key=record.key, value=json.dumps({"total": 7}).encode(), headers=record.headers)


@pytest.mark.parametrize("to", ["parquet", *(pytest.param(to, marks=pytest.mark.release) for to in FORMATS)])
def test_a_replay_reads_data_by_the_schemas_of_the_pipeline(lake: Lake, to: Any) -> None:
    """Data that does not fit stays refused, and lands in the column of the schema when it is mended."""
    send(lake, ("1", None, b'{"total": 1}'), ("2", None, b'{"total": "x"}'))
    assert lake.run(to=to, schemas=SCHEMAS).counts.quarantined == 1
    options = ReplayOptions(out=str(lake.out), apply=True)
    assert replay_quarantine(options, spark=lake.spark).outcomes == {"refused": 1}
    assert replay_quarantine(options, spark=lake.spark, mend=mend).outcomes == {"landed": 1}
    if to == "parquet":
        rows = lake.spark.read.parquet(f"file://{lake.out}/events").collect()
        assert {row["id"]: (row["value"]["total"], row["data"]) for row in rows} == {
            "1": (1, None),
            "2": (7, None),
        }
    else:
        assert values(lake, to) == {"1": 1, "2": 7}


@pytest.mark.parametrize("to", ["parquet", *(pytest.param(to, marks=pytest.mark.release) for to in FORMATS)])
def test_a_replay_has_schemas_of_its_own(lake: Lake, to: Any) -> None:
    """A replay with another schema lands what fits it; the table keeps its types."""
    send(lake, ("1", None, b'{"total": 1}'), ("2", None, b'{"note": "a"}'), ("3", None, b'{"total": 3.5}'))
    assert lake.run(to=to, schemas=SCHEMAS).counts.quarantined == 2
    options = ReplayOptions(out=str(lake.out), schemas={"order.*": "total BIGINT, note STRING"}, apply=True)
    assert replay_quarantine(options, spark=lake.spark).outcomes == {"landed": 1, "refused": 1}
    if to != "parquet":
        wide = replace(options, schemas={"order.*": "total DOUBLE"})
        with pytest.warns(UserWarning, match="which has value.total bigint"):
            assert replay_quarantine(wide, spark=lake.spark).outcomes == {"refused": 1}
    rescue = replace(options, rescue=True)
    assert replay_quarantine(rescue, spark=lake.spark).outcomes == {"landed": 1}
    if to == "parquet":
        read = lake.spark.read.option("mergeSchema", True).parquet(f"file://{lake.out}/events")
    else:
        read = table_in_folder(lake.spark, to, f"file://{lake.out}/events").read(lake.spark)
    rows = {row["id"]: row["value"].asDict() for row in read.collect()}
    assert rows == {
        "1": {"total": 1, "note": None, "_rescued": None},
        "2": {"total": None, "note": "a", "_rescued": None},
        "3": {"total": None, "note": None, "_rescued": '{"/total":3.5}'},
    }


@pytest.mark.release
@pytest.mark.parametrize("to", FORMATS)
def test_rows_by_key_have_the_values_of_schemas(lake: Lake, to: Any) -> None:
    """An event whose data is in the column of its schema does not delete; a record without a value does."""
    options: dict[str, Any] = {"to": to, "schemas": SCHEMAS, "upsert": ("key",)}
    send(lake, ("1", "a", b'{"total": 1}'), ("2", "b", b'{"total": 2}'), ("3", "c", b'{"total": "x"}'))
    assert lake.run(**options).counts.changes == {"inserted": 2}
    send(lake, ("4", "a", b'{"total": 4}'), ("5", "b", None))
    counts = lake.run(**options).counts
    assert (counts.changes, counts.tombstones) == ({"updated": 1, "deleted": 1}, 1)
    rows = table_in_folder(lake.spark, to, f"file://{lake.out}/events").read(lake.spark).collect()
    found = {bytes(row["key"]): (row["deleted"], row["value"] and row["value"]["total"]) for row in rows}
    assert found == {b"a": (False, 4), b"b": (True, None)}
    counts = contents_of(lake.spark, str(lake.out), ()).counts
    assert (counts.events, counts.others, dict(counts.sizes)) == (1, 1, {4: 2})


@pytest.mark.release
@pytest.mark.parametrize("to", KINDS)
def test_events_with_a_schema_land_once(lake: Lake, to: Any) -> None:
    """Of events that are sent again none lands, and the counts have them; a misfit is set aside."""
    options: dict[str, Any] = {"to": to, "schemas": SCHEMAS, "deduplicate": "1h"}
    send(lake, ("1", None, b'{"total": 1}'), ("2", None, b'{"total": "x"}'), ("1", None, b'{"total": 1}'))
    counts = lake.run(**options).counts
    assert (counts.events, counts.quarantined, counts.duplicates) == (1, 1, 1)
    send(lake, ("1", None, b'{"total": 1}'), ("3", None, b'{"total": 3}'))
    assert lake.run(**options).counts.duplicates == 1
    assert values(lake, to) == {"1": 1, "3": 3}
