"""How batches land in topics, or by a function of the user, at least once.

If the process is killed while a batch is written, the next start writes it again, from the same records
under the same number. Each record that is written has these headers, in UTF-8, after its own:

* ``pipeline-batch``: the number of the batch in this pipeline;
* ``pipeline-topic``, ``pipeline-partition``, ``pipeline-offset``: the record that was read. Two records
  with the same values of these headers are the same;
* ``pipeline-verdict``, ``pipeline-reason``, ``pipeline-clause``: why it is not an event, if so.

Headers of these names that an event came with are dropped. Other records keep all headers, and the last
of a name is that of this pipeline.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.landing._landing import Landing
from cloudevents_kafka.spark.pipeline.stores import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter

PREFIX: Final = "pipeline-"
_FROM: Final = ("topic", "partition", "offset")
_WHY: Final = ("verdict", "reason", "clause")
_ADDED: Final = "added_headers"


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


class _Delivery(Landing):
    """Batches that are delivered as a whole, again if that was not finished."""

    def write(self, writer: BatchWriter, records: DataFrame, batch: notes.BegunBatch) -> notes.BatchCounts:
        """Deliver the records of a batch, and return the counts."""
        return writer.write_kept(records, batch, partial(self._deliver, batch))

    @abstractmethod
    def _deliver(
        self, batch: notes.BegunBatch, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts
    ) -> None:
        """Deliver events and other records."""


class FunctionLanding(_Delivery):
    """The batches of a function."""

    kind = "function"

    def __init__(self, store: Store, each_batch: EachBatch) -> None:
        super().__init__(store)
        self._each_batch = each_batch

    def table_name(self, table: str) -> str:  # noqa: ARG002  # it takes both
        """Return the name of the function."""
        return f"function {getattr(self._each_batch, '__qualname__', type(self._each_batch).__qualname__)}"

    def _deliver(
        self,
        batch: notes.BegunBatch,
        events: DataFrame,
        quarantine: DataFrame,
        counts: notes.BatchCounts,  # noqa: ARG002  # they are exact, as the rows are kept
    ) -> None:
        try:
            self._each_batch(EventBatch(batch.number, events, quarantine, batch.offsets))
        except Exception as error:
            raise PipelineFailed(
                f"the function that was called with batch {batch.number}, "
                f"{notes.format_ranges(batch.offsets)}, raised {type(error).__name__}: {error}. "
                "The next start calls it with this batch again"
            ) from error


class TopicLanding(_Delivery):
    """The batches of topics: a topic for events, one for other records, and the topics of ``routes``."""

    kind = "kafka"

    def __init__(
        self,
        store: Store,
        topic: str,
        routes: Mapping[str, str],
        *,
        mode: ContentMode,
        producer: Mapping[str, str],
    ) -> None:
        super().__init__(store, routes)
        self._topics = dict(zip((notes.EVENTS, notes.QUARANTINE), notes.topic_names(topic), strict=True))
        self._mode = mode
        self._producer = dict(producer)

    def table_name(self, table: str) -> str:
        """Return the name of a topic."""
        return self._topics.get(table, table)

    def _deliver(
        self, batch: notes.BegunBatch, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts
    ) -> None:
        found = [self._encode(events, batch.number)] if counts.events else []
        found += [self._quarantined(quarantine, batch.number)] if counts.quarantined else []
        for records in found:
            records.write.format("kafka").options(**self._producer).save()

    def _encode(self, events: DataFrame, number: int) -> DataFrame:
        """Return the records of events, for the topics of their types."""
        from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

        from cloudevents_kafka.spark.encode import encode_events

        own = F.filter("headers", lambda header: ~header["key"].startswith(PREFIX))
        topic = F.lit(self._topics[notes.EVENTS])
        if notes.TABLE in events.columns:
            topic = F.when(events[notes.TABLE] == notes.EVENTS, topic).otherwise(events[notes.TABLE])
        added = _joined(own, _headers(number, {name: F.col(name) for name in _FROM}))
        rows = events.withColumn(_ADDED, added).withColumn("topic", topic).drop("partition")
        records = encode_events(rows, mode=self._mode, keep=[_ADDED])
        return records.withColumn("headers", _joined(records["headers"], records[_ADDED])).drop(_ADDED)

    def _quarantined(self, rows: DataFrame, number: int) -> DataFrame:
        """Return records that are not events, unchanged but for headers that say why."""
        from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

        values = {name: F.col(name) for name in _FROM} | {name: F.col("error")[name] for name in _WHY}
        headers = _joined(F.col("headers"), _headers(number, values))
        return rows.select(
            F.lit(self._topics[notes.QUARANTINE]).alias("topic"), "key", "value", headers.alias("headers")
        )


def _headers(number: int, values: Mapping[str, Column]) -> Column:
    """Return headers with the number of a batch and these values, without those that are null."""
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    def header(name: str, value: Column) -> Column:
        text = value.cast("string").cast("binary").alias("value")
        return F.when(value.isNotNull(), F.struct(F.lit(PREFIX + name).alias("key"), text))

    columns = {"batch": F.lit(str(number)), **values}
    return F.array_compact(F.array(*(header(name, value) for name, value in columns.items())))


def _joined(first: Column, second: Column) -> Column:
    """Return the headers of both lists; the first may be null."""
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    from cloudevents_kafka.spark.schema import HEADERS

    return F.concat(F.coalesce(first, F.array().cast(HEADERS)), second.cast(HEADERS))
