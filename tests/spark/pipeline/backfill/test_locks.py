"""Backfills of tables run next to each other and next to a pipeline, but not next to a vacuum."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloudevents_kafka.spark import EventPipeline, PipelineOptions
from cloudevents_kafka.spark.pipeline import InUse, PipelineFailed
from cloudevents_kafka.spark.pipeline.stores import BACKFILL_FOLDER, folder_lock


def backfill(out: Path) -> None:
    options = PipelineOptions(
        bootstrap_servers="127.0.0.1:1", topics=("t",), out=str(out), to="delta", backfill="0..1"
    )
    EventPipeline(options).run()


def test_a_vacuum_keeps_backfills_out(tmp_path: Path) -> None:
    """While a vacuum that deletes new files has locked the folder of backfills, no backfill starts."""
    with folder_lock(f"{tmp_path}/{BACKFILL_FOLDER}"), pytest.raises(InUse):
        backfill(tmp_path)


@pytest.mark.parametrize(("folder", "shared"), [("", False), (BACKFILL_FOLDER, True)])
def test_others_do_not(tmp_path: Path, folder: str, *, shared: bool) -> None:
    """A pipeline, or another backfill, does not keep a backfill out, which fails later here."""
    with folder_lock(f"{tmp_path}/{folder}", shared=shared), pytest.raises(PipelineFailed, match="no broker"):
        backfill(tmp_path)
