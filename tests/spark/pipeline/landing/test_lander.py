"""The commit protocol without Spark: batches that are killed at any step land once and completely."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from cloudevents_kafka.spark.pipeline.landing import Landed
from cloudevents_kafka.spark.pipeline.landing._parquet_target import final_path
from cloudevents_kafka.spark.pipeline.notes import (
    BatchCounts,
    BatchManifest,
    BatchPlan,
    BegunBatch,
    Checkpoint,
    CountMismatch,
    OffsetRange,
    OffsetRanges,
    PartitionCounts,
    PlannedBatch,
    ReadSettings,
    WrongCheckpoint,
)
from cloudevents_kafka.spark.pipeline.runs._fresh_start import forget_topics
from cloudevents_kafka.spark.pipeline.stores import InUse, LocalStore
from tests.spark.pipeline.landing.parts import ParquetParts

FILES = (
    "events/record_date=1/part-0.parquet",
    "events/record_date=2/part-1.parquet",
    "quarantine/record_date=1/part-2.parquet",
)


IDS = {"t": "id-of-t"}
Write = Callable[[str, BegunBatch], BatchCounts]


class Killed(BaseException):
    """The process was killed."""


class MortalStore(LocalStore):
    """Raises `Killed` before its n-th change, or just after it."""

    def __init__(self, root: Path, changes: int, *, after: bool) -> None:
        super().__init__(root)
        self.left = changes
        self.after = after

    def _change(self, change: Callable[[], None]) -> None:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Killed
        change()
        if self.left == 0:
            raise Killed

    def create(self, path: str, content: bytes) -> None:
        self._change(lambda: LocalStore.create(self, path, content))

    def rename(self, path: str, to: str) -> None:
        self._change(lambda: LocalStore.rename(self, path, to))

    def remove(self, path: str) -> None:
        self._change(lambda: LocalStore.remove(self, path))


def counts_of(batch: int) -> BatchCounts:
    first = batch * 3
    return BatchCounts(
        read=3,
        events=2,
        quarantined=1,
        by_type={"a": {"binary": 1}, "b": {"binary": 1}},
        by_reason={"x": {"bad": 1}},
        offsets={"t": {"0": PartitionCounts(first, first + 2, 3)}},
    )


def plan_of(batch: int) -> BatchPlan:
    return BatchPlan(batch, {"t": {"0": OffsetRange(batch * 3, batch * 3 + 3)}})


def writer(batch: int) -> Write:
    def write(url: str, _: BegunBatch) -> BatchCounts:
        folder = Path(url.removeprefix("file://"))
        for file in FILES:
            path = folder / file
            path.parent.mkdir(parents=True)
            path.write_text(f"batch {batch}")
        return counts_of(batch)

    return write


def land(store: LocalStore, root: Path, batches: int) -> ParquetParts:
    """Do what Spark does after a start: run the first batch that is not committed, and continue."""
    landing = ParquetParts(store)
    landing.recover()
    done = root / "done"
    first = int(done.read_text()) + 1 if done.exists() else 0
    for batch in range(first, batches):
        land_one(landing, batch)
        done.write_text(str(batch))
    return landing


def land_one(landing: ParquetParts, batch: int) -> BatchManifest | None:
    return land_plan(landing, plan_of(batch), writer(batch))


def land_plan(
    landing: ParquetParts,
    plan: BatchPlan,
    write: Write,
    query: str = "query",
    ids: Mapping[str, str] | None = None,
) -> BatchManifest | None:
    """Do what the lander does with a batch of Spark; ``write`` gets the URL of the staging folder."""
    batch = landing.begin(plan, query, IDS if ids is None else ids)
    return None if batch is None else landing.complete(batch, write(landing.stage(batch), batch))


def count(url: str, batch: BegunBatch) -> BatchCounts:
    """Write no files, but the folder of the events."""
    Path(url.removeprefix("file://")).parents[1].joinpath("events").mkdir(exist_ok=True)
    return counted(batch.offsets)


def tables(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_text()
        for table in ("events", "quarantine")
        for path in sorted((root / table).rglob("*.parquet"))
    }


WHOLE = {final_path(file, batch): f"batch {batch}" for batch in range(3) for file in FILES}


@pytest.fixture(autouse=True)
def no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk a thousand times."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_step_and_started_again(tmp_path: Path, *, after: bool) -> None:
    """If the process dies before or after any change, the next start leaves each file once."""
    for changes in range(1, 60):
        root = tmp_path / str(changes)
        try:
            land(MortalStore(root, changes, after=after), root, 3)
        except Killed:
            visible = tables(root)
            assert visible.items() <= WHOLE.items()
            landing = land(LocalStore(root), root, 3)
            assert tables(root).items() >= visible.items(), "a visible file has disappeared"
        else:
            assert changes > 10
            return
        assert tables(root) == WHOLE
        assert landing.total == counts_of(0).merge(counts_of(1)).merge(counts_of(2))
        assert LocalStore(root).list_names("_staging") == []
    pytest.fail("the run did not end")


def test_killed_twice(tmp_path: Path) -> None:
    """A start that is killed while it recovers is finished by the next start."""
    for first in range(2, 12):
        for second in range(1, 8):
            root = tmp_path / f"{first}-{second}"
            for changes in (first, second):
                with suppress(Killed):
                    land(MortalStore(root, changes, after=False), root, 3)
            land(LocalStore(root), root, 3)
            assert tables(root) == WHOLE


def never(url: str, batch: BegunBatch) -> BatchCounts:
    pytest.fail("the batch is written again")


def counted(offsets: OffsetRanges) -> BatchCounts:
    """Return counts with one event at each offset."""
    found = {
        topic: {
            number: PartitionCounts(range_.start, range_.end - 1, range_.end - range_.start)
            for number, range_ in by.items()
        }
        for topic, by in offsets.items()
    }
    read = sum(part.records for by in found.values() for part in by.values())
    return BatchCounts(read=read, events=read, by_type={"a": {"binary": read}}, offsets=found)


def one(start: int, end: int, batch: int = 0) -> BatchPlan:
    return BatchPlan(batch, {"t": {"0": OffsetRange(start, end)}})


def begun(root: Path, *plans: BatchPlan) -> ParquetParts:
    """Land some batches and start again on the folder."""
    first = ParquetParts(LocalStore(root))
    for plan in plans:
        assert land_plan(first, plan, count) is not None
    landing = ParquetParts(LocalStore(root))
    landing.recover()
    return landing


def test_repeated_batch_is_not_written_again(tmp_path: Path) -> None:
    """A batch that landed, and that Spark has not committed, is not written again."""
    store = LocalStore(tmp_path)
    landing = ParquetParts(store)
    assert land_one(landing, 0) is not None
    again = ParquetParts(store)
    assert again.recover() is None
    assert land_plan(again, plan_of(0), never) is None
    assert again.total == counts_of(0)


def test_same_number_with_a_later_end(tmp_path: Path) -> None:
    """Of a batch that Spark plans again with a later end, only the new offsets land."""
    landing = begun(tmp_path, one(0, 1000))
    seen: list[OffsetRanges] = []
    manifest = land_plan(
        landing, one(0, 2000), lambda _, new: seen.append(new.offsets) or counted(new.offsets)
    )
    assert seen == [{"t": {"0": OffsetRange(1000, 2000)}}]
    assert manifest is not None
    assert (manifest.number, manifest.batch) == (1, 0)
    assert manifest.ledger.landed(IDS) == landing.landed == {"t": {"0": OffsetRange(0, 2000)}}
    assert landing.total.read == 2000
    assert land_plan(landing, one(2000, 2500, 1), count) is not None
    assert landing.total.read == 2500


def test_checkpoint_of_some_batches_ago(tmp_path: Path) -> None:
    """Batches that are planned again in other sizes land only new offsets."""
    landing = begun(tmp_path, *(one(start, start + 100, start // 100) for start in range(0, 500, 100)))
    assert land_plan(landing, one(100, 350, 1), never) is None
    assert land_plan(landing, one(350, 480, 2), never) is None
    manifest = land_plan(landing, one(480, 600, 3), count)
    assert manifest is not None
    assert manifest.offsets == {"t": {"0": OffsetRange(500, 600)}}
    assert landing.total.read == 600


def test_partitions_are_decided_one_by_one(tmp_path: Path) -> None:
    """Only the partitions with new offsets land."""
    first = BatchPlan(
        0, {"t": {"0": OffsetRange(0, 10), "1": OffsetRange(0, 10)}, "u": {"0": OffsetRange(5, 7)}}
    )
    landing = begun(tmp_path, first)
    plan = BatchPlan(
        0,
        {
            "t": {"0": OffsetRange(0, 9), "1": OffsetRange(0, 12), "2": OffsetRange(0, 3)},
            "u": {"0": OffsetRange(5, 7)},
        },
    )
    manifest = land_plan(landing, plan, count)
    assert manifest is not None
    assert manifest.offsets == {"t": {"1": OffsetRange(10, 12), "2": OffsetRange(0, 3)}}
    assert manifest.ledger.landed({**IDS, "u": ""}) == {
        "t": {"0": OffsetRange(0, 10), "1": OffsetRange(0, 12), "2": OffsetRange(0, 3)},
        "u": {"0": OffsetRange(5, 7)},
    }


@pytest.mark.parametrize(
    ("plan", "query", "words"),
    [
        (one(100, 200), "other", "another checkpoint"),
        (one(200, 300, 1), "other", "another checkpoint"),
        (one(201, 300, 1), "query", r"t\[0\]@200 to 200 are missing in"),
        (one(300, 400, 2), "query", r"t\[0\]@200 to 299 are missing in"),
        (one(50, 400), "query", r"t\[0\]@50 to 99 are missing in"),
        (BatchPlan(1, {"u": {"0": OffsetRange(3, 9)}}), "query", r"u\[0\]@0 to 2 are missing in"),
    ],
)
def test_foreign_checkpoint(tmp_path: Path, plan: BatchPlan, query: str, words: str) -> None:
    """A checkpoint of another folder is refused before anything is written."""
    landing = begun(tmp_path, one(100, 200))
    with pytest.raises(WrongCheckpoint, match=words):
        land_plan(landing, plan, never, query)
    assert landing.store.list_names("_staging") == []


@pytest.mark.parametrize(
    ("query", "committed", "words"),
    [
        ("other", None, "another checkpoint"),
        (None, None, "another checkpoint .*this is a new one"),
        ("query", one(300, 300, 4), "continues with batch 5 .* are missing in"),
    ],
)
def test_foreign_checkpoint_before_any_batch(
    tmp_path: Path, query: str | None, committed: BatchPlan | None, words: str
) -> None:
    """A checkpoint of another folder is refused at the start, with or without new records."""
    landing = begun(tmp_path, one(0, 200))
    landing.check("query", one(200, 200, 0))
    with pytest.raises(WrongCheckpoint, match=words):
        landing.check(query, committed)


def test_checkpoint_ahead_of_an_empty_folder(tmp_path: Path) -> None:
    """A checkpoint that has landed batches elsewhere is refused in an empty folder."""
    landing = ParquetParts(LocalStore(tmp_path))
    with pytest.raises(WrongCheckpoint, match="no batch"):
        land_plan(landing, plan_of(7), never)
    with pytest.raises(WrongCheckpoint, match="no batch"):
        landing.check("query", plan_of(0))


@pytest.mark.parametrize("left", [0, 1, 2])
def test_manifests_removed(tmp_path: Path, left: int) -> None:
    """A folder whose last manifests were removed, or all, is refused: its records would land twice."""
    landing = ParquetParts(LocalStore(tmp_path))
    for batch in range(3):
        land_one(landing, batch)
    for batch in range(left, 3):
        landing.store.remove(f"_batches/{batch:08d}.json")
    words = (
        rf"batch-0000000{left}-.* has no manifest"
        if left
        else "record_date=1 belongs to a batch that has no manifest"
    )
    with pytest.raises(WrongCheckpoint, match=words):
        recover_and_land(landing.store, left)
    assert tables(tmp_path) == WHOLE


def recover_and_land(store: LocalStore, batch: int) -> None:
    landing = ParquetParts(store)
    landing.recover()
    land_one(landing, batch)


def test_staged_file_removed(tmp_path: Path) -> None:
    """A staged file that is missing before its rename is an error."""
    with suppress(Killed):
        land(MortalStore(tmp_path, 2, after=False), tmp_path, 1)
    (staged,) = tmp_path.glob("_staging/*/events/record_date=1/*.parquet")
    staged.unlink()
    with pytest.raises(WrongCheckpoint, match=r"record_date=1/.*part-0.parquet must exist"):
        ParquetParts(LocalStore(tmp_path)).recover()


@pytest.mark.parametrize(
    "wrong",
    [
        BatchCounts(
            read=3,
            events=2,
            quarantined=0,
            by_type={"a": {"binary": 2}},
            offsets={"t": {"0": PartitionCounts(0, 2, 3)}},
        ),
        BatchCounts(
            read=2, events=2, by_type={"a": {"binary": 1}}, offsets={"t": {"0": PartitionCounts(0, 2, 2)}}
        ),
        BatchCounts(
            read=1, events=1, by_type={"a": {"binary": 1}}, offsets={"t": {"0": PartitionCounts(0, 2, 3)}}
        ),
    ],
)
def test_counts_that_do_not_add_up(tmp_path: Path, wrong: BatchCounts) -> None:
    """A batch whose counts contradict each other does not land."""
    landing = ParquetParts(LocalStore(tmp_path))
    with pytest.raises(CountMismatch, match="add up to"):
        land_plan(landing, plan_of(0), lambda *_: wrong)
    assert landing.total == BatchCounts()
    assert tables(tmp_path) == {}


def test_damaged_manifest(tmp_path: Path) -> None:
    """A damaged manifest is named in the error."""
    store = LocalStore(tmp_path)
    store.create("_batches/00000000.json", b'{"version": 4}')
    with pytest.raises(WrongCheckpoint, match=r"00000000\.json must be the manifest .*number"):
        ParquetParts(store).recover()


@pytest.mark.parametrize(
    ("file", "content", "version"),
    [
        ("00000000.json", b"{}", 1),
        ("00000007.json", b'{"version": 5}', 5),
        ("beginning.json", b'{"version": 3, "ids": {}}', 3),
    ],
)
def test_manifests_of_another_version(tmp_path: Path, file: str, content: bytes, version: int) -> None:
    """A folder of another release is refused with advice."""
    store = LocalStore(tmp_path)
    store.create(f"_batches/{file}", content)
    with pytest.raises(WrongCheckpoint, match=f"manifests' format, got version {version}.* fresh folder"):
        ParquetParts(store).recover()


def test_old_manifests_are_removed(tmp_path: Path) -> None:
    """Old manifests are removed; the last one has the offsets, ids and counts of all batches."""
    landing = ParquetParts(LocalStore(tmp_path))
    for batch in range(105):
        land_plan(landing, plan_of(batch), count)
    assert len(landing.store.list_names("_batches")) == 100
    again = ParquetParts(landing.store)
    again.recover()
    assert again.total.read == 105 * 3
    assert again.landed == {"t": {"0": OffsetRange(0, 105 * 3)}}
    assert again.topic_ids == IDS
    for batch in range(105):
        assert land_plan(again, plan_of(batch), never) is None


def test_first_topic_ids(tmp_path: Path) -> None:
    """The topics' ids are written before the first batch; later ones are added."""
    store = LocalStore(tmp_path)
    landing = ParquetParts(store)
    landing.recover()
    landing.record_beginning({"t": "first"}, "earliest")
    again = ParquetParts(store)
    again.recover()
    assert again.topic_ids == {"t": "first"}
    again.record_beginning({"t": "second"}, "earliest")
    assert again.topic_ids == {"t": "first"}
    land_plan(again, plan_of(0), writer(0), ids={"t": "first", "u": "new"})
    assert again.topic_ids == {"t": "first", "u": "new"}
    last = ParquetParts(store)
    last.recover()
    assert last.topic_ids == {"t": "first", "u": "new"}


