"""Folders in which commit e1dc351d has landed are continued, each record once, or refused with what to do.

The zips in `landed_before` have such folders without Spark's checksums. Each is of a topic of its own name
with one partition and seven records: events at the offsets 0, 1, 3, 4 and 6, other records at 2 and 5. In
most, the last batch was begun with the offset 5, and its run was killed before it had landed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import msgspec
import pytest
from confluent_kafka import KafkaException, Producer

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark import EventBatch, EventPipeline, PipelineOptions
from cloudevents_kafka.spark.pipeline import (
    ReplayOptions,
    Summary,
    WrongCheckpoint,
    WrongTable,
    replay_quarantine,
)
from cloudevents_kafka.spark.pipeline.notes import TABLE, Beginning, BegunBatch, Ledger, Manifests
from cloudevents_kafka.spark.pipeline.options.removed import TOPICS
from cloudevents_kafka.spark.pipeline.replays._replay_notes import ReplayNotes
from cloudevents_kafka.spark.pipeline.stores import LocalStore
from cloudevents_kafka.spark.pipeline.tables._delta_history import DeltaHistory
from cloudevents_kafka.spark.pipeline.topics import KafkaAdmin
from cloudevents_kafka.testing import LocalBroker
from tests.spark.pipeline.lake import create, recreate
from tests.spark.pipeline.landed_before import NAMES, unpack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {"by-time": "parquet", "connect-delta": "delta", "delta-upsert": "delta", "to-kafka": "kafka"}
COMPLETE = ("by-time", "iceberg", "parquet")
of_spark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.mark.parametrize("name", NAMES)
def test_notes_are_read(name: str, tmp_path: Path) -> None:
    """The manifests, the note of a begun batch and that of the beginning have what they had."""
    manifests = Manifests(LocalStore(unpack(name, tmp_path)))
    last, begun, beginning = manifests.last(), manifests.find(BegunBatch), manifests.find(Beginning)
    assert last is not None
    assert beginning is not None
    end = 7 if name in COMPLETE else 5
    assert last.to == KINDS.get(name, name)
    assert last.total.read == end
    assert last.total.quarantined == (2 if name in COMPLETE else 1)
    assert last.counts.check()
    assert last.pipeline == beginning.pipeline
    (entry,) = last.ledger.entries()
    assert (entry.topic, entry.topic_id, entry.pipeline) == (name, last.ids[name], last.pipeline)
    assert (entry.offsets.start, entry.offsets.end) == (0, end)
    assert beginning.start == "earliest"
    if last.to != "parquet":  # which notes no batch that is begun
        assert begun is not None
        assert (begun.number, begun.pipeline) == (2, last.pipeline)
        assert begun.offsets[name]["0"] == msgspec.convert([5, 7], type(entry.offsets))


def test_ledger_of_iceberg_is_read(tmp_path: Path) -> None:
    """The property of a table has the offsets that have landed."""
    (file,) = unpack("iceberg", tmp_path).glob("events/metadata/*.json")
    text = json.loads(file.read_text())["properties"]["cloudevents-kafka.ledger"]
    (entry,) = msgspec.json.decode(text, type=Ledger).entries()
    assert (entry.topic, entry.partition, entry.offsets.start, entry.offsets.end) == ("iceberg", "0", 0, 7)


def test_note_of_a_replay_is_read(tmp_path: Path) -> None:
    """The note of a replay that was decided is read without the option that it had."""
    note = {"number": 3, "run": "a1b2", "micros": 7, "routes": {}, "date_of": "time", "lenient": True}
    note |= {"outcomes": {"landed": 2}, "files": ["events/event_date=2025-06-14/part-0.parquet"]}
    (tmp_path / "_replays").mkdir()
    (tmp_path / "_replays" / "00000003.json").write_text(json.dumps(note))
    last = ReplayNotes(LocalStore(tmp_path)).last()
    assert last is not None
    assert (last.number, last.outcomes, list(last.files)) == (3, {"landed": 2}, note["files"])


def send(broker: LocalBroker, topic: str, kinds: str) -> None:
    """Send events, "e", and other records, "b"."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number, kind in enumerate(kinds):
        record = to_record(Event(id=str(number), source="/shop", type="order.placed", data=b"1"))
        value, headers = (record.value, list(record.headers)) if kind == "e" else (b"broken", None)
        producer.produce(topic, value, b"k%d" % (number % 2), headers=headers, timestamp=1_750_000_000_000)
    assert producer.flush(30) == 0


class Before:
    """A folder that has landed before, and its topic, with three more records."""

    def __init__(self, name: str, spark: SparkSession, broker: LocalBroker, folder: Path) -> None:
        self.topic, self.out, self._spark, self._broker = name, unpack(name, folder), spark, broker
        try:
            create(broker, name)
        except KafkaException:  # another test has used it
            recreate(broker, name, 0)
        send(broker, name, "eebeebe" + "ebe")
        admin = KafkaAdmin(spark, {"kafka.bootstrap.servers": broker.bootstrap_servers})
        state = admin.describe([name], {}, 30)[name]
        admin.close()
        assert state is not None
        (old,) = Manifests(LocalStore(self.out)).last().ids.values()  # type: ignore[union-attr]  # it has one
        for path in self.out.rglob("*"):  # a topic has another id in each broker
            if path.is_file() and path.suffix != ".parquet":
                path.write_bytes(path.read_bytes().replace(old.encode(), str(state.id).encode()))

    def run(self, each_batch: Any = None, **options: Any) -> Summary:
        settings = {"out": str(self.out), "topics": (self.topic,), "once": True, **options}
        made = PipelineOptions(bootstrap_servers=self._broker.bootstrap_servers, **settings)
        return EventPipeline(made, spark=self._spark, each_batch=each_batch).run()

    def check_connect(self, summary: Summary) -> None:
        """Check that all records are in tables of Delta, once, and no ledger is in their history."""
        assert (summary.total.read, summary.total.events) == (10, 7)
        assert self.offsets("delta", "events") == [0, 1, 3, 4, 6, 7, 9]
        assert self.offsets("delta", "quarantine") == [2, 5, 8]
        for table in ("events", "quarantine"):
            (row,) = self._spark.sql(f"DESCRIBE DETAIL delta.`{self.out}/{table}`").collect()
            assert not [name for name in row["properties"] if name.startswith("cloudevents-kafka.ledger")]

    def offsets(self, kind: str, table: str) -> list[int]:
        rows = self._spark.read.format(kind).load(f"{self.out}/{table}").select("offset").collect()
        return sorted(row["offset"] for row in rows)


