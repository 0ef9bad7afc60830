"""Gaps of topics are filled, each record once, in each kind of table and next to a running pipeline."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from cloudevents_kafka.spark._sql import settings
from cloudevents_kafka.spark.pipeline import (
    EventPipeline,
    GapCounts,
    InUse,
    PipelineError,
    PipelineFailed,
    PipelineOptions,
    WrongCheckpoint,
    WrongTable,
)
from cloudevents_kafka.spark.pipeline.landing import TablesTarget
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from cloudevents_kafka.spark.pipeline.tables._delta import DeltaTable
from tests.spark.pipeline.lake import Lake, create, produce, produce_broken, until

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
KINDS = ("parquet", *(pytest.param(to, marks=pytest.mark.release) for to in ("delta", "iceberg")))


def offsets(lake: Lake, to: Any, *tables: str) -> list[int]:
    """Return the offsets in tables, of events by default."""
    found = []
    for table in tables or ("events",):
        if to == "parquet":
            folder = lake.out / table
            frame = lake.spark.read.parquet(f"file://{folder}") if folder.exists() else None
        else:
            opened = table_in_folder(lake.spark, to, f"file://{lake.out / table}")
            frame = opened.read(lake.spark) if opened.exists() else None
        found += [] if frame is None else [row["offset"] for row in frame.select("offset").collect()]
    return sorted(found)


ALL = ("events", "quarantine")


@pytest.mark.release
def test_the_session_of_the_user_keeps_its_settings(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a backfill and an unfinished batch are written in UTC, the user's session has its time zone."""
    zones: list[str] = []
    stage = DeltaTable._transaction

    def transaction(self: DeltaTable) -> Any:
        zones.append(str(lake.spark.conf.get("spark.sql.session.timeZone")))
        return stage(self)

    def die(*_: object) -> None:
        raise OSError("killed")

    produce(lake.broker, lake.topic, 5)
    lake.run(to="delta", start="latest")
    monkeypatch.setattr(DeltaTable, "_transaction", transaction)
    with settings(lake.spark, {"spark.sql.session.timeZone": "Europe/Berlin"}):
        assert lake.run(to="delta", backfill="2..latest").counts.events == 3
        produce(lake.broker, lake.topic, 1)
        with monkeypatch.context() as patch:
            patch.setattr(TablesTarget, "_commit", die)
            with pytest.raises(PipelineFailed):
                lake.run(to="delta")
        assert lake.run(to="delta").recovered is not None
    assert set(zones) == {"Europe/Berlin"}
    assert offsets(lake, "delta") == [2, 3, 4, 5]


@pytest.mark.parametrize("to", KINDS)
def test_gaps_are_filled(lake: Lake, to: str) -> None:
    """What was before the start of the pipeline lands in batches, once; then there is nothing to read."""
    produce(lake.broker, lake.topic, 5)
    produce_broken(lake.broker, lake.topic, 2)
    lake.run(to=to, start="latest")
    produce(lake.broker, lake.topic, 3)
    lake.run(to=to, start="latest")
    produce(lake.broker, lake.topic, 1)
    summary = lake.run(to=to, backfill="2..latest", max_records=3)
    assert (summary.batches, summary.counts.read, summary.complete) == (2, 5, True)
    assert (summary.counts.events, summary.counts.quarantined) == (3, 2)
    assert summary.backfill == {lake.topic: {"0": GapCounts(gaps=5, landed=3, ahead=1)}}
    assert offsets(lake, to, *ALL) == list(range(2, 10))
    text = summary.to_text()
    assert f"{lake.topic}[0]  " in text
    assert "had landed" in text
    summary = lake.run(to=to, backfill="earliest..latest")
    assert (summary.batches, summary.counts.read) == (1, 2)
    assert summary.backfill == {lake.topic: {"0": GapCounts(gaps=2, landed=8, ahead=1)}}
    assert lake.run(to=to, backfill="earliest..latest").batches == 0
    assert lake.run(to=to, start="latest").counts.read == 1
    assert offsets(lake, to, *ALL) == list(range(11))


