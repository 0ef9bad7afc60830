"""A checkpoint that was set back, lost or replaced: each record lands once, or the run fails."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.spark.pipeline.notes import WrongCheckpoint
from cloudevents_kafka.spark.pipeline.stores import HadoopStore
from cloudevents_kafka.testing import LocalBroker
from tests.spark.pipeline.lake import Lake, produce
from tests.spark.pipeline.landing.parts import ParquetParts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    # PySpark leaves the sockets that it fetches results through to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def offsets(lake: Lake) -> list[int]:
    return [row[3] for row in lake.rows()]


def forget(folder: Path, *numbers: int) -> None:
    """Remove files of a checkpoint's log and their checksums."""
    for number in numbers:
        (folder / str(number)).unlink()
        (folder / f".{number}.crc").unlink(missing_ok=True)


def test_last_batch_forgotten(lake: Lake) -> None:
    """Without the last offsets and commits, a batch is planned again with a later end; the rest lands."""
    produce(lake.broker, lake.topic, 1000)
    lake.run(max_records=500)
    for log in ("offsets", "commits"):
        forget(lake.out / "_checkpoint" / log, 1)
    produce(lake.broker, lake.topic, 1000)
    summary = lake.run(max_records=None)
    assert offsets(lake) == list(range(2000))
    assert (summary.counts.read, summary.total.read) == (1000, 2000)
    produce(lake.broker, lake.topic, 5)
    assert lake.run().counts.read == 5
    assert offsets(lake) == list(range(2005))


@pytest.mark.parametrize("max_records", [35, pytest.param(300, marks=pytest.mark.release)])
def test_backup_of_some_batches_ago(lake: Lake, tmp_path: Path, max_records: int) -> None:
    """A checkpoint from a backup plans landed records in other batches; only new ones land."""
    produce(lake.broker, lake.topic, 100)
    lake.run()
    backup = tmp_path / "backup"
    shutil.copytree(lake.out / "_checkpoint", backup)
    produce(lake.broker, lake.topic, 60)
    lake.run(max_records=20)
    shutil.rmtree(lake.out / "_checkpoint")
    shutil.copytree(backup, lake.out / "_checkpoint")
    produce(lake.broker, lake.topic, 20)
    assert lake.run(max_records=max_records).counts.read == 20
    assert offsets(lake) == list(range(180))


def test_commit_forgotten(lake: Lake) -> None:
    """A batch without its commit runs again as planned, and lands nothing."""
    produce(lake.broker, lake.topic, 100)
    lake.run()
    forget(lake.out / "_checkpoint" / "commits", 0)
    produce(lake.broker, lake.topic, 10)
    assert lake.run().counts.read == 10
    assert offsets(lake) == list(range(110))


def test_all_batches_forgotten(lake: Lake) -> None:
    """A checkpoint that begins again at its first offsets lands only new records."""
    produce(lake.broker, lake.topic, 100)
    lake.run(max_records=40)
    for log in ("offsets", "commits"):
        shutil.rmtree(lake.out / "_checkpoint" / log)
    produce(lake.broker, lake.topic, 10)
    assert lake.run().counts.read == 10
    assert offsets(lake) == list(range(110))


def test_first_offsets_lost(lake: Lake) -> None:
    """A checkpoint that begins before the landed offsets is refused: records between are missing."""
    produce(lake.broker, lake.topic, 100)
    lake.run(start="latest")
    produce(lake.broker, lake.topic, 10)
    lake.run(start="latest")
    for log in ("offsets", "commits", "sources"):
        shutil.rmtree(lake.out / "_checkpoint" / log)
    with pytest.raises(WrongCheckpoint, match=rf"{lake.topic}\[0\]@0 to 99 are missing in"):
        lake.run()
    assert offsets(lake) == list(range(100, 110))


def test_copies_that_went_apart(lake: Lake, tmp_path: Path) -> None:
    """A copy of a folder cannot continue with the checkpoint of another copy."""
    produce(lake.broker, lake.topic, 100)
    lake.run()
    copy = Lake.copy_to(lake, tmp_path / "copy")
    shutil.copytree(lake.out, copy.out, ignore=shutil.ignore_patterns("copy"))
    produce(lake.broker, lake.topic, 100)
    copy.run()
    shutil.rmtree(lake.out / "_checkpoint")
    shutil.copytree(copy.out / "_checkpoint", lake.out / "_checkpoint")
    for count in (0, 10):
        produce(lake.broker, lake.topic, count)
        with pytest.raises(WrongCheckpoint, match=rf"{lake.topic}\[0\]@100 to 199 are missing in"):
            lake.run()
    assert offsets(copy) == list(range(200))


