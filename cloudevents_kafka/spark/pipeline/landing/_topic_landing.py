"""How batches land in topics at least once, with the headers by which a reader drops repeated records.

If the process is killed while a batch is written, the next start writes it again, from the same records
under the same number. Each record has these headers, in UTF-8, after its own:

* ``pipeline-batch``: the number of the batch in this pipeline;
* ``pipeline-topic``, ``pipeline-partition``, ``pipeline-offset``: the record that was read. Two records
  with the same values of these headers are the same;
* ``pipeline-verdict``, ``pipeline-reason``, ``pipeline-clause``: why it is not an event, if so.

Headers of these names that an event came with are dropped. Other records keep all headers, and the last
of a name is that of this pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline.landing._noted_landing import NotedLanding
from cloudevents_kafka.spark.pipeline.stores import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from cloudevents_kafka.spark.pipeline.batches import BatchWriter

PREFIX: Final = "pipeline-"
_FROM: Final = ("topic", "partition", "offset")
_WHY: Final = ("verdict", "reason", "clause")
_ADDED: Final = "added_headers"


class TopicLanding(NotedLanding):
    """The batches of topics: a topic for events, one for other records, and the topics of ``routes``."""

    kind = "kafka"

    def __init__(
        self,
        store: Store,
        manifests: notes.Manifests,
        topic: str,
        routes: Mapping[str, str],
        *,
        mode: ContentMode,
        producer: Mapping[str, str],
    ) -> None:
        super().__init__(store, manifests, routes)
        self._topics = dict(zip((notes.EVENTS, notes.QUARANTINE), notes.topic_names(topic), strict=True))
        self._mode = mode
        self._producer = dict(producer)

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

    def _send(self, records: DataFrame) -> None:
        records.write.format("kafka").options(**self._producer).save()


def _headers(number: int, values: Mapping[str, Column]) -> Column:
    """Return headers with the number of a batch and these values, without those that are null."""
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    columns = {"batch": F.lit(str(number)), **values}
    return F.array_compact(
        F.array(
            *(
                F.when(
                    value.isNotNull(),
                    F.struct(
                        F.lit(PREFIX + name).alias("key"), value.cast("string").cast("binary").alias("value")
                    ),
                )
                for name, value in columns.items()
            )
        )
    )


def _joined(first: Column, second: Column) -> Column:
    """Return the headers of both lists; the first may be null."""
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    from cloudevents_kafka.spark.schema import HEADERS

    return F.concat(F.coalesce(first, F.array().cast(HEADERS)), second.cast(HEADERS))
