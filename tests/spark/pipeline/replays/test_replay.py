"""Records of the quarantine are read again, and land once, in each kind of table."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Record
from cloudevents_kafka.spark import _sql
from cloudevents_kafka.spark.pipeline import (
    EventPipeline,
    InUse,
    ReplayOptions,
    ReplaySummary,
    WrongTable,
    replay_quarantine,
)
from cloudevents_kafka.spark.pipeline.landing import TablesTarget
from cloudevents_kafka.spark.pipeline.replays import _replay
from cloudevents_kafka.spark.pipeline.replays._replay_landing import ParquetReplay, TablesReplay
from cloudevents_kafka.spark.pipeline.replays._replay_notes import ReplayNotes
from cloudevents_kafka.spark.pipeline.tables import table_by_name, table_in_folder
from tests.spark.pipeline.conftest import QUICK
from tests.spark.pipeline.lake import Lake, produce, until
from tests.spark.pipeline.landed_before import unpack

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
KINDS = ("parquet", *(pytest.param(to, marks=pytest.mark.release) for to in ("delta", "iceberg")))
CHANGE = {"specversion": "1.0", "source": "/debezium", "type": "io.debezium.change", "iodebeziumop": "c"}
Headers = list[tuple[str, bytes | None]]


def send(lake: Lake) -> None:
    """Send two events, two of Debezium without a content-type, and three records that are broken."""
    produce(lake.broker, lake.topic, 2)
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    for number in (1, 2):
        value = json.dumps({**CHANGE, "id": f"c{number}", "data": {"after": number}})
        producer.produce(lake.topic, value, key=b"\0k", headers=[("x", None), ("x", b"\xff")], timestamp=1000)
    headers: Headers = [("ce_specversion", b"1.0"), ("ce_source", b"/s"), ("ce_type", b"order.paid")]
    producer.produce(lake.topic, b"1", headers=headers)  # no id
    producer.produce(lake.topic, b"2", headers=[*headers, ("ce_id", b""), ("ce_time", b"yesterday")])
    producer.produce(lake.topic, None, key=b"gone")
    assert producer.flush(30) == 0


def add_id(record: Record) -> Record | None:
    """Return a record with an id, unless it has no value."""
    if record.value is None:
        return None
    if record.value == b"2":
        raise ValueError("no id \udc80")
    return Record(key=record.key, value=record.value, headers=[*record.headers, ("ce_id", record.where)])


def replay(
    lake: Lake, mend: Callable[[Record], Record | None] | None = None, **options: Any
) -> ReplaySummary:
    choice = ReplayOptions(**{"out": str(lake.out), "apply": True, **options})
    return replay_quarantine(choice, spark=lake.spark, mend=mend)


def read(lake: Lake, to: Any, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table, in order."""
    if to == "parquet":
        folder = lake.out / table
        frame = (
            lake.spark.read.option("mergeSchema", True).parquet(f"file://{folder}")
            if folder.exists()
            else None
        )
    else:
        found = table_in_folder(lake.spark, to, f"file://{lake.out / table}")
        frame = found.read(lake.spark) if found.exists() else None
    rows = [] if frame is None else [row.asDict(recursive=True) for row in frame.collect()]
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def offsets(lake: Lake, to: str, table: str = "events") -> list[int]:
    return [row["offset"] for row in read(lake, to, table)]