def test_no_topic_ids(tmp_path: Path) -> None:
    """Topics of brokers without topic ids are noted once, also if a run ended before its first batch."""
    for _ in range(2):
        landing = ParquetParts(LocalStore(tmp_path))
        landing.recover()
        landing.record_beginning({}, None)
        assert landing.topic_ids == {}


def checkpoint(root: Path, **files: str) -> Checkpoint:
    for name, content in files.items():
        path = root / name.replace("_", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return Checkpoint(LocalStore(root))


def test_plan_in_the_checkpoint(tmp_path: Path) -> None:
    """A batch begins at the ends of the last one, or at the first offsets; new partitions begin at 0."""
    found = checkpoint(
        tmp_path,
        metadata='{"id":"q"}',
        sources_0_0='\0v1\n{"t":{"0":5}}',
        offsets_0='v1\n{"batchWatermarkMs":0}\n{"t":{"0":7}}',
        offsets_1='v1\n{"batchWatermarkMs":0}\n{"t":{"0":7,"1":3},"u":{"0":1}}',
        commits_0='v1\n{"nextBatchWatermarkMs":0}',
    )
    assert found.query_id() == "q"
    assert found.plan(0) == BatchPlan(0, {"t": {"0": OffsetRange(5, 7)}})
    assert found.plan(1) == BatchPlan(
        1, {"t": {"0": OffsetRange(7, 7), "1": OffsetRange(0, 3)}, "u": {"0": OffsetRange(0, 1)}}
    )
    assert found.last_committed() == BatchPlan(0, {"t": {"0": OffsetRange(7, 7)}})


def test_topic_forgotten_before_any_batch(tmp_path: Path) -> None:
    """The other topics go on where Spark has planned them to begin, also if no batch has landed."""
    ends = '{"t":{"0":5},"u":{"0":7}}'
    found = checkpoint(
        tmp_path / "c",
        metadata='{"id":"q"}',
        sources_0_0=f"\0v1\n{ends}",
        offsets_0=f"v1\n{{}}\n{ends}",
    )
    landing = ParquetParts(LocalStore(tmp_path))
    landing.recover()
    landing.record_beginning({"t": "A", "u": "B"}, "latest")
    forget_topics(landing.landed_so_far, found, ["u"], landing.recover)
    landing.use_topic_ids({"t": "A"})
    assert found.query_id() is None
    assert landing.landed == {"t": {"0": OffsetRange(5, 5)}, "u": {}}


def test_topic_of_an_unfinished_batch_is_forgotten(tmp_path: Path) -> None:
    """A batch that an earlier run has begun goes on without the topic, also if its checkpoint is missing."""
    store = LocalStore(tmp_path)
    landed = Landed(store, "delta", in_notes=False)
    landed.recover()
    ranges = {"t": {"0": OffsetRange(0, 2)}, "u": {"0": OffsetRange(0, 3)}}
    landed.begin(PlannedBatch(0, "q", {}, ranges, ranges), ReadSettings(), in_java=True)
    forget_topics(landed, checkpoint(tmp_path / "c"), ["u"], landed.recover)
    begun = landed.begun()
    assert begun is not None
    assert begun.offsets == begun.planned == {"t": {"0": OffsetRange(0, 2)}}


def test_fresh_checkpoint(tmp_path: Path) -> None:
    """A new checkpoint has no query and no batch."""
    assert checkpoint(tmp_path).query_id() is None
    assert checkpoint(tmp_path).last_committed() is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "must begin with v1, got"),
        ("v1", "must begin with v1"),
        ("v2\n{}\n{}", "got .*v2"),
        ("v1\n{}\n{", "truncated"),
        ("v1\n{}\n[]", "Expected"),
    ],
)
def test_damaged_checkpoint(tmp_path: Path, content: str, words: str) -> None:
    """A damaged file of the checkpoint is named in the error, with advice."""
    found = checkpoint(tmp_path, sources_0_0=content, metadata="", commits_0="", offsets_0=content)
    for look in (found.last_committed, lambda: found.plan(0)):
        with pytest.raises(WrongCheckpoint, match=rf"0 is not as Spark wrote it: .*{words}.*Restore the"):
            look()
    with pytest.raises(WrongCheckpoint, match=r"offsets/1 is not as Spark wrote it: it is missing"):
        found.plan(2)
    with pytest.raises(WrongCheckpoint, match=r"metadata is not as Spark wrote it"):
        found.query_id()


