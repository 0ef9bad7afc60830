"""`NotedLanding`: batches with a note that is written before them, as renaming files cannot land them."""

from __future__ import annotations

from cloudevents_kafka.spark.pipeline.landing._landing import Landing
from cloudevents_kafka.spark.pipeline.notes import BatchPlan, BegunBatch, TopicIds


class NotedLanding(Landing):
    """Batches whose note, ``_batches/begun.json``, has their offsets: another run finishes the same batch."""

    def begun(self) -> BegunBatch | None:
        """Return the batch that was begun and has no manifest, or None."""
        batch = self.manifests.begun()
        return None if batch is None or (self.last and batch.number <= self.last.number) else batch

    def begin(
        self,
        plan: BatchPlan,
        query_id: str,
        topic_ids: TopicIds,
        *,
        in_java: bool = True,
        lenient: bool = False,
    ) -> BegunBatch | None:
        """Note and return the batch of those records that have not landed yet, or None if all have."""
        batch = super().begin(plan, query_id, topic_ids, in_java=in_java, lenient=lenient)
        if batch is not None:
            self.manifests.begin(batch)
        return batch
