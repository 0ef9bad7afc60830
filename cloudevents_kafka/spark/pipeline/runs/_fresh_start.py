"""Applies the options ``start``, ``topics`` and ``forget_topics`` to an existing checkpoint.

In the checkpoint, Spark stores the offsets at which the query began, and the planned offsets of each topic.
The content of an existing checkpoint cannot be changed. So the functions of this module replace the
checkpoint with a new checkpoint, which begins after the landed records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.landing import Landed, Landing
from cloudevents_kafka.spark.pipeline.notes import (
    REPLAYS,
    BegunBatch,
    Checkpoint,
    Ledger,
    OffsetRanges,
)
from cloudevents_kafka.spark.pipeline.options import PipelineOptions


def use_newest_start(
    landing: Landing,
    checkpoint: Checkpoint,
    start: str,
    recover: Callable[[], object],
    warn: Callable[[str], None],
) -> None:
    """Use a new value of the option ``start`` if no record has landed.

    If records have landed, the function only warns that the new value of ``start`` has no effect.

    The checkpoint and the files in ``_batches`` contain the offsets of the earlier value of ``start``. So the
    checkpoint and the files in ``_batches`` are removed before the new value of ``start`` is used.
    """
    landed, before = landing.landed, landing.landed.beginning.start
    if before in ("", start):
        return
    begun = landed.begun()
    if landed.total.read or (begun is not None and landing.target.is_decided(begun)):
        warn(
            f"the start (--from) {start} has no effect: {landed.store.url('')} continues after the "
            f"landed records, which began at {before}; for another start use a fresh folder"
        )
        return
    checkpoint.clear()
    landed.manifests.clear()  # the last: until then, the next start does this again
    recover()


def clear_unused(landed: Landed, checkpoint: Checkpoint) -> None:
    """Remove a checkpoint with which Spark must not continue.

    The function removes a checkpoint in two cases. In the first case, the checkpoint contains no offsets, and
    no batch of the checkpoint's query has landed: a run was killed before Spark planned a batch. In the
    second case, `Beginning.follows` is the id of the checkpoint's query: a run was killed before it had
    removed the checkpoint completely.
    """
    follows, last = landed.beginning.follows, landed.last
    if checkpoint.has_offsets():
        is_unused = follows is not None and checkpoint.query_id() in {None, follows}
    else:
        is_unused = last is None or checkpoint.query_id() != last.query
    if is_unused:
        checkpoint.clear()


def forget_topics(
    landed: Landed,
    checkpoint: Checkpoint,
    names: Collection[str],
    recover: Callable[[], object],
    finds: Callable[[str], bool] = lambda _: False,
) -> None:
    """If Spark continues at offsets of the topics ``names``, use a checkpoint without these topics.

    The checkpoint is also replaced if Spark's plan does not contain a topic whose records have landed, or at
    whose offsets Spark continues, and the function ``finds`` returns True for this topic. With the new
    checkpoint, Spark reads the topic from the end of the topic's landed offsets. With the old checkpoint,
    Spark would read the topic from the topic's first offset, or fail.
    """
    begun = landed.begun()
    if begun is not None and (begun.offsets.keys() | begun.planned.keys()) & set(names):
        landed.manifests.write(without_topics(begun, names))
    query_id, begins = checkpoint.query_id(), checkpoint.last_begins()
    if query_id is None or begins is None or not _is_replaced(landed, checkpoint, names, finds):
        return
    follows = None if landed.last is None else landed.last.query
    ledger = Ledger().add(landed.pipeline, landed.topic_ids, _without(begins, names))
    landed.manifests.write(replace(landed.beginning, landed=ledger, follows=follows))
    checkpoint.clear()
    recover()


def _is_replaced(
    landed: Landed, checkpoint: Checkpoint, names: Collection[str], finds: Callable[[str], bool]
) -> bool:
    """Return whether Spark must not continue with a checkpoint, because of its topics."""
    topics, planned = checkpoint.topics(), checkpoint.last_planned()
    # The ledger of a table also has topics that only a backfill, or another pipeline, has landed.
    known = topics | {entry.topic for entry in landed.ledger.entries()} - {REPLAYS}
    unplanned = known - (topics if planned is None else planned.ranges.keys())
    return not topics.isdisjoint(names) or any(map(finds, unplanned))


def check_removed(checkpoint: Checkpoint, options: PipelineOptions) -> None:
    """Raise `PipelineFailed` if Spark continues at offsets of a topic that the pipeline no longer reads.

    Spark itself would fail only after it has planned a batch without the topic. If ``allow_data_loss`` is
    true, Spark continues without the topic. Topics of a pattern are not checked, because Java decides
    which names match.
    """
    if options.topic_pattern is not None or options.allow_data_loss:
        return
    removed = sorted(checkpoint.topics() - set(options.topic_names))
    if removed:
        flags = " ".join(f"--forget-topic {name}" for name in removed)
        raise PipelineFailed(
            f"the topics must contain {', '.join(removed)}, which earlier runs have read, got "
            f"{', '.join(options.topic_names)}. To continue without the missing "
            f"topics, add {flags} (in Python, forget_topics={tuple(removed)}). If you allow data loss "
            "(--allow-data-loss), the pipeline also continues, but then it also continues if records expired "
            "before they were read",
            final=True,
        )


def without_topics(batch: BegunBatch, names: Collection[str]) -> BegunBatch:
    """Return a copy of a batch without the offsets of some topics."""
    return replace(batch, offsets=_without(batch.offsets, names), planned=_without(batch.planned, names))


def _without(ranges: OffsetRanges, names: Collection[str]) -> OffsetRanges:
    return {topic: numbers for topic, numbers in ranges.items() if topic not in names}
