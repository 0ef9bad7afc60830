"""How batches land by a function of the user, at least once.

If the process is killed while the function runs, the next start calls it again, with the same records under
the same number. Earlier versions landed in topics in the same way, so a function goes on in their folders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed, failure_of, spark_errors
from cloudevents_kafka.spark.pipeline.landing._landing import Landing
from cloudevents_kafka.spark.pipeline.stores import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter


@dataclass(frozen=True)
class EventBatch:
    """A batch for the function of a pipeline.

    ``number`` counts the batches of the pipeline's folder. A batch that is passed again, because a run was
    killed or the function raised an error, has the same number and the same records. ``events`` and
    ``quarantine`` have the columns of the tables of these names; they are kept until the function returns,
    so it may read them several times. ``offsets`` maps topic to partition (as text) to the offsets that
    were read, with ``start`` and ``end``, the first after the last.

    Examples:
        >>> from cloudevents_kafka.spark import EventBatch, EventPipeline, PipelineOptions
        >>> def show(batch: EventBatch) -> None:
        ...     print(batch.number, batch.events.count(), batch.quarantine.count())
        >>> brokers = "localhost:9092"
        >>> options = PipelineOptions(bootstrap_servers=brokers, topics=("orders",), out="lake/", once=True)
        >>> summary = EventPipeline(options, spark=spark, each_batch=show).run()
        0 2 0
    """

    number: int
    events: DataFrame
    quarantine: DataFrame
    offsets: notes.OffsetRanges


EachBatch = Callable[[EventBatch], object]


class FunctionLanding(Landing):
    """The batches of a function."""

    kind = "function"
    continued = ("kafka",)

    def __init__(self, store: Store, each_batch: EachBatch) -> None:
        super().__init__(store)
        self._each_batch = each_batch

    def table_name(self, table: str) -> str:  # noqa: ARG002  # it takes both
        """Return the name of the function."""
        return f"function {getattr(self._each_batch, '__qualname__', type(self._each_batch).__qualname__)}"

    def begun(self) -> notes.BegunBatch | None:
        """Return the batch that an earlier run has begun, without routes to topics."""
        batch = super().begun()
        return None if batch is None else replace(batch, routes={})

    def write(self, writer: BatchWriter, records: DataFrame, batch: notes.BegunBatch) -> notes.BatchCounts:
        """Call the function with a batch, and return the counts."""
        return writer.write_kept(records, batch, partial(self._call, batch))

    def _call(
        self, batch: notes.BegunBatch, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts
    ) -> None:
        del counts  # they are exact, as the rows are kept
        try:
            self._each_batch(EventBatch(batch.number, events, quarantine, batch.offsets))
        except Exception as error:
            failure = failure_of(str(error)) if isinstance(error, spark_errors()) else error
            raise PipelineFailed(
                f"the function that was called with batch {batch.number}, "
                f"{notes.format_ranges(batch.offsets)}, raised {type(error).__name__}: {failure}. "
                "The next start calls it with this batch again"
            ) from error
