"""The temporary folder of a local Spark is deleted, by the next one if the process was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cloudevents_kafka.spark.pipeline.session._scratch import delete_abandoned, scratch_folder

_OWNER = """
import subprocess, sys, time
from cloudevents_kafka.spark.pipeline.session._scratch import scratch_folder

with scratch_folder() as (folder, lock):
    (folder / "blockmgr").mkdir()
    child = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))  # as Java
    print(folder, child.pid, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder the one of all temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_deleted_at_the_end(parent: Path) -> None:
    """A folder is deleted with its content when its block ends, and not before."""
    with scratch_folder() as (folder, _):
        (folder / "file").touch()
        assert folder.parent == parent
        delete_abandoned(parent)
        assert (folder / "file").exists()
    assert list(parent.iterdir()) == []


def test_left_behind(parent: Path) -> None:
    """A folder stays as long as its process or Java runs; then the next process deletes it."""
    owner = subprocess.Popen([sys.executable, "-c", _OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout:
        name, child = owner.stdout.readline().split()
    folder = Path(name)
    try:
        delete_abandoned(parent)
        assert (folder / "blockmgr").exists()
        owner.kill()
        owner.wait()
        delete_abandoned(parent)
        assert folder.exists()
    finally:
        owner.kill()
        os.kill(int(child), signal.SIGKILL)
    while folder.exists():  # until the system has ended the process
        delete_abandoned(parent)


def test_what_is_not_proven(parent: Path) -> None:
    """Folders without a lock, files, links and folders of other names stay."""
    name = "cloudevents-kafka-spark-"
    (parent / f"{name}no-lock").mkdir()
    (parent / f"{name}file").touch()
    (parent / "other").mkdir()
    (parent / "other" / "_lock").touch()
    (parent / f"{name}link").symlink_to(parent / "other")
    with scratch_folder():
        pass
    assert len(list(parent.iterdir())) == 4
    assert (parent / "other" / "_lock").exists()


def test_other_users(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of other users stay."""
    folder = parent / "cloudevents-kafka-spark-theirs"
    folder.mkdir()
    (folder / "_lock").touch()
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    delete_abandoned(parent)
    assert folder.exists()
    monkeypatch.undo()
    delete_abandoned(parent)
    assert not folder.exists()