@pytest.fixture(params=KINDS)
def to(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_what_is_an_event_now_lands_once(lake: Lake, to: str) -> None:
    """A dry replay changes nothing; one that is applied lands events, and the next tries only the others."""
    send(lake)
    lake.run(to=to)
    dry = replay(lake, lenient=True, apply=False)
    assert (dry.number, dry.outcomes) == (None, {"landed": 2, "refused": 3})
    assert not (lake.out / "_replays").exists()
    assert "5 records chosen: 2 would land, 3 would be refused; nothing was changed" in dry.to_text()
    done = replay(lake, lenient=True)
    assert (done.number, done.outcomes, done.tables) == (1, dict(dry.outcomes), {"events": 2})
    assert done.counts == dry.counts
    assert offsets(lake, to) == [0, 1, 2, 3]
    again = replay(lake, add_id, lenient=True)
    assert (again.number, again.outcomes) == (2, {"landed": 1, "unmended": 1, "failed": 1})
    assert offsets(lake, to) == [0, 1, 2, 3, 4]
    assert read(lake, to, "events")[4]["id"] == f"{lake.topic}[0]@4"
    outcomes = read(lake, to, "quarantine_replays")
    found = sorted((row["replay"], row["offset"], row["outcome"], row["landed_in"]) for row in outcomes)
    assert found == [
        *[(1, 2, "landed", "events"), (1, 3, "landed", "events")],
        *[(1, number, "refused", None) for number in (4, 5, 6)],
        *[(2, 4, "landed", "events"), (2, 5, "failed", None), (2, 6, "unmended", None)],
    ]
    failed = next(row for row in outcomes if row["outcome"] == "failed")
    assert failed["error"]["verdict"] == "mend"
    assert failed["error"]["reason"] == "ValueError: no id ?"
    assert failed["was"]["verdict"] == "broken-event"
    assert len({row["run"] for row in outcomes}) == 2
    assert lake.run(to=to).batches == 0
    assert len(read(lake, to, "quarantine")) == 5


@pytest.mark.release
def test_the_session_of_the_user_keeps_its_settings(lake: Lake, to: str, monkeypatch: Any) -> None:
    """Another session has the settings for writing, so other threads never see them."""
    sessions = []

    def write_settings(spark: Any) -> Any:
        sessions.append(spark)
        return _sql.write_settings(spark)

    monkeypatch.setattr(_replay, "write_settings", write_settings)
    send(lake)
    lake.run(to=to)
    assert replay(lake, lenient=True).tables == {"events": 2}
    assert sessions
    assert lake.spark not in sessions


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_a_replay_lands_what_the_pipeline_would_have_landed(lake: Lake, to: str, tmp_path: Path) -> None:
    """The quarantine has all that is needed: the rows are those of a lenient run, in all columns."""
    send(lake)
    lake.run(to=to)
    replay(lake, lenient=True)
    lenient = Lake.copy_to(lake, tmp_path / "lenient")
    lenient.run(to=to, lenient=True)
    rows = read(lenient, to, "events")
    assert read(lake, to, "events") == rows
    assert [(row["key"], row["timestamp"].timestamp()) for row in rows[2:]] == [(b"\0k", 1.0)] * 2
    assert rows[2]["headers"] == [{"key": "x", "value": None}, {"key": "x", "value": b"\xff"}]


@pytest.mark.release
def test_tables_by_type(lake: Lake) -> None:
    """A mended record lands in the table of its type."""
    send(lake)
    lake.run(to="delta", tables={"order.*": "orders"})
    assert replay(lake, add_id).tables == {"orders": 1}
    assert offsets(lake, "delta", "orders") == [4]
    assert offsets(lake, "delta") == [0, 1]
    assert [row["landed_in"] for row in read(lake, "delta", "quarantine_replays")].count("orders") == 1


CHOICES: dict[str, tuple[dict[str, Any], set[int]]] = {
    "verdict": ({"verdicts": ["broken-event"]}, {5}),
    "two verdicts": ({"verdicts": ["broken-event", "not-an-event"]}, {2, 3, 4, 5, 6}),
    "clause": ({"clauses": ["T-12"]}, {5}),
    "part of a clause": ({"clauses": ["T-1"]}, set()),
    "reason": ({"reasons": ["time: "]}, {5}),
    "type of binary": ({"types": ["order.*"]}, {4, 5}),
    "type of JSON": ({"types": ["io.debezium.change"]}, {2, 3}),
    "since": ({"since": "1971-01-01T00:00:00Z"}, {4, 5, 6}),
    "until": ({"until": "1970-01-01T00:00:01Z"}, set()),
    "a time": ({"since": "1970-01-01T00:00:01Z", "until": "1970-01-01T00:00:01.001Z"}, {2, 3}),
    "where": ({"where": "value IS NULL -- a comment"}, {6}),
    "all": ({"where": "offset > 4", "verdicts": ["broken-event"], "types": ["order.paid"]}, {5}),
}


def test_choices(lake: Lake) -> None:
    """Each option chooses the records that it names; another condition than SQL is refused."""
    send(lake)
    lake.run(to="parquet")
    quarantine = lake.spark.read.parquet(f"file://{lake.out}/quarantine")
    for name, (options, chosen) in CHOICES.items():
        rows = ReplayOptions(out="", **options).choose(quarantine).select("offset").collect()
        assert {row["offset"] for row in rows} == chosen, name
    with pytest.raises(
        ValueError, match=r"where must be a condition of SQL on the columns error, topic, .*nothing"
    ):
        replay(lake, where="nothing = 1")
    with pytest.raises(ValueError, match="since must be a time such as"):
        ReplayOptions(out="", since="yesterday")


class Killed(Exception):
    """Raised where the process is killed."""


STEPS: dict[str, tuple[Any, str]] = {
    "before the decision": (ReplayNotes, "decide"),
    "decided": (TablesReplay, "land"),
    "routed": (TablesReplay, "events"),
    "events": (TablesReplay, "quarantine_replays"),
    "outcomes": (ReplayNotes, "complete"),
}


@pytest.mark.release  # test_killed_between_renames is its sample
@pytest.mark.parametrize(
    ("to", "step"), [(to, step) for to in ("delta", "iceberg") for step in STEPS], indirect=["to"]
)
def test_killed_between_steps(lake: Lake, to: str, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was decided is finished first, as it was staged, also by other options; nothing lands twice."""
    send(lake)
    lake.run(to=to, tables={"order.*": "orders"})
    commit = TablesReplay._commit
    with monkeypatch.context() as patch:
        owner, name = STEPS[step]

        def die(*arguments: Any) -> None:
            if owner is not TablesReplay or name in ("land", arguments[1]):
                raise Killed
            commit(*arguments)

        patch.setattr(owner, name if hasattr(owner, name) else "_commit", die)
        with pytest.raises(Killed):
            replay(lake, add_id, lenient=True)
    decided = step != "before the decision"
    assert replay(lake, apply=False).finished == (1 if decided else None)
    done = replay(lake, lenient=True)
    assert done.finished == (1 if decided else None)
    check(lake, to, {"events": {0, 1, 2, 3}, "orders": {4} if decided else set()})
    replay(lake, add_id)
    check(lake, to, {"events": {0, 1, 2, 3}, "orders": {4}})
    assert [path.name for path in (lake.out / "_replays").iterdir() if path.is_dir()] == []


@pytest.mark.release
@pytest.mark.parametrize("to", ["delta", "iceberg"], indirect=True)
def test_a_replay_that_failed_decides_nothing(lake: Lake, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After one that no table could take, or that was killed before its rows, other options are used."""
    send(lake)
    lake.run(to=to, schemas={"order.paid": "a INT"})
    with pytest.raises(WrongTable, match=r"value\.A must be written as in"):
        replay(lake, add_id, lenient=True, schemas={"*": "A INT"})
    with monkeypatch.context() as patch:  # as if the table had changed after the replay has looked
        patch.setattr(TablesTarget, "fit", lambda self, *_: self._read)
        with pytest.raises(WrongTable, match=r"value\.A must be written as in"):
            replay(lake, add_id, lenient=True, schemas={"*": "A INT"})
    assert not list((lake.out / "_replays").glob("*.json"))
    with monkeypatch.context() as patch:
        patch.setattr(TablesReplay, "land", killed)
        with pytest.raises(Killed):
            replay(lake, add_id, lenient=True, schemas={"*": "b STRING"}, rescue=True)
    done = replay(lake, add_id, lenient=True, schemas={"nothing": "a INT"})
    assert (done.finished, done.number) == (None, 1)
    check(lake, to, {"events": {0, 1, 2, 3, 4}})
    assert [row["value"] for row in read(lake, to, "events")] == [None] * 5


def killed(*_: Any) -> None:
    raise Killed


def check(lake: Lake, to: str, expected: dict[str, set[int]]) -> None:
    """Check that tables have these offsets, each once, and that the outcomes say the same."""
    outcomes = [row for row in read(lake, to, "quarantine_replays") if row["outcome"] == "landed"]
    for table, numbers in expected.items():
        assert offsets(lake, to, table) == sorted(numbers)
        landed = sorted(row["offset"] for row in outcomes if row["landed_in"] == table)
        assert landed == sorted(numbers - {0, 1})


@pytest.mark.release  # the histories of `test_replay_law` have such kills
@pytest.mark.parametrize("renames", range(3))
def test_killed_between_renames(lake: Lake, renames: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of Parquet that were decided are renamed by the next replay, each once."""
    send(lake)
    lake.run()
    with monkeypatch.context() as patch:
        store = type(_store(lake))
        rename, calls = store.rename, []

        def die(*arguments: Any) -> None:
            calls.append(arguments)
            if len(calls) > renames:
                raise Killed
            rename(*arguments)

        patch.setattr(store, "rename", die)
        with pytest.raises(Killed):
            replay(lake, add_id, lenient=True)
    summary = replay(lake)
    assert (summary.finished, summary.outcomes) == (1, {"refused": 2})
    check(lake, "parquet", {"events": {0, 1, 2, 3, 4}})


def _store(lake: Lake) -> Any:
    from cloudevents_kafka.spark.pipeline.stores import open_store

    return open_store(str(lake.out), lake.spark)


@pytest.mark.release
@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_beside_a_running_pipeline(lake: Lake, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipeline goes on, and its commits between two steps of the replay do not matter."""
    send(lake)
    pipeline = lake.start(to=to, once=False, interval=0)
    try:
        until(pipeline, lambda: pipeline.summary().total.read == 7)
        commit = TablesReplay._commit

        def after_a_batch(self: TablesReplay, table: str, *rest: Any) -> None:
            before = pipeline.summary().total.read
            produce(lake.broker, lake.topic, 1)
            until(pipeline, lambda: pipeline.summary().total.read == before + 1)
            commit(self, table, *rest)

        monkeypatch.setattr(TablesReplay, "_commit", after_a_batch)
        assert replay(lake, lenient=True).outcomes == {"landed": 2, "refused": 3}
        produce(lake.broker, lake.topic, 1)
        until(pipeline, lambda: pipeline.summary().total.read == 10)
    finally:
        pipeline.close()
    assert lake.run(to=to).batches == 0
    assert offsets(lake, to) == [0, 1, 2, 3, 7, 8, 9]


def test_a_folder_of_parquet_whose_pipeline_runs(lake: Lake) -> None:
    """It is refused, with the process that uses the folder; to count is allowed."""
    send(lake)
    lake.run()
    with EventPipeline(_options(lake), spark=lake.spark):
        with pytest.raises(InUse, match="is being filled by another pipeline"):
            replay(lake, lenient=True)
        assert replay(lake, apply=False).outcomes == {"refused": 5}


def _options(lake: Lake, **options: Any) -> Any:
    from cloudevents_kafka.spark.pipeline import PipelineOptions

    servers = lake.broker.bootstrap_servers
    return PipelineOptions(bootstrap_servers=servers, topics=(lake.topic,), out=str(lake.out), **options)


@pytest.mark.parametrize("to", ["parquet", pytest.param("delta", marks=pytest.mark.release)])
def test_two_replays_at_once(lake: Lake, to: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is decided, and the other ends with a sentence, also where the folder has no lock."""
    from contextlib import nullcontext

    send(lake)
    lake.run(to=to)
    target = ParquetReplay if to == "parquet" else TablesReplay
    prepare = target.prepare
    monkeypatch.setattr("cloudevents_kafka.spark.pipeline.replays._replay.folder_lock", nullcontext)

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(target, "prepare", prepare)
        assert replay(lake, lenient=True).number == 1
        return prepare(*arguments) if to == "delta" else arguments[1]

    monkeypatch.setattr(target, "prepare", meanwhile)
    with pytest.raises(
        InUse, match=r"replay 1 of .* was decided by another run meanwhile; no record of this run"
    ):
        replay(lake, lenient=True)
    monkeypatch.undo()
    check(lake, to, {"events": {0, 1, 2, 3}})
    with pytest.raises(InUse), _locked(lake.out / ("" if to == "parquet" else "_replays")):
        replay(lake)


def _locked(folder: Path) -> Any:
    from cloudevents_kafka.spark.pipeline.stores import folder_lock

    return folder_lock(str(folder))


@pytest.mark.release
def test_a_table_of_a_catalog(lake: Lake) -> None:
    """The outcomes are in the table next to that of the catalog, which must be named."""
    name = f"spark_catalog.default.{lake.topic.replace('-', '_')}"
    send(lake)
    try:
        lake.run(to="delta", table=name)
        with pytest.raises(WrongTable, match=r"but it does not exist. Restore the table, or use its"):
            replay(lake)
        summary = replay(lake, table=name, lenient=True)
        assert summary.outcomes_table == f"{name}_quarantine_replays"
        assert table_by_name(lake.spark, "delta", summary.outcomes_table).read(lake.spark).count() == 5
        assert lake.spark.table(name).count() == 4
    finally:
        for suffix in ("", "_quarantine", "_quarantine_replays"):
            lake.spark.sql(f"DROP TABLE IF EXISTS {name}{suffix}")


@pytest.mark.release
def test_a_table_that_was_set_back(lake: Lake) -> None:
    """Notes or outcomes that were removed are noticed before anything lands."""
    import shutil

    send(lake)
    lake.run(to="delta")
    replay(lake, lenient=True)
    shutil.rmtree(lake.out / "_replays")
    assert replay(lake).number == 2
    shutil.rmtree(lake.out / "quarantine_replays")
    with pytest.raises(WrongTable, match=r"has replay 2, but the outcomes in .* end with replay 0"):
        replay(lake)


def test_what_has_no_quarantine(lake: Lake) -> None:
    """Topics and functions are refused with a sentence, and so is a folder without a batch."""
    send(lake)
    with pytest.raises(WrongTable, match="has no batch: it must be the folder of a pipeline"):
        replay(lake)
    topics = Lake.copy_to(lake, unpack("to-kafka", lake.out / "t"))
    with pytest.raises(WrongTable, match="landed in topics, so there is no table of a quarantine"):
        replay(topics)
    function = Lake.copy_to(lake, lake.out / "f")
    EventPipeline(_options(function, once=True), spark=lake.spark, each_batch=print).run()
    with pytest.raises(WrongTable, match="landed by a function, so there"):
        replay(function)
    with pytest.raises(WrongTable, match="nowhere is missing"):
        replay(Lake.copy_to(lake, lake.out / "nowhere"))


@pytest.mark.release
def test_nothing_to_replay(lake: Lake) -> None:
    """Without a quarantine, or a chosen record, no replay is decided."""
    produce(lake.broker, lake.topic, 2)
    lake.run(to="delta")
    assert replay(lake) == ReplaySummary(outcomes_table=f"file://{lake.out}/quarantine_replays")
    send(lake)
    lake.run(to="delta")
    assert replay(lake, verdicts=["batch"]).number is None
    assert not list((lake.out / "_replays").glob("0*"))


FIXES = """
from cloudevents_kafka import Record

HEADERS = [("ce_id", b"mended")]


def add_id(record: Record) -> Record | None:
    return None if record.value is None else Record(value=record.value, headers=[*record.headers, *HEADERS])
"""


@pytest.mark.release
def test_the_commands(lake: Lake, tmp_path: Path) -> None:
    """A backfill and a replay by the command, with a function of the working directory."""

    def command(*arguments: str) -> str:
        argv = [sys.executable, "-c", "from cloudevents_kafka.cli import main; main()", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    (tmp_path / "own_fixes.py").write_text(FIXES)
    source = ("-b", lake.broker.bootstrap_servers, "-t", lake.topic, "-o", "lake", "--to", "delta", *QUICK)
    send(lake)
    command("pipeline", *source, "--once", "--from", "latest")
    output = command("pipeline", *source, "--backfill", "earliest..latest", "--max-records", "4")
    assert "batch 1: 3 read = 0 events + 3 quarantined" in output
    assert re.search(r"lake-\d+\[0\]  +7  +0  +0  +0\n", output)
    replay = ("table", "replay", "--out", "lake", "--lenient", "--mend", "own_fixes:add_id", *QUICK)
    assert "5 records chosen: 4 would land, 1 unmended" in command(*replay)
    output = command(*replay, "--apply")
    assert f"(replay 1; outcomes in file://{tmp_path}/lake/quarantine_replays)" in output
    rows = read(Lake.copy_to(lake, tmp_path / "lake"), "delta", "events")
    assert [row["offset"] for row in rows] == [0, 1, 2, 3, 4, 5]


def test_a_report_counts_no_outcomes(lake: Lake) -> None:
    """The table of outcomes has no records of its own."""
    from cloudevents_kafka.spark.pipeline.maintenance import _contents as contents

    send(lake)
    lake.run()
    replay(lake, lenient=True)
    tables = [name for name, _ in contents._tables(lake.spark, str(lake.out), ())]
    assert sorted(name.rpartition("/")[2] for name in tables) == ["events", "quarantine"]
