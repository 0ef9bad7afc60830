"""`deduplicate` drops repeated events from a batch or a stream."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

from cloudevents_kafka.primitives.spans import parse_span
from cloudevents_kafka.spark._names import PREFIX

_EVENT: Final = ("source", "id")
_BROKEN: Final = f"{PREFIX}broken"
_READ: Final = f"{PREFIX}read"


def deduplicate(events: DataFrame, *, within: str = "1h") -> DataFrame:
    """Return events without duplicates, so that each combination of ``source`` and ``id`` has one row.

    ``events`` is a batch or a stream with these two columns, such as the result of `decode_events`. Rows with
    a null in ``source`` or ``id``, such as records that are not events, stay unchanged.

    In a stream, a row is a duplicate if Spark has already read a row with the same source and id, and the
    time between the two rows is at most ``within``. ``within`` is a span such as "90m", "1h" or "7 days".
    Spark's state contains the keys of all rows that Spark has read during the span ``within``. The time of a
    row is the time of the batch in which Spark reads the row. So a wrong timestamp of a producer cannot move
    the watermark, and no row is late. In a batch, all rows are compared, and ``within`` has no effect.

    ``query.lastProgress`` contains the number of dropped rows: ``numDroppedDuplicateRows`` in the
    ``customMetrics`` of ``stateOperators``. The option ``deduplicate`` of the pipeline works in another way:
    the pipeline compares events with the rows in their table, and needs no state.

    Raises `ValueError` for a span that is not a number with a unit, and for columns that are missing.

    Examples:
        >>> from cloudevents_kafka.spark import deduplicate
        >>> columns = "source string, id string, offset long"
        >>> rows = [("/orders", "1", 0), ("/orders", "1", 1), (None, None, 2), (None, None, 3)]
        >>> deduplicate(spark.createDataFrame(rows, columns)).count()
        3
    """
    seconds = parse_span(within, "within")
    if missing := [name for name in _EVENT if name not in events.columns]:
        raise ValueError(
            f"deduplicate: events must have the columns source and id, got no {' and no '.join(missing)}"
        )
    # A row that is not an event gets a unique key. Otherwise, all these rows would be duplicates.
    broken = F.when(F.col("source").isNull() | F.col("id").isNull(), F.expr("uuid()"))
    keyed, keys = events.withColumn(_BROKEN, broken), [*_EVENT, _BROKEN]
    if not events.isStreaming:
        return keyed.dropDuplicates(keys).drop(_BROKEN)
    timed = keyed.withColumn(_READ, F.current_timestamp()).withWatermark(_READ, f"{seconds} seconds")
    return timed.dropDuplicatesWithinWatermark(keys).drop(_BROKEN, _READ)
