"""What lands batches in a folder, without topics and a checkpoint: the steps of `BatchLander`, one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline.landing import BatchLander, Landed, Target
from cloudevents_kafka.spark.pipeline.landing._parquet_target import ParquetTarget
from cloudevents_kafka.spark.pipeline.notes import (
    BatchCounts,
    BatchManifest,
    BatchPlan,
    BegunBatch,
    PlannedBatch,
    ReadSettings,
)
from cloudevents_kafka.spark.pipeline.stores import Store


class Parts:
    """What has landed in a folder, and its target; all else is asked of what has landed."""

    def __init__(self, landed: Landed, target: Target, read: ReadSettings | None = None) -> None:
        self.landed_so_far, self.target, self.read = landed, target, read or ReadSettings()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.landed_so_far, name)

    def recover(self) -> int | None:
        self.landed_so_far.recover()
        return self.target.recover()

    def begin(
        self, plan: BatchPlan, query: str, ids: Any, *, in_java: bool = True, lenient: bool = False
    ) -> BegunBatch | None:
        planned = self.landed_so_far.plan(plan, query, ids)
        return None if planned is None else self._begin(planned, in_java=in_java, lenient=lenient)

    def begin_again(self, batch: BegunBatch, *, in_java: bool, lenient: bool) -> BegunBatch:
        return self._begin(PlannedBatch.of(batch), in_java=in_java, lenient=lenient)

    def _begin(self, planned: PlannedBatch, *, in_java: bool, lenient: bool) -> BegunBatch:
        return self.landed_so_far.begin(planned, replace(self.read, lenient=lenient), in_java=in_java)

    def write(self, writer: Any, records: Any, batch: BegunBatch) -> BatchCounts:
        nothing: Any = None
        lander = BatchLander(nothing, self.landed_so_far, self.target, self.read, nothing, nothing, writer)
        return lander._stage(batch, records)

    def complete(self, batch: BegunBatch, counts: BatchCounts) -> BatchManifest:
        committed = self.target.commit(batch, counts.check())
        manifest = self.landed_so_far.complete(batch, counts, committed)
        self.target.finish(manifest)
        return manifest


class ParquetParts(Parts):
    """A folder of files that are not read: their rows are not counted."""

    target: ParquetTarget

    def __init__(self, store: Store) -> None:
        landed = Landed(store, "parquet", notes_begun=False)
        super().__init__(landed, ParquetTarget(landed, ReadSettings()))

    def stage(self, batch: BegunBatch) -> str:
        """Return the URL of a new staging folder."""
        self.target.start(cast("Any", None), batch)
        self.target._files = cast("Any", SimpleNamespace(check=lambda _: {}))
        return self.store.url(self.target._staging)