@pytest.mark.release  # `test_gaps_are_filled` has a range of offsets
def test_by_time_of_partitions(lake: Lake) -> None:
    """A range of times has the first record that is not before a time, in each partition."""
    topic = create(lake.broker, f"{lake.topic}-two", partitions=2)
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    headers = [
        (f"ce_{name}", value)
        for name, value in zip(
            ("specversion", "id", "source", "type"), (b"1.0", b"1", b"/", b"t"), strict=True
        )
    ]
    now = int(time.time()) * 1000
    for number in range(10):
        producer.produce(
            topic, b"", headers=headers, partition=number % 2, timestamp=now - 60_000 + number * 1000
        )
    assert producer.flush(30) == 0
    lake.run(topics=(topic,), start="latest")
    begin, end = (
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime((now - 60_000 + at) / 1000)) for at in (3000, 8000)
    )
    summary = lake.run(topics=(topic,), backfill=f"@{begin}..@{end}")
    parts = {"0": GapCounts(gaps=2), "1": GapCounts(gaps=3)}
    assert summary.backfill == {topic: parts}
    summary = lake.run(topics=(topic,), backfill=f'{{"{topic}": {{"1": [0, 3]}}}}')
    assert summary.backfill == {topic: {"1": GapCounts(gaps=1, landed=2)}}
    with pytest.raises(PipelineFailed, match="backfill must have topics that are read"):
        lake.run(topics=(topic,), backfill=f'{{"{topic}": {{"2": [0, 3]}}}}')


def test_expired_records_are_counted(lake: Lake) -> None:
    """Records that have expired do not end the run; the summary has their number."""
    produce(lake.broker, lake.topic, 6)
    lake.run(start="latest")
    admin = AdminClient({"bootstrap.servers": lake.broker.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(lake.topic, 0, 4)]).values():
        future.result()
    summary = lake.run(backfill="0..6")
    assert summary.backfill == {lake.topic: {"0": GapCounts(gaps=2, expired=4)}}
    assert offsets(lake, "parquet") == [4, 5]


@pytest.mark.release
def test_a_topic_that_the_folder_does_not_know(lake: Lake) -> None:
    """All of it is a gap, to its end."""
    produce(lake.broker, lake.topic, 2)
    lake.run(to="delta")
    old = create(lake.broker, f"{lake.topic}-old")
    produce(lake.broker, old, 3)
    assert lake.run(to="delta", topics=(old,), backfill="0..9").counts.read == 3
    assert offsets(lake, "delta") == [0, 0, 1, 1, 2]
    assert lake.run(to="delta").batches == 0


class Killed(Exception):
    """Raised where the process is killed."""


