"""Damaged checkpoints, folders that cannot be written, strange names, other settings: errors in words."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from cloudevents_kafka.spark.pipeline import FolderFailed, PipelineFailed, WrongCheckpoint
from cloudevents_kafka.spark.pipeline.stores import LocalStore
from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from tests.spark.pipeline.lake import Lake, produce

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    # PySpark leaves the sockets that it fetches results through to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def offsets(lake: Lake) -> list[int]:
    return [row[3] for row in lake.rows()]


def _replace(path: Path, content: bytes) -> None:
    """Write a file of the checkpoint as Spark would, with no checksum of the old content."""
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    path.write_bytes(content)


def _empty(path: Path) -> None:
    _replace(path, b"")


def _cut(path: Path) -> None:
    _replace(path, path.read_bytes()[:-3])


def _garbage(path: Path) -> None:
    _replace(path, bytes(range(256)))


DAMAGES: Mapping[str, Callable[[Path], None]] = {"empty": _empty, "cut": _cut, "garbage": _garbage}


def _release(*values: str) -> list[Any]:
    return [pytest.param(value, marks=pytest.mark.release) for value in values]


@pytest.mark.parametrize(
    "file",
    [
        "offsets/1",
        *_release("metadata", "commits/1", "sources/0/0", "offsets/0", "offsets/7", "commits/+9"),
    ],
)
def test_damaged_checkpoint(lake: Lake, file: str) -> None:
    """A file that is empty, cut or strange is named before Spark starts, and what to do works."""
    produce(lake.broker, lake.topic, 20)
    lake.run(max_records=10)
    checkpoint = lake.out / "_checkpoint"
    (checkpoint / "offsets" / "notes.txt").write_text("not of Spark")  # has no effect
    path = checkpoint / file
    good = path.read_bytes() if path.exists() else None
    named = "offsets/6" if file == "offsets/7" else file  # before a last batch there must be another
    for damage in DAMAGES.values():
        _replace(path, good if good is not None else b"v1\n{}")
        damage(path)
        with pytest.raises(
            WrongCheckpoint, match=re.escape(f"/{named} is not as Spark wrote it: ")
        ) as raised:
            lake.start()
        assert "Restore the file, or" in str(raised.value)
    produce(lake.broker, lake.topic, 5)
    if good is None or file in {"metadata", "sources/0/0"}:
        path.unlink() if good is None else _replace(path, good)
    else:
        number = int(path.name)
        assert f"remove the files {number} and higher in offsets and commits" in str(raised.value)
        for log in ("offsets", "commits"):
            for n in range(number, 2):
                (checkpoint / log / str(n)).unlink(missing_ok=True)
                (checkpoint / log / f".{n}.crc").unlink(missing_ok=True)
    lake.run()
    assert offsets(lake) == list(range(25))


def test_damaged_checksum(lake: Lake) -> None:
    """A damaged checksum of a good file does not matter."""
    produce(lake.broker, lake.topic, 5)
    lake.run()
    checksum = lake.out / "_checkpoint" / "offsets" / ".0.crc"
    content = checksum.read_bytes()
    checksum.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    produce(lake.broker, lake.topic, 5)
    lake.run()
    assert offsets(lake) == list(range(10))


@contextmanager
def _read_only(folder: Path) -> Iterator[None]:
    """Refuse to create, rename and delete files in a folder, to root too."""
    if os.geteuid():
        folder.chmod(0o555)
    elif shutil.which("chattr") is None or subprocess.run(["chattr", "+i", folder], check=False).returncode:
        pytest.skip("root needs chattr, and a file system that has it")
    try:
        yield
    finally:
        if os.geteuid():
            folder.chmod(0o755)
        else:
            subprocess.run(["chattr", "-i", folder], check=True)


@pytest.mark.parametrize(
    "folder", ["events", *_release(".", "_checkpoint/offsets", "_batches", "_checkpoint/commits")]
)
def test_read_only_folder(lake: Lake, folder: str) -> None:
    """Where nothing can be created, the run fails with the reason and advice; the next one continues."""
    produce(lake.broker, lake.topic, 5)
    lake.run()
    produce(lake.broker, lake.topic, 5)
    (lake.out / "_lock").unlink(missing_ok=True)
    for path in (lake.out / "events").iterdir() if folder == "events" else [lake.out / folder]:
        with _read_only(path), pytest.raises((FolderFailed, PipelineFailed)) as raised:
            lake.run()
    assert re.search("Permission denied|Operation not permitted|rename", str(raised.value))
    assert "create, rename and delete files" in str(raised.value)
    lake.run()
    assert offsets(lake) == list(range(10))


def test_renames_are_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without renames is named; the batch, which has landed, is completed at the next start."""
    produce(lake.broker, lake.topic, 5)

    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        for _ in range(2):
            with pytest.raises(FolderFailed, match="on one file system"):
                lake.run()
    lake.run()
    assert offsets(lake) == list(range(5))


