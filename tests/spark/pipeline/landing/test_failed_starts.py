"""After a start that failed, the next one lands all, by its own options, in the tables of real formats."""

from __future__ import annotations

import json
import random
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline import (
    EventBatch,
    EventPipeline,
    PipelineError,
    PipelineFailed,
    PipelineOptions,
    WrongTable,
)
from cloudevents_kafka.spark.pipeline.landing import TablesTarget
from tests.spark.pipeline.conftest import Run
from tests.spark.pipeline.lake import Lake
from tests.spark.pipeline.landing.test_fan_out import Killed, kill_after
from tests.spark.pipeline.landing.test_typed_landing import rows_of, send_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
FORMATS = ["iceberg", pytest.param("delta", marks=pytest.mark.release)]
JSON = "application/json"
MAP = "m MAP<STRING, STRUCT<x: INT, y: INT>>"
FIRST = f"total INT, {MAP}"
PLAN = re.compile(r"LogicalRDD|\+-|:-|== Physical|py4j|\tat ", re.IGNORECASE)
# Schemas that the table of `FIRST` cannot take, and what the error says.
REFUSED = {
    "Total INT": r"the column value\.Total must be written as in the table .*, which has value\.total",
    "total INT, m MAP<STRING, STRUCT<X: INT>>": r"value\.m\.value\.X must be written .* has value\.m\.v",
    "total INT, `_rescued` STRING": r"must not have the member _rescued",
    "total INT, `__CE_corrupt` STRING": r"must not have the member __CE_corrupt",
}
NOT_OF_DELTA = {
    f"total INT, `a{mark}b` STRUCT<`c`: INT>": rf"the name of the column value\.a\{mark}b .* must not contain"
    for mark in (" ", ",", "=", ";", "(")
}
# Options of a start that works, and what the rows of `payload(2)` are by them.
STARTS: Mapping[str, tuple[dict[str, Any], str | None]] = {
    "the same schema": ({"schemas": {"order": FIRST}}, '{"total":2,"m":{"a":{"x":2}}}'),
    "a struct of a map with fewer fields": (
        {"schemas": {"order": "total INT, m MAP<STRING, STRUCT<x: INT>>"}},
        '{"total":2,"m":{"a":{"x":2}}}',
    ),
    "no schema": ({}, None),
    "rescue": ({"schemas": {"order": FIRST}, "rescue": True}, '{"total":2,"m":{"a":{"x":2}},"_rescued":"…"}'),
}


def payload(number: int) -> bytes:
    return json.dumps({"total": number, "m": {"a": {"x": number}}, "more": 1}).encode()


def begin(lake: Lake, to: str) -> None:
    """Land a first record by a schema, and send a second one."""
    send_data(lake, "order", JSON, payload(1))
    lake.run(to=to, schemas={"order": FIRST})
    send_data(lake, "order", JSON, payload(2))


