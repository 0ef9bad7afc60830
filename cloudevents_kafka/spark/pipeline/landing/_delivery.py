"""How batches land in topics, or by a function of the user, at least once.

If the process is killed while a batch is written, the next start writes it again, from the same records
under the same number. Each record has headers, in UTF-8, after its own, which say what number and record that
is, and why it is not an event; see docs/how-to/land_with_spark.md. Headers of these names that an event came
with are dropped. Other records keep all headers, and the last of a name is that of this pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline._options import PipelineOptions
from cloudevents_kafka.spark.pipeline._sql import literal
from cloudevents_kafka.spark.pipeline.landing._landing import Landing
from cloudevents_kafka.spark.pipeline.stores import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


class FunctionLanding(Landing):
    """The batches of a function."""

    kind = "function"

    def __init__(self, store: Store, each_batch: EachBatch) -> None:
        super().__init__(store)
        self._each_batch = each_batch

    def table_name(self, table: str) -> str:  # noqa: ARG002  # it takes both
        """Return the name of the function."""
        return f"function {getattr(self._each_batch, '__qualname__', type(self._each_batch).__qualname__)}"

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
            raise PipelineFailed(
                f"the function that was called with batch {batch.number}, "
                f"{notes.format_ranges(batch.offsets)}, raised {type(error).__name__}: {error}. "
                "The next start calls it with this batch again"
            ) from error


class TopicLanding(Landing):
    """The batches of topics: a topic for events, one for other records, and the topics of ``routes``."""

    kind = "kafka"

    def __init__(self, store: Store, options: PipelineOptions) -> None:
        super().__init__(store, options.tables)
        names = notes.topic_names(str(options.table))
        self._topics = dict(zip((notes.EVENTS, notes.QUARANTINE), names, strict=True))
        self._mode = options.mode
        self._producer = options.producer_options()

    def table_name(self, table: str) -> str:
        """Return the name of a topic."""
        return self._topics.get(table, table)

    def write(self, writer: BatchWriter, records: DataFrame, batch: notes.BegunBatch) -> notes.BatchCounts:
        """Write the records of a batch to the topics, and return the counts."""
        return writer.write_kept(records, batch, partial(self._send_all, batch))

    def _send_all(
        self, batch: notes.BegunBatch, events: DataFrame, quarantine: DataFrame, counts: notes.BatchCounts
    ) -> None:
        if counts.events:
            self._send(self._encode(events, batch.number))
        if counts.quarantined:
            self._send(self._quarantined(quarantine, batch.number))

    def _send(self, records: DataFrame) -> None:
        records.write.format("kafka").options(**self._producer).save()

    def _encode(self, events: DataFrame, number: int) -> DataFrame:
        """Return the records of events, for the topics of their types."""
        from pyspark.sql.functions import expr

        from cloudevents_kafka.spark.encode import encode_events

        topic = literal(self._topics[notes.EVENTS])
        if notes.TABLE in events.columns:
            is_common = f"{notes.TABLE} = {literal(notes.EVENTS)}"
            topic = f"CASE WHEN {is_common} THEN {topic} ELSE {notes.TABLE} END"
        own = f"filter(`headers`, header -> NOT startswith(header.key, '{PREFIX}'))"
        added = _joined(own, _headers(number, {name: f"`{name}`" for name in _FROM}))
        rows = events.withColumns({_ADDED: expr(added), "topic": expr(topic)}).drop("partition")
        records = encode_events(rows, mode=self._mode, keep=[_ADDED])
        return records.withColumn("headers", expr(_joined("`headers`", _ADDED))).drop(_ADDED)

    def _quarantined(self, rows: DataFrame, number: int) -> DataFrame:
        """Return records that are not events, unchanged but for headers that say why."""
        topic = literal(self._topics[notes.QUARANTINE])
        values = {name: f"`{name}`" for name in _FROM} | {name: f"error.`{name}`" for name in _WHY}
        headers = _joined("`headers`", _headers(number, values))
        return rows.selectExpr(f"{topic} AS `topic`", "`key`", "`value`", f"{headers} AS `headers`")


def _headers(number: int, values: Mapping[str, str]) -> str:
    """Return SQL for headers with the number of a batch and these values, without those that are null."""
    headers = (
        f"CASE WHEN {value} IS NOT NULL THEN "
        f"named_struct('key', '{PREFIX}{name}', 'value', CAST(CAST({value} AS STRING) AS BINARY)) END"
        for name, value in {"batch": f"'{number}'", **values}.items()
    )
    return f"array_compact(array({', '.join(headers)}))"


def _joined(first: str, second: str) -> str:
    """Return SQL for the headers of both lists; the first may be null."""
    from cloudevents_kafka.spark.schema import HEADERS

    type_ = HEADERS.simpleString()
    return f"concat(coalesce({first}, CAST(array() AS {type_})), CAST({second} AS {type_}))"
