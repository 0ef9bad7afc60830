"""`use_newest_start`: until a record has landed, the option ``start`` of the newest run counts."""

from __future__ import annotations

from collections.abc import Callable

from cloudevents_kafka.spark.pipeline.landing import Landing
from cloudevents_kafka.spark.pipeline.notes import Checkpoint


def use_newest_start(
    landing: Landing, checkpoint: Checkpoint, start: str, warn: Callable[[str], None]
) -> None:
    """Forget an earlier start, at which nothing has landed, or warn that another one has no effect.

    Spark keeps the offsets of its first start in the checkpoint, and so do the notes.
    """
    before = landing.manifests.beginning().start
    if before in ("", start):
        return
    if landing.total.read or not landing.manifests.clear():
        warn(
            f"the start (--from) {start} has no effect: {landing.store.url('')} goes on behind what has "
            f"landed, after a start at {before}; for another start use a fresh folder"
        )
        return
    checkpoint.clear()
    landing.recover()