def values(lake: Lake, to: str) -> list[str | None]:
    """Return the values of the events as JSON, by offset; other rows have none."""
    rows = rows_of(lake, to, "events").selectExpr("offset", "to_json(value) AS value").sort("offset")
    return [row["value"] for row in rows.collect()]


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("name", STARTS)
def test_a_start_after_one_that_failed(
    lake: Lake, to: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that has begun under wrong options is read by those of the next start."""
    begin(lake, to)
    with monkeypatch.context() as patch:
        # As if the table had changed after the start has looked.
        patch.setattr(TablesTarget, "fit", lambda self, *_: self._read)
        with pytest.raises(PipelineError):
            lake.run(to=to, schemas={"order": "Total INT"}, rescue=True, lenient=True)
    assert (lake.out / "_batches" / "begun.json").exists()
    options, value = STARTS[name]
    summary = lake.run(to=to, **options)
    assert (summary.recovered, summary.total.events, summary.total.quarantined) == (1, 2, 0)
    found = values(lake, to)
    assert found[0] == '{"total":1,"m":{"a":{"x":1}}}'
    assert found[1] == (value and value.replace("…", '{\\"/more\\":1}'))
    assert "tolerated" not in rows_of(lake, to, "events").columns


@pytest.mark.release
@pytest.mark.parametrize("to", ["iceberg", "delta"])
def test_a_backfill_after_one_that_failed(lake: Lake, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of a backfill that no table has is read by the options of the next one, too."""
    send_data(lake, "order", JSON, payload(1), payload(2), payload(3))
    lake.run(to=to, schemas={"order": FIRST}, start=json.dumps({lake.topic: {"0": 2}}))
    with monkeypatch.context() as patch:
        patch.setattr(TablesTarget, "fit", lambda self, *_: self._read)
        with pytest.raises(PipelineError):
            lake.run(to=to, schemas={"order": "Total INT"}, rescue=True, backfill="0..2")
    assert (lake.out / "_backfill" / "_batches" / "begun.json").exists()
    assert lake.run(to=to, backfill="0..2").counts.read == 2
    assert values(lake, to) == [None, None, '{"total":3,"m":{"a":{"x":3}}}']
    assert lake.run(to=to, backfill="0..2").counts.read == 0


@pytest.mark.release
@pytest.mark.parametrize("to", ["iceberg", "delta"])
def test_a_first_batch_without_records(lake: Lake, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first batch that has no records, and was killed, holds up no start."""
    send_data(lake, "order", JSON, payload(1))
    with monkeypatch.context() as patch:
        patch.setattr(TablesTarget, "commit", fail)
        with pytest.raises(PipelineFailed):
            lake.run(to=to, start="latest")
    lake.run(to=to, start="latest", schemas={"order": FIRST})
    send_data(lake, "order", JSON, payload(2))
    summary = lake.run(to=to, start="latest", schemas={"order": FIRST})
    assert (summary.total.events, values(lake, to)) == (1, ['{"total":2,"m":{"a":{"x":2}}}'])


@pytest.mark.release
def test_a_function_reads_a_batch_as_it_was_begun(lake: Lake) -> None:
    """Without tables the note of a batch decides, until somebody removes it."""
    seen: list[list[str]] = []

    def take(batch: EventBatch) -> None:
        seen.append(batch.events.columns)
        if len(seen) == 1:
            raise ValueError("not yet")

    send_data(lake, "order", JSON, payload(1))
    options = PipelineOptions(
        bootstrap_servers=lake.broker.bootstrap_servers, topics=(lake.topic,), out=str(lake.out), once=True
    )
    typed = replace(options, schemas={"order": FIRST})
    with pytest.raises(PipelineFailed, match="not yet"):
        EventPipeline(typed, spark=lake.spark, each_batch=take).run()
    EventPipeline(options, spark=lake.spark, each_batch=take).run()
    assert ["value" in columns for columns in seen] == [True, True]


@pytest.mark.parametrize("to", FORMATS)
def test_wrong_schemas_are_refused_at_the_start(lake: Lake, to: str) -> None:
    """A schema that would fail each time begins no batch; the error says what to do, without a plan."""
    begin(lake, to)
    refused = REFUSED | (NOT_OF_DELTA if to == "delta" else {})
    for schema, words in refused.items():
        with pytest.raises((WrongTable, ValueError), match=words) as raised:
            lake.run(to=to, schemas={"order": schema}, rescue=True)
        assert not PLAN.search(str(raised.value))
    assert values(lake, to) == ['{"total":1,"m":{"a":{"x":1}}}']
    lake.run(to=to, schemas={"order": FIRST})
    assert len(values(lake, to)) == 2


@pytest.mark.release
def test_names_that_delta_takes_with_a_mapping(lake: Lake) -> None:
    """Blanks are in names of Delta if the table maps its names."""
    begin(lake, "delta")
    table = f"delta.`{lake.out}/events`"
    mapping = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2'"
    lake.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({mapping}, 'delta.minWriterVersion' = '5')")
    send_data(lake, "order", JSON, b'{"total":3,"a b":7}')
    lake.run(to="delta", schemas={"order": "total INT, `a b` INT"})
    assert values(lake, "delta")[1:] == ['{"total":2}', '{"total":3,"a b":7}']


def test_names_of_parquet(lake: Lake) -> None:
    """Files of Parquet have each name in one case, also after runs without a schema."""
    send_data(lake, "order", JSON, b'{"OrderId":1,"n":{"A":1}}')
    lake.run(schemas={"order": "OrderId INT, n STRUCT<A: INT>"})
    send_data(lake, "order", JSON, b'{"OrderId":2,"n":{"A":2}}')
    lake.run()
    send_data(lake, "order", JSON, b'{"OrderId":3,"n":{"A":3}}')
    for schema, name in (("orderid INT", "OrderId"), ("OrderId INT, n STRUCT<a: INT>", "n.A")):
        with pytest.raises(WrongTable, match=rf"must be written as in .*events, which has value\.{name}: "):
            lake.run(schemas={"order": schema})
    summary = lake.run(schemas={"order": "OrderId BIGINT, more INT"})
    assert summary.total.events == 3


@pytest.mark.release
@pytest.mark.parametrize("to", ["parquet", "iceberg", "delta"])
def test_the_command_ends_with_2(lake: Lake, pipeline: Run, to: str, tmp_path: Path) -> None:
    """A schema that the tables cannot take ends the command with code 2."""
    begin(lake, to)
    (tmp_path / "order.ddl").write_text("Total INT")
    options = ("--to", to, "--once", "--schema", f"order={tmp_path}/order.ddl")
    code, output = pipeline(lake.topic, lake.out, *options).end()
    assert code == 2, output
    assert "must be written as in" in output
    assert not PLAN.search(output)


@pytest.mark.release
@pytest.mark.parametrize("to", ["iceberg", "delta"])
@pytest.mark.parametrize("seed", range(3))
def test_random_failing_starts(lake: Lake, to: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After starts that fail or are killed anywhere, one right start lands each record once."""
    chance = random.Random(seed)
    send_data(lake, "order", JSON, payload(0))
    lake.run(to=to, schemas={"order": FIRST})
    sent, messages = 1, []
    for _ in range(6):
        send_data(lake, "order", JSON, payload(sent), b'{"total":"x"}')
        sent += 2
        with monkeypatch.context() as patch:
            if chance.random() < 0.5:
                patch.setattr(TablesTarget, "fit", lambda self, *_: self._read)
            if chance.random() < 0.6:
                kill_after(chance.randint(1, 3), patch)
            else:
                patch.setattr(TablesTarget, "commit", fail)
            schema = chance.choice(["Total INT", "total STRING", FIRST, "`a b` INT", None])
            options: dict[str, Any] = {"schemas": {"order": schema}} if schema else {}
            if schema:
                options["rescue"] = chance.random() < 0.5
            if chance.random() < 0.5:
                options["tables"] = {"order": "orders"}
            with suppress(Killed):
                messages.append(run(lake, to=to, lenient=chance.random() < 0.5, **options))
    assert not [message for message in messages if PLAN.search(message)]
    summary = lake.run(to=to, schemas={"order": FIRST})
    assert summary.total.read == sent
    offsets = [offset for table in tables(lake) for offset in offsets_of(lake, to, table)]
    assert sorted(offsets) == list(range(sent))


def run(lake: Lake, **options: Any) -> str:
    """Run a pipeline; return its error."""
    try:
        lake.run(**options)
    except PipelineError as error:
        return str(error)
    return ""


def fail(*_: Any) -> Any:
    raise PipelineFailed("the disk is full")


def tables(lake: Lake) -> Iterator[str]:
    names = ("events", "orders", "quarantine")
    return (name for name in names if (lake.out / name).exists())


def offsets_of(lake: Lake, to: str, table: str) -> list[int]:
    return [row["offset"] for row in rows_of(lake, to, table).select("offset").collect()]
