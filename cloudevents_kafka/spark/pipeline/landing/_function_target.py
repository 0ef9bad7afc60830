"""How batches are passed to a function of the user, each batch at least once.

If the process is killed while the function runs, the next start calls the function again, with the same
records and the same batch number. Earlier versions of this package could land batches in topics. A pipeline
with a function can continue in a folder of such a version, because the files in ``OUT/_batches`` are of the
same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed, failure_of, spark_errors
from cloudevents_kafka.spark.pipeline.landing._target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class EventBatch:
    """A batch for the function of a pipeline.

    ``number`` is the number of the batch in the folder of the pipeline, beginning with 0. If a batch is
    passed again, because a run was killed or the function raised an error, the batch has the same number and
    the same records. ``events`` and ``quarantine`` are DataFrames with the columns of the tables that have
    the same names. The rows stay in memory or on disk until the function returns, so the function may read
    them several times. ``offsets`` maps each topic to its partitions (as text), and each partition to the
    range of offsets that was read: ``start`` is the first offset of the range, and ``end`` is the first
    offset after the range.

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


class FunctionTarget(Target):
    """A target that calls a function with each batch."""

    def __init__(self, each_batch: EachBatch) -> None:
        self._each_batch = each_batch

    def table_name(self, table: str) -> str:  # noqa: ARG002  # it receives both
        """Return the name of the user's function."""
        return f"function {getattr(self._each_batch, '__qualname__', type(self._each_batch).__qualname__)}"

    def start(self, spark: SparkSession, batch: notes.BegunBatch) -> None:  # noqa: ARG002
        """Store the number and the offsets of a batch before `take` calls the function."""
        self._batch = batch

    def take(self, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts) -> None:
        """Call the function with the rows of a batch."""
        del counts  # the counts are exact, because the rows are stored
        batch = self._batch
        try:
            self._each_batch(EventBatch(batch.number, events, quarantine, batch.offsets))
        except Exception as error:
            failure = failure_of(str(error)) if isinstance(error, spark_errors()) else error
            raise PipelineFailed(
                f"the function that was called with batch {batch.number}, "
                f"{notes.format_ranges(batch.offsets)}, raised {type(error).__name__}: {failure}. "
                "The next start calls the function with this batch again"
            ) from error

    def commit(self, batch: notes.BegunBatch, counts: notes.BatchCounts) -> Mapping[str, Any]:  # noqa: ARG002
        """Return no fields for the batch's manifest, because the function has already received the rows."""
        return {}
