"""Notes that an earlier version wrote through Spark Connect are read, but not written."""

from __future__ import annotations

from pathlib import Path

from msgspec.json import encode
from msgspec.structs import asdict

from cloudevents_kafka.spark.pipeline.notes import (
    BatchCounts,
    BatchManifest,
    Beginning,
    BegunBatch,
    Ledger,
    Manifests,
)
from cloudevents_kafka.spark.pipeline.stores import LocalStore


def manifest(number: int) -> BatchManifest:
    counts = BatchCounts()
    return BatchManifest(**asdict(begun(number)), ledger=Ledger(), counts=counts, total=counts)


def begun(number: int) -> BegunBatch:
    return BegunBatch(number=number, batch=number, query="q", ids={}, offsets={}, planned={}, in_java=True)


def write_folder(out: Path, name: str, note: BegunBatch | Beginning) -> None:
    """Write a note as Spark Connect did: a folder with one file."""
    folder = out / "_batches" / "connect" / name
    folder.mkdir(parents=True)
    (folder / "part-00000-1-c000.txt").write_bytes(encode(note) + b"\n")


def test_newest_of_both_kinds(tmp_path: Path) -> None:
    """The newest note counts, in a folder or in a file; new ones are files."""
    manifests = Manifests(LocalStore(tmp_path))
    write_folder(tmp_path, "beginning", Beginning(ids={"t": "A"}))
    assert manifests.last() is None
    assert manifests.find(Beginning) == Beginning(ids={"t": "A"})
    for number in (4, 1, 2, 3):
        write_folder(tmp_path, str(number % 4), manifest(number))
    write_folder(tmp_path, "begun", begun(5))
    assert manifests.last() == manifest(4)
    assert manifests.find(BegunBatch) == begun(5)
    manifests.add(manifest(5))
    manifests.write(begun(6))
    assert manifests.last() == manifest(5)
    assert manifests.find(BegunBatch) == begun(6)
    manifests.write(Beginning(ids={"t": "B"}))
    assert manifests.find(Beginning) == Beginning(ids={"t": "B"})


def test_unfinished_notes(tmp_path: Path) -> None:
    """A note that Spark has not finished is not there; the one before it is."""
    for number in (1, 2, 3):
        write_folder(tmp_path, str(number), manifest(number))
    draft = tmp_path / "_batches" / "connect" / "0" / "_temporary" / "0"
    draft.mkdir(parents=True)
    (draft / "part-00000-2-c000.txt").write_text("{")
    assert Manifests(LocalStore(tmp_path)).last() == manifest(3)