@pytest.fixture
def before(
    request: pytest.FixtureRequest, session: SparkSession, kafka_broker: LocalBroker, tmp_path: Path
) -> Before:
    return Before(request.param, session, kafka_broker, tmp_path / "out")


class TestRefused:
    """What a run in this process does not add to."""

    pytestmark = of_spark

    @pytest.mark.parametrize("before", ["by-time"], indirect=True)
    def test_dates_of_events(self, before: Before, tmp_path: Path, session: SparkSession) -> None:
        """Files by dates of events are renamed; a fresh folder begins at the offsets of the error."""
        with pytest.raises(WrongCheckpoint, match="partitioned by record_date, got event_date") as error:
            before.run()
        assert before.offsets("parquet", "events") == [0, 1, 3, 4, 6]
        assert before.offsets("parquet", "quarantine") == [2, 5]
        (start,) = re.findall(r"the option start \(--from\) (\{.*\});", str(error.value))
        with pytest.raises(WrongTable, match="so a replay cannot add files to them"):
            replay_quarantine(ReplayOptions(out=str(before.out), apply=True), spark=session)
        before.out = tmp_path / "fresh"
        assert before.run(start=start).total.read == 3
        assert before.offsets("parquet", "events") == [7, 9]


class TestContinued:
    """What a run in this process adds to a folder."""

    pytestmark = of_spark

    @pytest.mark.parametrize(
        "before", ["parquet", pytest.param("delta", marks=pytest.mark.release)], indirect=True
    )
    def test_tables(self, before: Before) -> None:
        """Each record is in one of the tables, once."""
        kind = before.topic
        summary = before.run(to=kind)
        assert summary.recovered == (None if before.topic in COMPLETE else 2)
        assert (summary.total.read, summary.total.events) == (10, 7)
        assert before.run(to=kind).batches == 0
        assert before.offsets(kind, "events") == [0, 1, 3, 4, 6, 7, 9]
        assert before.offsets(kind, "quarantine") == [2, 5, 8]

    @pytest.mark.parametrize("before", ["connect-delta"], indirect=True)
    def test_connect(self, before: Before) -> None:
        """Where Spark Connect has landed, the first batch moves the ledger out of the table's history."""
        summary = before.run(to="delta")
        assert summary.recovered == 2
        before.check_connect(summary)

    @pytest.mark.release  # test_connect is its sample
    @pytest.mark.parametrize("before", ["connect-delta"], indirect=True)
    def test_killed_between_ledgers(self, before: Before, monkeypatch: pytest.MonkeyPatch) -> None:
        """A run is killed while it moves the ledger; then the ledger alone decides what has landed."""
        with monkeypatch.context() as patch:
            patch.setattr(DeltaHistory, "forget", MagicMock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                before.run(to="delta")
        before.check_connect(before.run(to="delta"))
        for notes in ("_batches", "_checkpoint"):
            (before.out / notes).rename(before.out / f"gone{notes}")
        assert before.run(to="delta").counts.read == 0
        assert before.offsets("delta", "events") == [0, 1, 3, 4, 6, 7, 9]

    @pytest.mark.release  # test_connect, whose ledger is in the same place, is its sample
    @pytest.mark.parametrize("before", ["delta-upsert"], indirect=True)
    def test_upsert(self, before: Before) -> None:
        """A table of current rows has the last event of each key."""
        summary = before.run(to="delta", upsert=("key",))
        assert summary.recovered == 2
        assert summary.total.read == 10
        assert before.offsets("delta", "events") == [6, 9]
        assert before.offsets("delta", "quarantine") == [2, 5, 8]

    @pytest.mark.parametrize("before", ["to-kafka"], indirect=True)
    def test_topics(self, before: Before) -> None:
        """A folder that landed in topics says what to do, and a function goes on with its numbers."""
        with pytest.raises(WrongCheckpoint, match=re.escape(TOPICS)):
            before.run()
        self.test_function(before)

    @pytest.mark.parametrize("before", ["function"], indirect=True)
    def test_function(self, before: Before) -> None:
        """A function is called again with the batch that was begun, and then with new records."""
        called: list[tuple[int, list[int]]] = []

        def note(batch: EventBatch) -> None:
            assert TABLE not in batch.events.columns
            rows = batch.events.select("offset").union(batch.quarantine.select("offset"))
            called.append((batch.number, sorted(row["offset"] for row in rows.collect())))

        before.run(note)
        assert called == [(2, [5, 6]), (3, [7, 8, 9])]
