"""Notes that were written through Spark Connect, read in a session of this process."""

from __future__ import annotations

from pathlib import Path

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


class FolderStore(LocalStore):
    """A local folder that is written as Spark Connect writes it: each note is a folder."""

    makes_folders = True

    def replace(self, path: str, content: bytes) -> None:
        self.remove(path)
        self.create(f"{path}/part-00000-1-c000.txt", content + b"\n")


def manifest(number: int) -> BatchManifest:
    counts = BatchCounts()
    return BatchManifest(**asdict(begun(number)), ledger=Ledger(), counts=counts, total=counts)


def begun(number: int) -> BegunBatch:
    return BegunBatch(number=number, batch=number, query="q", ids={}, offsets={}, planned={}, in_java=True)


def test_notes_of_both_kinds(tmp_path: Path) -> None:
    """The newest counts, written by either kind of session, so each continues what the other has landed."""
    classic, connect = Manifests(LocalStore(tmp_path)), Manifests(FolderStore(tmp_path))
    assert connect.last() is classic.last() is None
    connect.write(Beginning(ids={"t": "A"}))
    assert connect.find(Beginning) == classic.find(Beginning) == Beginning(ids={"t": "A"})
    for number, writer in enumerate([connect] * 6 + [classic] * 2 + [connect, classic, connect]):
        writer.write(begun(number))
        for reader in (classic, connect):
            assert reader.find(BegunBatch) == begun(number)
        writer.add(manifest(number))
        for reader in (classic, connect):
            assert reader.last() == manifest(number)
    assert (
        len(list((tmp_path / "_batches" / "connect").iterdir())) == 6
    )  # bounded: beginning, begun, 4 manifests


def test_unfinished_notes(tmp_path: Path) -> None:
    """A note that Spark has not finished is not there; the one before it is."""
    classic, connect = Manifests(LocalStore(tmp_path)), Manifests(FolderStore(tmp_path))
    for number in range(4):
        connect.add(manifest(number))
    FolderStore(tmp_path).remove("_batches/connect/0")
    draft = tmp_path / "_batches" / "connect" / "0" / "_temporary" / "0"
    draft.mkdir(parents=True)
    (draft / "part-00000-2-c000.txt").write_text("{")
    assert connect.last() == classic.last() == manifest(3)