def test_out_is_a_file(tmp_path: Path) -> None:
    """A folder whose name is taken by a file is refused."""
    (tmp_path / "out").touch()
    with pytest.raises(FolderFailed, match=r"cannot create file://.*/out: .*It must be a folder"):
        LocalStore(tmp_path / "out")


@pytest.mark.parametrize(
    "name", ["{a,b}[c]back\\slash*?", *_release("{a,b}", "[a]", "back\\slash", "*", "a?b")]
)
def test_names_that_are_patterns(lake: Lake, name: str) -> None:
    """Spark reads braces, brackets and others as patterns; here they are parts of names."""
    decoy = lake.out / "a:b"  # a pattern would fail on this name, or find it
    decoy.mkdir()
    lake.out = lake.out / name
    produce(lake.broker, lake.topic, 5)
    lake.run()
    produce(lake.broker, lake.topic, 5)
    lake.run()
    assert offsets(lake) == list(range(10))


SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.columnNameOfCorruptRecord": "id",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.session.timeZone": "Pacific/Kiritimati",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.sources.default": "json",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
}


@pytest.mark.parametrize("to", ["parquet", *_release("delta", "iceberg")])
def test_other_settings_of_the_session(lake: Lake, tmp_path: Path, to: Any) -> None:
    """Tables do not depend on the settings of the session in which they are written."""
    other = Lake.copy_to(lake, tmp_path / "other")
    lake.out = tmp_path / "default"
    produce(lake.broker, lake.topic, 5)
    producer_of_broken(lake)
    lake.run(to=to)
    conf = lake.spark.conf
    before = {name: conf.get(name, None) for name in SETTINGS}
    try:
        for name, value in SETTINGS.items():
            conf.set(name, value)
        summary = other.run(to=to)
        after = {name: conf.get(name) for name in SETTINGS}
    finally:
        for name, old in before.items():
            conf.unset(name) if old is None else conf.set(name, old)
    assert after == SETTINGS  # the user's settings stay
    assert (summary.counts.events, summary.counts.quarantined) == (5, 1)
    for table in ("events", "quarantine"):
        tables = [_read(lake, to, where / table) for where in (lake.out, other.out)]
        assert tables[0].schema == tables[1].schema
        rows = [sorted(map(repr, found.to_pylist())) for found in tables]
        assert rows[0] == rows[1]


def _read(lake: Lake, to: Any, folder: Path) -> Any:
    """Return the rows of a table as pyarrow's."""
    if to == "parquet":
        return ds.dataset(folder, partitioning="hive").to_table()
    table: Any = table_in_folder(lake.spark, to, f"file://{folder}")
    assert table.exists()
    return lake.spark.table(table._sql_name).toArrow()


def producer_of_broken(lake: Lake) -> None:
    """Send a record that is not an event."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    producer.produce(lake.topic, value=b"x", headers=[("ce_specversion", b"1.0")])
    assert producer.flush(30) == 0
