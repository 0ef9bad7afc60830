"""Rows by key land once in tables of users, too: partitioned, with a change data feed, with constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.spark.pipeline import PipelineFailed
from cloudevents_kafka.spark.pipeline.batches import _batch
from cloudevents_kafka.spark.pipeline.batches._batch_rows import Rows
from cloudevents_kafka.spark.pipeline.notes import ReadSettings, Upsert
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from cloudevents_kafka.spark.pipeline.tables._evolution import type_sql
from tests.spark.pipeline.lake import Lake
from tests.spark.pipeline.landing.test_typed_landing import send_data

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.release,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
JSON = "application/json"


def table_of(lake: Lake, to: Any) -> Any:
    return table_in_folder(lake.spark, to, f"file://{lake.out}/events")


def make(lake: Lake, to: str, by: str, properties: str = "") -> None:
    """Make the table of events as a user does."""
    events, _ = Rows({}, ReadSettings(upsert=Upsert(("subject",), None))).none(lake.spark)
    columns = ", ".join(f"`{field.name}` {type_sql(field.dataType)}" for field in events.schema.fields)
    more = f"TBLPROPERTIES ({properties})" if properties else ""
    name = table_of(lake, to)._sql_name
    lake.spark.sql(f"CREATE TABLE {name} ({columns}) USING {to} PARTITIONED BY ({by}) {more}")


@pytest.mark.parametrize("to", ["delta", "iceberg"])
@pytest.mark.parametrize("upsert", [(), ("subject",)])
def test_a_first_batch_without_rows(lake: Lake, to: str, upsert: tuple[str, ...]) -> None:
    """A table that exists gets its ledger, and takes the records of the next start."""
    make(lake, to, "type")
    change(lake, "a")
    options: Any = {"to": to, "upsert": upsert, "start": "latest"}
    assert lake.run(**options).counts.read == 0
    change(lake, "b")
    assert lake.run(**options).counts.events == 1
    assert [row[:2] for row in rows(lake, to)] == [("s0", "b")]


@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_rows_of_a_cluster(lake: Lake, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are merged, too, if Spark can compute them again after it has lost an executor."""
    monkeypatch.setattr(_batch, "_loses_no_executor", lambda _: False)
    options: Any = {"to": to, "upsert": ("subject",), "schemas": {"t": "n INT"}}
    for values in ((1, 2), (3,)):
        for number, value in enumerate(values):
            send_data(lake, "t", JSON, f'{{"n":{value}}}'.encode(), subject=f"s{number}")
        send_data(lake, "t", JSON, b'{"n":"x"}', subject="s9")
        lake.run(**options)
    found = table_of(lake, to).read().select("subject", "value.n").collect()
    assert sorted(map(tuple, found)) == [("s0", 3), ("s1", 2)]


def change(lake: Lake, types: str) -> None:
    """Send a record for each subject, of a type that is the value of its partition."""
    for number, type_ in enumerate(types):
        send_data(lake, type_, JSON, f'{{"n":{number}}}'.encode(), subject=f"s{number}")


def rows(lake: Lake, to: str) -> Iterator[tuple[str, str, bool]]:
    found = table_of(lake, to).read(lake.spark).select("subject", "type", "deleted").collect()
    return (tuple(row) for row in sorted(found))


@pytest.mark.parametrize(
    ("to", "by"), [("delta", "type"), ("iceberg", "type"), ("iceberg", "bucket(4, `offset`)")]
)
def test_rows_that_move_to_another_partition(lake: Lake, to: str, by: str) -> None:
    """A record whose partition is another than that of its row moves the row."""
    make(lake, to, by)
    options: Any = {"to": to, "upsert": ("subject",), "deleted": "type=gone"}
    change(lake, "aabb")
    lake.run(**options)
    change(lake, "abac")
    send_data(lake, "gone", JSON, b"{}", subject="s3")
    summary = lake.run(**options)
    assert summary.counts.changes == {"updated": 4, "deleted": 1}
    expected = [("s0", "a", False), ("s1", "b", False), ("s2", "a", False), ("s3", "gone", True)]
    assert list(rows(lake, to)) == expected


def test_a_change_data_feed_has_each_change_once(lake: Lake) -> None:
    """Changes that readers of the feed see are those of the batches, also with deletion vectors."""
    make(
        lake, "delta", "type", "'delta.enableChangeDataFeed' = 'true', 'delta.enableDeletionVectors' = 'true'"
    )
    options: Any = {"to": "delta", "upsert": ("subject",)}
    change(lake, "aab")
    lake.run(**options)
    change(lake, "ab")
    lake.run(**options)
    lake.run(**options)  # nothing to do
    assert list(rows(lake, "delta")) == [("s0", "a", False), ("s1", "b", False), ("s2", "b", False)]
    feed = lake.spark.read.option("readChangeFeed", True).option("startingVersion", 0)
    found = feed.format("delta").load(f"{lake.out}/events").groupBy("_change_type").count().collect()
    assert dict(map(tuple, found)) == {"insert": 3, "update_preimage": 2, "update_postimage": 2}


@pytest.mark.parametrize("upsert", [(), ("subject",)])
def test_a_constraint_of_a_user(lake: Lake, upsert: tuple[str, ...]) -> None:
    """A record that a constraint of the table refuses ends each start: the error says so, with code 2."""
    options: Any = {"to": "delta", "upsert": upsert}
    change(lake, "a")
    lake.run(**options)
    name = table_of(lake, "delta")._sql_name
    lake.spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT known CHECK (type <> 'z')")
    change(lake, "z")
    with pytest.raises(PipelineFailed, match="a constraint of the table refuses a record") as raised:
        lake.run(**options)
    assert raised.value.final
    lake.spark.sql(f"ALTER TABLE {name} DROP CONSTRAINT known")
    assert lake.run(**options).total.events == 2
