"""A backfill of tables runs next to a pipeline, but not next to another backfill or a vacuum."""

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


def test_a_backfill_or_vacuum_keeps_backfills_out(tmp_path: Path) -> None:
    """While a backfill, or a vacuum that deletes new files, has locked its folder, no backfill starts."""
    with folder_lock(f"{tmp_path}/{BACKFILL_FOLDER}"), pytest.raises(InUse):
        backfill(tmp_path)


def test_a_pipeline_does_not(tmp_path: Path) -> None:
    """While a pipeline has locked the folder, a backfill starts; here it fails later, without a broker."""
    with folder_lock(str(tmp_path)), pytest.raises(PipelineFailed, match="no broker"):
        backfill(tmp_path)