@pytest.fixture(scope="module")
def landed(
    session: SparkSession, kafka_broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> Lake:
    """Return a lake with two batches, to be copied."""
    lake = Lake(session, kafka_broker, tmp_path_factory.mktemp("landed"))
    produce(lake.broker, lake.topic, 20)
    lake.run(max_records=10)
    return lake


def lose_checkpoint(lake: Lake) -> None:
    shutil.rmtree(lake.out / "_checkpoint")


def lose_manifests(lake: Lake) -> None:
    shutil.rmtree(lake.out / "_batches")


def lose_last_manifest(lake: Lake) -> None:
    max((lake.out / "_batches").glob("0*.json")).unlink()


def lose_both(lake: Lake) -> None:
    lose_manifests(lake)
    lose_checkpoint(lake)


def lose_last_of_both(lake: Lake) -> None:
    lose_last_manifest(lake)
    for log in ("offsets", "commits"):
        forget(lake.out / "_checkpoint" / log, 1)


def lose_tables_and_manifests(lake: Lake) -> None:
    lose_manifests(lake)
    shutil.rmtree(lake.out / "events")


def age_manifests(lake: Lake) -> None:
    for manifest in (lake.out / "_batches").glob("*.json"):
        manifest.write_text(re.sub(r'"version": \d+,', "", manifest.read_text()))


def damage(path: str, content: str) -> Callable[[Lake], None]:
    def change(lake: Lake) -> None:
        file = lake.out / "_checkpoint" / path
        file.write_text(content)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            lose_checkpoint, "another checkpoint .*this is a new one.*fresh folder", marks=pytest.mark.release
        ),
        (lose_manifests, "has no manifest"),
        (lose_last_manifest, r"continues with batch 2 .* are missing in"),
        (lose_both, "has no manifest"),
        (lose_last_of_both, "has no manifest"),
        (lose_tables_and_manifests, "continues with batch 2, but .* has no batch"),
        (age_manifests, "manifests' format, got version 1.*fresh folder"),
        (damage("metadata", ""), "metadata is not as Spark wrote it"),
        (damage("offsets/1", ""), "offsets/1 is not as Spark wrote it"),
    ],
)
def test_folder_and_checkpoint_that_disagree(
    landed: Lake, tmp_path: Path, change: Callable[[Lake], Any], words: str
) -> None:
    """The error names what was removed or replaced, even without new records; nothing lands."""
    lake = Lake.copy_to(landed, tmp_path / "copy")
    shutil.copytree(landed.out, lake.out)
    change(lake)
    before = lake.rows()
    with pytest.raises(WrongCheckpoint, match=words):
        lake.run()
    assert lake.rows() == before


def test_checkpoint_of_another_pipeline(lake: Lake, tmp_path: Path) -> None:
    """A checkpoint of another folder is refused, even if the topic is the same."""
    other = Lake.copy_to(lake, tmp_path / "other")
    produce(lake.broker, lake.topic, 20)
    lake.run()
    other.run()
    with pytest.raises(WrongCheckpoint, match="was filled under another checkpoint"):
        lake.run(checkpoint=str(other.out / "_checkpoint"))
    shutil.rmtree(other.out / "_batches")
    shutil.rmtree(other.out / "events")
    with pytest.raises(WrongCheckpoint, match=r"continues with batch 1, but .* has no batch"):
        other.run()


def test_store_of_hadoop(landed: Lake, tmp_path: Path) -> None:
    """A folder of Hadoop is checked like a local one."""
    shutil.copytree(landed.out, tmp_path / "copy")
    store = HadoopStore(landed.spark, f"file://{tmp_path}/copy")
    landing = ParquetParts(store)
    assert landing.recover() is None
    assert landing.total.read == 20
    assert len(store.list_files("events", ".parquet")) == 2
    for manifest in store.list_names("_batches"):
        store.remove(f"_batches/{manifest}")
    with pytest.raises(WrongCheckpoint, match="has no manifest"):
        landing.recover()
