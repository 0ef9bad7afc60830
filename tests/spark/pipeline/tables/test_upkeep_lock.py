"""Upkeep of a table in a local folder and the commits of a pipeline exclude each other."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline.maintenance import _upkeep
from cloudevents_kafka.spark.pipeline.stores import commit_lock

# Whether another process can lock the folder now.
IS_FREE = """
import fcntl, os, sys
try:
    fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit(1)
"""


class FolderTable:
    """A table in a local folder that notes whether the folder is free while a method works."""

    name = "events"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.was_free: list[bool] = []

    def lock(self) -> AbstractContextManager[None]:
        return commit_lock(f"file://{self.folder}")

    def columns(self) -> list[str]:
        return ["type"]

    def count_files(self) -> int:
        return 1

    count_stored = count_files

    def optimize(self, *_: Any) -> None:
        done = subprocess.run([sys.executable, "-c", IS_FREE, self.folder], check=False)
        self.was_free.append(done.returncode == 0)

    vacuum = optimize


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_upkeep_locks_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other process commits while a table is optimized or vacuumed; then the table is free again."""
    table: Any = FolderTable(tmp_path)
    monkeypatch.setattr(_upkeep, "_maintain", lambda act, *_, **__: act([table]))
    assert len(list(_upkeep.optimize_tables(folder=str(tmp_path)))) == 1
    assert len(list(_upkeep.vacuum_tables(folder=str(tmp_path)))) == 1
    assert table.was_free == [False, False]
    table.optimize()
    assert table.was_free[-1]
