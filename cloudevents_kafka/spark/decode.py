"""`decode_events` and `cloudevent` convert the columns of Spark's Kafka source to the columns of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import BinaryType, StringType, StructField

from cloudevents_kafka.spark._columns import ColumnType, InputColumns, internal, is_headers
from cloudevents_kafka.spark._names import PREFIX, quote_name
from cloudevents_kafka.spark._workers import with_registry
from cloudevents_kafka.spark.java.reader import coalesce_sql, reader_sql
from cloudevents_kafka.spark.schema import FROM_JSON, HEADERS, KEPT_COLUMNS, event_schema, wire_schema
from cloudevents_kafka.spark.udf import decode_batch, decode_batch_leniently

_TYPES: Final = {
    "value": ColumnType(
        "binary",
        lambda data_type: isinstance(data_type, BinaryType),
        "cast it to binary (Parquet that is read with spark.sql.parquet.binaryAsString has text)",
    ),
    "headers": ColumnType(
        HEADERS.simpleString(),
        is_headers,
        "set the option includeHeaders of Kafka's source, or convert it to this type",
    ),
}
_HINTS: Final = {"headers": "set the option includeHeaders of the Kafka source to true"}


def decode_events(df: DataFrame, *, keep: Sequence[str] | None = None, lenient: bool = False) -> DataFrame:
    """Return a DataFrame of events, with one row for each row of Spark's Kafka source.

    ``df`` is a batch or a stream with the columns ``value`` and ``headers`` (option ``includeHeaders``). The
    result has the columns of `event_schema`, followed by the columns of ``df`` that ``keep`` names. By
    default, ``keep`` names the columns in `KEPT_COLUMNS` that ``df`` has. A row that is not an event has
    nulls in the columns of the event, and an ``error``; no row makes the job fail. Headers that are null or
    have no name are ignored.

    With ``lenient``, deviations of known producers are accepted, such as JSON without a content-type. The
    function `cloudevents_kafka.decode` accepts the same deviations with ``lenient=True``. With ``lenient``,
    the resulting DataFrame also has the column ``tolerated`` of `event_schema`, before the kept columns. The
    column ``tolerated`` lists the accepted deviations of a row; the column is null if the row has no
    deviation or is not an event.

    Each row has the same values, or the same error, as the result of `cloudevents_kafka.decode`. There is one
    exception: in Spark, the name of an extension may have at most 50,000 characters. If an extension has a
    longer name, the event is a ``broken-event``. Inside Spark, a Java function reads valid events in binary
    mode and in JSON. In Python workers, `decode` reads all rows that the Java function cannot read. The
    workers need this package if there is at least one such row (see ``cloudevents-kafka spark-zip``). Python
    workers read these rows:

    * records that are not valid events, because only the Python code contains the error messages;
    * events in other formats, and events in JSON if a user has registered another format with the name json;
    * JSON with data in a charset other than UTF-8 and US-ASCII, because Python contains the codecs;
    * events with an extension whose registration contains a user's function to check values;
    * with ``lenient``, events with deviations that no producer in ``spec-conformance/lenient.md`` has, such
      as headers that contradict each other.

    The ``time`` of an event may be an instant that Spark can represent but that Python's datetime cannot
    represent. An example is ``0001-01-01T00:00:00+14:00``, which is in the year 0 in UTC. If ``time`` has
    such a value, ``collect()`` raises `ValueError`. So select ``time_text`` instead of ``time``, or filter
    with ``year(time) between 1 and 9999``, before you collect rows.

    Filters on kept columns run before rows are decoded. If the source supports filters on kept columns, these
    filters run in the source. A query that only counts rows does not decode rows. A query that selects only
    kept columns does not decode rows either. A filter on event columns runs after the rows are decoded, and
    each row is decoded only once. A query that selects some event columns decodes all event columns. In a
    query that selects event columns, all rows pass through the Python step of the plan. If Java has decoded a
    row, the Python step receives a null instead of the row.

    If the session cannot use Java classes, `decode` reads all records in Python workers. A warning about the
    missing Java function is logged once. With Spark Connect, the jar of the Java function is sent to the
    server. If the setting ``spark.sql.catalog.cloudevents_kafka.jar`` is the path of a jar, that jar is sent
    instead; see ``cloudevents-kafka spark-jar``.

    Raises `ValueError` before any job runs; the error lists all problems. A column is a problem if it is
    missing, has a wrong type, or has the same name as another column. A name in ``keep`` is a problem if
    ``df`` has no column with this name, or if an event column has this name.

    Examples:
        >>> from cloudevents_kafka.spark import decode_events
        >>> options = {"kafka.bootstrap.servers": "localhost:9092", "includeHeaders": "true"}
        >>> rows = spark.read.format("kafka").options(**options, subscribe="orders").load()
        >>> events = rows.transform(decode_events)
        >>> events.where("error is null").select("id", "type", "mode").orderBy("id").first()
        Row(id='1', type='order.placed', mode='binary')
    """
    fields, kept = _checked(df, keep, lenient=lenient)
    df, names = _select_records(df, fields, kept)
    outer = [
        f"{quote_name(inner)} AS {quote_name(name)}" if inner != name else quote_name(name)
        for name, inner in names.items()
    ]
    sql = reader_sql(df, lenient=lenient)
    inner = list(names.values())
    if sql is None:
        return _decode_in_python(df, inner, outer, lenient=lenient)
    return _decode_in_java(df, sql, inner, outer, lenient=lenient)


def _decode_in_java(
    df: DataFrame, sql: str, kept: Sequence[str], outer: Sequence[str], *, lenient: bool
) -> DataFrame:
    """Return a DataFrame that has a column for each field of an event.

    Until the last step, each event is one struct, and Spark copies the complete struct.
    """
    df = _read_in_java(df, sql, kept).withColumn(PREFIX + "decoded", _decoded(lenient=lenient))
    event = f"{coalesce_sql(PREFIX + 'read', PREFIX + 'decoded', lenient=lenient)} AS {PREFIX}event"
    df = _decode_once(df.selectExpr(event, *map(quote_name, kept)), "event", kept)
    return df.selectExpr(f"{PREFIX}event.*", *outer)


def _decode_once(df: DataFrame, name: str, kept: Sequence[str]) -> DataFrame:
    """Make Spark compute a column before it runs filters on this column, and return the rows.

    Without this step, Spark's optimizer would copy the computation of the column into the filter, and decode
    each row twice. A function that is declared as not deterministic would prevent this copy. But filters on
    kept columns would then also run after the function. Spark runs ``unpivot`` of one column as its Expand
    operator, which stores the column under a new name. Filters on other columns run before this operator, and
    the column is not computed if it is not used.
    """
    value = PREFIX + name
    columns: list[Column | str] = [F.col(quote_name(column)) for column in kept]
    return df.unpivot(columns, [F.col(value)], PREFIX + "name", value)


def _read_in_java(df: DataFrame, sql: str, kept: Sequence[str]) -> DataFrame:
    """Add two columns: events that Java has read are in ``read``, all other records are in ``packed``.

    In each row, one of the two columns is null.
    """
    record = (f"`{name}` AS {PREFIX}{name}" for name in ("value", "headers"))
    df = df.selectExpr(f"{sql} AS {PREFIX}read", *record, *map(quote_name, kept))
    read = internal("read")
    packed = F.when(read.isNull(), _packed(internal("value"), internal("headers"))).alias(PREFIX + "packed")
    return df.select(read, packed, *map(quote_name, kept))


def _decode_in_python(
    df: DataFrame, kept: Sequence[str], outer: Sequence[str], *, lenient: bool
) -> DataFrame:
    packed = _packed(F.col("value"), F.col("headers")).alias(PREFIX + "packed")
    df = df.select(packed, *map(quote_name, kept)).withColumn(PREFIX + "decoded", _decoded(lenient=lenient))
    df = _decode_once(df, "decoded", kept)
    return df.selectExpr(*map(_decoded_field, event_schema(lenient=lenient).names), *outer)


def _decoded_field(name: str) -> str:
    field = f"{PREFIX}decoded.{quote_name(name)}"  # some of these names are reserved words of ANSI SQL
    return f"{f'timestamp_micros({field})' if name == 'time' else field} AS {quote_name(name)}"


def cloudevent(value: Column, headers: Column, *, lenient: bool = False) -> Column:
    """Return a struct of `event_schema` with the event of a record, or with the ``error`` of the record.

    ``lenient`` means the same as in `decode_events`.

    `decode` reads every row in a Python worker. The expression takes about ten times as long as
    `decode_events`, because a single column expression cannot contain the Java function of `decode_events`.

    Examples:
        >>> from cloudevents_kafka.spark import cloudevent
        >>> columns = "value binary, headers array<struct<key string, value binary>>"
        >>> rows = spark.createDataFrame([(b"17", [])], columns)
        >>> event = cloudevent(rows.value, rows.headers).alias("event")
        >>> rows.select(event).select("event.error.verdict").first()
        Row(verdict='not-an-event')
    """
    # Texts become bytes, and fields are found by name: Spark refuses headers with other fields at once.
    named = F.transform(headers, lambda header: F.struct(*_header(header)))
    udf = decode_udf(lenient=lenient)
    decoded = _unpacked(udf(_packed(value.cast("binary"), named)), lenient=lenient)
    fields = {name: decoded[name] for name in event_schema(lenient=lenient).names}
    fields["time"] = F.timestamp_micros(fields["time"])
    return F.struct(*(field.alias(name) for name, field in fields.items()))


def _header(header: Column) -> tuple[Column, Column]:
    return header["key"].cast("string").alias("key"), header["value"].cast("binary").alias("value")


def _checked(
    df: DataFrame, keep: Sequence[str] | None, *, lenient: bool
) -> tuple[list[StructField], list[str]]:
    """Return the columns of a record, and the names of the columns to keep.

    Raises `ValueError` if there are problems with the columns.
    """
    columns = InputColumns(df)
    fields = [columns.require(name, type_) for name, type_ in _TYPES.items()]
    kept = (
        [name for name in KEPT_COLUMNS if columns.find(name)]
        if keep is None
        else _checked_keep(columns, keep, event_schema(lenient=lenient).names)
    )
    columns.raise_problems("decode_events", _HINTS)
    return [field for field in fields if field is not None], kept


def _checked_keep(columns: InputColumns, keep: Sequence[str], of_event: Sequence[str]) -> list[str]:
    if isinstance(keep, str):
        columns.report(f"keep must be a list of names, got a text: use keep=[{keep!r}]")
        return []
    values = list(keep)
    names = [name for name in values if isinstance(name, str)]
    if len(names) < len(values):
        columns.report("keep must be a list of names, got values that are not texts")
    for name in names:
        columns.require(name)
    folded = [columns.fold(name) for name in names]
    if repeated := [name for n, name in enumerate(names) if folded[n] in folded[:n]]:
        columns.report(f"keep contains {', '.join(repeated)} twice")
    event_names = set(map(columns.fold, of_event))
    if clashing := [name for name in names if columns.fold(name) in event_names]:
        columns.report(
            f"keep contains {', '.join(clashing)}, which is a column of the event: rename it first"
        )
    return names


def _select_records(
    df: DataFrame, fields: Sequence[StructField], kept: Sequence[str]
) -> tuple[DataFrame, dict[str, str]]:
    """Return ``value``, ``headers`` and the kept columns, and a dict from their old to their new names.

    A kept column gets a new name if its old name is an internal name.
    """
    reserved = ("value", "headers")
    names = {
        name: f"{PREFIX}kept_{n}" if name.lower() in reserved or name.lower().startswith(PREFIX) else name
        for n, name in enumerate(kept)
    }
    value, headers = (F.col(quote_name(field.name)) for field in fields)
    value = value.cast(BinaryType()) if not isinstance(fields[0].dataType, BinaryType) else value
    if fields[1].dataType.simpleString() != HEADERS.simpleString():  # a type of another collation, or void
        headers = headers.cast(HEADERS)
    others = (
        F.col(quote_name(name)).alias(inner) if inner != name else quote_name(name)
        for name, inner in names.items()
    )
    return df.select(value.alias("value"), headers.alias("headers"), *others), names


def _packed(value: Column, headers: Column) -> Column:
    """Return a record as one text for `decode_packed`; bytes are changed to base64."""
    return F.to_json(F.struct(value.alias("value"), headers.alias("headers")))


def _unpacked(text: Column, *, lenient: bool) -> Column:
    return F.from_json(text, wire_schema(lenient=lenient), FROM_JSON)


def decode_udf(*, lenient: bool) -> Any:
    """Return `decode_batch` as an Arrow UDF, with the extensions and formats that are registered now."""
    decode = decode_batch_leniently if lenient else decode_batch
    return pandas_udf(with_registry(decode), StringType())  # type: ignore[call-overload]  # pandas has no types


def _decoded(*, lenient: bool) -> Column:
    """Return the events of packed records; rows without a packed record are passed to Python as nulls."""
    packed = internal("packed")
    # Spark computes ``packed`` before the rows go to Python, because the column is used twice. So Spark does
    # not send the headers to Python.
    return F.when(packed.isNotNull(), _unpacked(decode_udf(lenient=lenient)(packed), lenient=lenient))
