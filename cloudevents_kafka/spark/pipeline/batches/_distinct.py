"""Removes duplicates: events whose source and id are in the table, or in an earlier record of the batch.

These rules hold for events with the same source and id. Of the events of a batch that have the same source
and id, at most one lands. If the timestamps of two events with the same source and id differ by at most
``within`` seconds, at most one of the two events lands. If an event does not land, it is counted, and the
table has a row with the same source and id.

No event is too late to land, because Spark's watermark is not used. With a watermark, a single timestamp in
the far future would make Spark drop all later events with earlier timestamps. Records that are not events are
neither compared nor removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

from cloudevents_kafka.spark._names import PREFIX
from cloudevents_kafka.spark.pipeline.batches._batch import KeptBatch, kept_rows
from cloudevents_kafka.spark.pipeline.batches._batch_rows import count_now, event_counts

_PLACE: Final = ("topic", "partition", "offset")
_EVENT: Final = ("source", "id")
_DATE: Final = "record_date"
# Microseconds from 1970 to 9999, the range of the dates of rows. A record may have any timestamp, or none.
_INSTANT: Final = "coalesce(least(greatest(unix_micros(`timestamp`), 0L), 253402300799999999L), 0L)"
_MOST_DATES: Final = 100  # if there are more dates, the rows of all dates are read


@contextmanager
def without_duplicates(batch: KeptBatch, table: DataFrame | None, within: int) -> Iterator[KeptBatch]:
    """Yield a batch without duplicates.

    ``table`` contains the rows that have landed. ``within`` is the largest difference, in seconds, between
    the timestamps of duplicates.
    """
    names = [f"`{name}`" for name in (*_EVENT, *_PLACE, "timestamp", _DATE)]
    new = _new(batch.events.select(*names), table, within).count()
    if new == batch.counts.events:
        yield batch
        return
    with kept_rows(_new(batch.events, table, within)) as events:
        found = event_counts(count_now(events, batch.rows.counting()))
        counts = replace(batch.counts, duplicates=batch.counts.events - new, **found)
        yield batch._replace(events=events, counts=counts)


def _new(events: DataFrame, table: DataFrame | None, within: int) -> DataFrame:
    """Return the events that are not in the table yet.

    If several events have the same source and id, return only the first of these events.
    """
    rows = events if table is None else _not_landed(events, table, within)
    first = Window.partitionBy(*_EVENT).orderBy(*(f"`{name}`" for name in _PLACE))
    numbered = rows.withColumn(f"{PREFIX}number", F.row_number().over(first))
    return numbered.where(f"{PREFIX}number = 1").drop(f"{PREFIX}number")


def _not_landed(events: DataFrame, table: DataFrame, within: int) -> DataFrame:
    """Return the events that have not landed.

    An event has landed if a row has the same source and id, and the two timestamps differ by at most
    ``within`` seconds.
    """
    days = -(-within // 86_400)
    dates = [row[_DATE] for row in events.select(_DATE).distinct().limit(_MOST_DATES + 1).collect()]
    near = [
        f"{_DATE} BETWEEN date_sub(DATE'{day}', {days}) AND date_add(DATE'{day}', {days})" for day in dates
    ]
    if 0 < len(near) <= _MOST_DATES:  # otherwise all days are read
        table = table.where(" OR ".join(near))
    names = {name: f"{PREFIX}{name}" for name in _EVENT}
    landed = table.selectExpr(
        *(f"{name} AS `{other}`" for name, other in names.items()), f"{_INSTANT} AS `{PREFIX}landed`"
    )
    is_near = f"abs({_INSTANT} - `{PREFIX}landed`) <= {within * 1_000_000}L"
    same = [f"{name} = `{other}`" for name, other in names.items()]
    return events.join(landed, F.expr(" AND ".join((*same, is_near))), "left_anti")