@pytest.mark.parametrize(
    ("to", "step"),
    [(to, step) for to in ("delta", "iceberg") for step in ("staged", "quarantine", "events")],
)
@pytest.mark.release  # `test_backfill_law` has a sample
def test_killed_between_commits(lake: Lake, to: str, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that has a row in a table is finished as it was begun, though the options are others."""
    produce(lake.broker, lake.topic, 4)
    produce_broken(lake.broker, lake.topic, 4)
    produce(lake.broker, lake.topic, 4)
    lake.run(to=to, start="latest")
    commit = TablesTarget._commit
    with monkeypatch.context() as patch:

        def die(self: TablesTarget, table: str) -> None:
            if step != "staged":
                commit(self, table)
            if step in {"staged", table}:
                raise Killed

        patch.setattr(TablesTarget, "_commit", die)
        with pytest.raises(Killed):
            lake.run(to=to, backfill="2..9")
    summary = lake.run(to=to, backfill="earliest..latest", max_records=3, lenient=True)
    assert summary.counts.read == (12 if step == "staged" else 5)
    assert offsets(lake, to, *ALL) == list(range(12))
    assert offsets(lake, to, "quarantine") == [4, 5, 6, 7]
    assert lake.run(to=to, start="latest").batches == 0


@pytest.mark.release
def test_records_expire_after_a_kill(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch without a row in a table is planned again, so that records that expired since are counted."""
    produce(lake.broker, lake.topic, 6)
    lake.run(to="delta", start="latest")
    with monkeypatch.context() as patch:
        patch.setattr(TablesTarget, "_commit", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            lake.run(to="delta", backfill="0..6")
    admin = AdminClient({"bootstrap.servers": lake.broker.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(lake.topic, 0, 4)]).values():
        future.result()
    summary = lake.run(to="delta", backfill="0..6")
    assert summary.backfill == {lake.topic: {"0": GapCounts(gaps=2, expired=4)}}
    assert offsets(lake, "delta") == [4, 5]


@pytest.mark.release
@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_beside_a_running_pipeline(lake: Lake, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both land, though each commit of the backfill is preceded by one of the pipeline."""
    produce(lake.broker, lake.topic, 6)
    lake.run(to=to, start="latest")
    pipeline = lake.start(to=to, once=False, interval=0, start="latest")
    try:
        produce(lake.broker, lake.topic, 1)
        until(pipeline, lambda: pipeline.summary().total.read == 1)
        commit = TablesTarget._commit

        def after_a_batch(self: TablesTarget, table: str) -> None:
            if self is backfilled:
                before = pipeline.summary().total.read
                produce(lake.broker, lake.topic, 1)
                until(pipeline, lambda: pipeline.summary().total.read == before + 1)
            commit(self, table)

        monkeypatch.setattr(TablesTarget, "_commit", after_a_batch)
        with lake.start(to=to, backfill="earliest..latest", max_records=3) as backfill:
            backfilled = backfill._running._landing.target
            assert "6 offsets are left" in backfill.status()
            assert backfill.wait(100)
            assert backfill.summary().counts.read == 6
        until(pipeline, lambda: pipeline.summary().total.read == 3)
        assert pipeline.query.isActive
    finally:
        pipeline.close()
    assert lake.run(to=to, start="latest").batches == 0
    assert offsets(lake, to) == list(range(9))


@pytest.mark.release
def test_two_backfills_at_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """One lands a batch, and the other ends with a sentence; only a local folder keeps the other out."""
    monkeypatch.setattr(
        "cloudevents_kafka.spark.pipeline.runs._event_pipeline.folder_lock", lambda _: nullcontext()
    )
    produce(lake.broker, lake.topic, 6)
    lake.run(to="delta", start="latest")
    commit = TablesTarget._commit

    def meanwhile(self: TablesTarget, table: str) -> None:
        monkeypatch.setattr(TablesTarget, "_commit", commit)
        other = lake.run(to="delta", backfill="earliest..latest")
        assert other.counts.read == 6  # no table has rows of the first batch, so it plans the gaps again
        commit(self, table)

    monkeypatch.setattr(TablesTarget, "_commit", meanwhile)
    with pytest.raises(
        WrongTable, match=r"another run of pipeline \w{12} has landed .*@0 to 3 in .* meanwhile"
    ):
        lake.run(to="delta", backfill="earliest..latest", max_records=4)
    assert offsets(lake, "delta") == list(range(6))


@pytest.mark.parametrize(
    "to", ["delta", *(pytest.param(to, marks=pytest.mark.release) for to in ("parquet", "iceberg"))]
)
def test_a_backfilled_topic_is_added(lake: Lake, to: Any) -> None:
    """It is read after the part that a backfill has landed; its other partitions from their first record."""
    other = create(lake.broker, f"{lake.topic}-other", 2)
    produce(lake.broker, lake.topic, 1)
    lake.run(to=to, start="latest")
    produce(lake.broker, other, 10)
    produce(lake.broker, other, 2, partition=1)
    assert lake.run(to=to, topics=(other,), backfill="3..6").counts.read == 3
    both = {"to": to, "start": "latest", "topics": (lake.topic, other)}
    assert lake.run(**both).counts.read == 4 + 2
    produce(lake.broker, other, 1)
    assert lake.run(**both).counts.read == 1


def test_what_has_no_pipeline(lake: Lake) -> None:
    """A folder without a batch is refused, and so is one of Parquet that a pipeline uses."""
    produce(lake.broker, lake.topic, 2)
    with pytest.raises(WrongCheckpoint, match="has no batch: a backfill fills the gaps of a pipeline"):
        lake.run(backfill="0..2")
    lake.run()
    with lake.start(once=False), pytest.raises(InUse):
        lake.run(backfill="0..2")
    options = PipelineOptions(bootstrap_servers="b:1", topics=("t",), out=str(lake.out), backfill="0..1")
    with pytest.raises(ValueError, match="backfill must not be set with each_batch"):
        EventPipeline(options, each_batch=print)
    assert issubclass(WrongCheckpoint, PipelineError)


@pytest.mark.release
def test_a_stopped_backfill(lake: Lake) -> None:
    """It ends after a batch, and is incomplete; the next one goes on."""
    produce(lake.broker, lake.topic, 6)
    lake.run(to="delta", start="latest")
    options = {"to": "delta", "backfill": "earliest..latest", "max_records": 2}
    with lake.start(**options) as backfill:
        assert not backfill.wait(0)
        backfill.stop()
        assert backfill.wait()
        assert (backfill.summary().complete, backfill.summary().counts.read) == (False, 2)
    assert lake.run(**options).counts.read == 4