def test_one_pipeline_at_a_time(tmp_path: Path) -> None:
    """A second pipeline cannot lock a folder until the first one has closed it."""
    one, two = LocalStore(tmp_path), LocalStore(tmp_path)
    one.lock()
    with pytest.raises(InUse, match="being filled by another pipeline"):
        two.lock()
    one.close()
    two.lock()
    two.close()


def test_counts_by_type_are_limited() -> None:
    """Counts by type are limited if events have many types, with the right sum and the frequent ones."""
    total = BatchCounts()
    for batch in range(4):
        by_type = {f"type-{batch}-{number}": {"binary": 1} for number in range(597)} | {
            "often": {"binary": 3}
        }
        first = batch * 600
        offsets = {"t": {"0": PartitionCounts(first, first + 599, 600)}}
        total = total.merge(BatchCounts(read=600, events=600, by_type=by_type, offsets=offsets)).check()
    assert len(total.by_type) <= 1000
    assert total.events == 2400
    assert 12 - 2400 // 1000 <= total.by_type["often"]["binary"] <= 12


def test_offsets_between_two_runs_are_counted() -> None:
    """Records that expired between two runs count as offsets without a record."""
    before = BatchCounts(offsets={"t": {"0": PartitionCounts(10, 19, 8)}})
    total = before.merge(
        BatchCounts(offsets={"t": {"0": PartitionCounts(70, 79, 10), "1": PartitionCounts(0, 3, 2)}})
    )
    assert total.skipped_since(before) == {"t": {"0": 50, "1": 2}}


def test_folders_by_another_date(tmp_path: Path) -> None:
    """Events that are in folders by another column are refused."""
    store = LocalStore(tmp_path)
    land_plan(ParquetParts(store), plan_of(0), count)
    (tmp_path / "events" / "event_date=2026-05-01").mkdir(parents=True)
    with pytest.raises(
        WrongCheckpoint, match=r"partitioned by record_date, got event_date\. Land into a fresh"
    ):
        ParquetParts(store).recover()
