"""A local folder whose files are created and replaced completely or not at all."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from cloudevents_kafka.spark.pipeline.stores import LocalStore, _store


def test_a_file_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a process is killed while it replaces a file, the file has its earlier content."""
    store = LocalStore(tmp_path)
    store.replace("a/note.json", b"1")
    with monkeypatch.context() as patch:
        patch.setattr(_store.os, "fsync", Mock(side_effect=KeyError("killed")))
        with pytest.raises(KeyError):
            store.replace("a/note.json", b"2")
    assert store.read("a/note.json") == b"1"
    store.replace("a/note.json", b"3")
    assert store.read("a/note.json") == b"3"
    assert store.list_names("a") == ["note.json"]
