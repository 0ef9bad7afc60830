"""`data_as` and `data_by_type` use schemas to read the payloads of events in a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType

from cloudevents_kafka.spark._columns import ColumnType, InputColumns, is_text
from cloudevents_kafka.spark._names import PREFIX, quote_name
from cloudevents_kafka.spark._patterns import patterns_in
from cloudevents_kafka.spark.schema import event_schema
from cloudevents_kafka.spark.typed.fetching import SchemaFetcher
from cloudevents_kafka.spark.typed.framed import Writers
from cloudevents_kafka.spark.typed.schemas import check_readable, data_schema
from cloudevents_kafka.spark.typed.shape import VALUE
from cloudevents_kafka.spark.typed.values import FOUND, Schemas, by_type, decide_values, value_names

ERROR: Final = "data_error"
_PATTERN: Final = f"{PREFIX}pattern"
_INPUT: Final = {
    "type": ColumnType("string", is_text, "pass the result of decode_events"),
    "data": ColumnType(
        "binary", lambda type_: isinstance(type_, BinaryType), "pass the result of decode_events"
    ),
}


def data_as(events: DataFrame, schema: Any, *, rescue: bool = False, registry: Any = None) -> DataFrame:
    """Return the events with two more columns: ``value`` (the data as a struct) and ``data_error``.

    ``events`` is a batch or a stream that `decode_events` has returned. ``schema`` is DDL, a `StructType`, a
    dataclass, a msgspec Struct, a pydantic model, or a schema in JSON Schema or Avro (as a text, a dict, or
    the path of a file). A schema in Avro needs a session with ``spark-avro``: see `configure_session`.

    If the data does not fit the schema, ``value`` is null, and ``data_error`` says why the data does not fit,
    and in which part. Data does not fit if it has a wrong type, a required member is missing, a member occurs
    twice, bytes follow the value, or a number does not fit its type. Both columns ``value`` and
    ``data_error`` are null for rows that are not events. Members of the data that the schema does not have
    are dropped. If ``rescue`` is true, the text ``value._rescued`` contains the members that the schema does
    not have, and the members whose values do not fit. The text ``value._rescued`` is a JSON object, whose
    names are the JSON pointers of the members. Avro data has no members to rescue, so ``value`` has no field
    ``_rescued`` for Avro.

    ``registry`` is for JSON or Avro data that serializers of a schema registry have framed (written with the
    id of the schema). The id of the schema is in front of the framed data, or in a header of the record.
    ``registry`` is the client of the registry (confluent-kafka's ``SchemaRegistryClient``), the settings of
    such a client, or the URL of the registry. The registry's schemas for all ids in ``events`` are fetched
    during this call. Framed data is read with the schema of its writer, and converted to ``schema``. If the
    ids of schemas are GUIDs in headers, the DataFrame needs the column ``headers``: add ``headers`` to
    ``keep`` of `decode_events`. For framed data in a stream, use a pipeline or ``foreachBatch``.

    Raises `ValueError` if a part of the schema has no type in Spark; the error names this part.

    Examples:
        >>> from cloudevents_kafka.spark import data_as
        >>> columns = "type string, data binary"
        >>> events = spark.createDataFrame([("order.placed", b'{"total": 17}'), ("x", b"{}")], columns)
        >>> for row in data_as(events, "total BIGINT NOT NULL").select("value.total", "data_error").collect():
        ...     print(row.total, row.data_error)
        17 None
        None data: /total must be there, got no such member
    """
    schemas = {"*": data_schema(schema)}
    _check(events, "data_as", schemas)
    rows = decide_values(events, schemas, _fetch(events, schemas, registry), rescue=rescue)
    (value,) = value_names(schemas).values()
    return _with_result(rows, events.columns, value)


def data_by_type(
    events: DataFrame, schemas: Mapping[str, Any], *, rescue: bool = False, registry: Any = None
) -> DataFrame:
    """Return the events with the columns of `data_as`; the type of an event selects the schema of the data.

    ``schemas`` maps patterns of types to schemas; in a pattern, ``*`` stands for any text. The first pattern
    that matches the type of an event selects the schema of the event's data. The column ``value`` is a struct
    with one field for each pattern. The name of such a field is the pattern, and at most one field of the
    struct is not null. If no pattern matches the type of an event, the data is not read, and both columns
    ``value`` and ``data_error`` are null.

    Examples:
        >>> from cloudevents_kafka.spark import data_by_type
        >>> columns = "type string, data binary"
        >>> events = spark.createDataFrame([("order.placed", b'{"total": 17}')], columns)
        >>> rows = data_by_type(events, {"order.placed": "total BIGINT"})
        >>> rows.select("value.`order.placed`.total").first()
        Row(total=17)
    """
    known = {pattern: data_schema(schema) for pattern, schema in schemas.items()}
    if not known:
        raise ValueError("schemas must have one type or more, got none")
    _check(events, "data_by_type", known)
    rows = decide_values(events, known, _fetch(events, known, registry), rescue=rescue)
    numbers = by_type("`type`", {pattern: str(n) for n, pattern in enumerate(known)})
    names = value_names(known)
    fields = (
        f"CASE WHEN {_PATTERN} = {n} THEN {names[schema]} END AS {quote_name(pattern)}"
        for n, (pattern, schema) in enumerate(known.items())
    )
    rows = rows.selectExpr("*", f"{numbers} AS {_PATTERN}")
    return _with_result(
        rows, events.columns, f"CASE WHEN {_PATTERN} IS NOT NULL THEN struct({', '.join(fields)}) END"
    )


def _check(events: DataFrame, function: str, schemas: Schemas) -> None:
    columns = InputColumns(events)
    for name, type_ in _INPUT.items():
        columns.require(name, type_)
    for name in (VALUE, ERROR):
        if columns.find(name):
            columns.report(f"the DataFrame must not have the column {name}: rename or drop it")
    columns.raise_problems(function, {})
    for schema in schemas.values():
        check_readable(events.sparkSession, schema)


def _fetch(events: DataFrame, schemas: Schemas, registry: Any) -> Writers | None:
    if registry is None:
        return None
    if events.isStreaming:
        raise ValueError("registry must be None for a stream: use a pipeline, or foreachBatch")
    fetcher = SchemaFetcher(registry, schemas)
    try:
        return fetcher.fetch(events)
    finally:
        fetcher.end()


def _with_result(rows: DataFrame, names: list[str], value: str) -> DataFrame:
    reason = f"{FOUND}.reason"
    return rows.selectExpr(
        *map(quote_name, names),
        f"CASE WHEN {reason} IS NULL THEN {value} END AS {VALUE}",
        f"{reason} AS {ERROR}",
    )


def refuse_misfits(
    decoded: DataFrame,
    schemas: Schemas,
    writers: Writers | None = None,
    *,
    rescue: bool,
    unread: str | None = None,
) -> DataFrame:
    """Return the rows of ``decoded`` with the values of their data, or with an error if data does not fit.

    ``unread`` is an SQL condition. If this condition is true for an event, the data of the event is not read,
    even if there is a schema for the event's type.
    """
    if not schemas:
        return decoded
    reason, of_event = f"{FOUND}.reason", set(event_schema(lenient=True).names)
    error = f"named_struct('verdict', 'broken-data', 'attribute', 'data', 'reason', {reason}, 'clause', NULL)"
    columns = {
        name: f"CASE WHEN {reason} IS NULL THEN {quote_name(name)} END"
        if name in of_event
        else quote_name(name)
        for name in decoded.columns
    }
    columns |= {
        "data": f"CASE WHEN {reason} IS NULL THEN {FOUND}.payload END",
        "error": f"CASE WHEN {reason} IS NULL THEN error ELSE {error} END",
    }
    rows = decide_values(decoded, schemas, writers, rescue=rescue, unread=unread)
    selected = (f"{value} AS {quote_name(name)}" for name, value in columns.items())
    return rows.selectExpr(*selected, *value_names(schemas).values())


def typed_columns(schemas: Schemas, event: str) -> dict[str, str]:
    """Return SQL for the columns ``data``, ``data_kind`` and `VALUE` of events that may have a value.

    The rows must have the columns of `value_names`. If the pipeline has several schemas, each schema has a
    separate column instead of `VALUE`, and `rows_of_table` selects one of these columns. The column ``data``
    is null for events whose data was read.
    """
    names = value_names(schemas)
    if not schemas:
        return {}
    unread = " AND ".join(f"{name} IS NULL" for name in names.values())
    kept = {name: f"CASE WHEN {unread} THEN {event}`{name}` END" for name in ("data", "data_kind")}
    return kept | {_table_name(name, schemas): name for name in names.values()}


def rows_of_table(rows: DataFrame, table: str, schemas: Schemas, routes: Mapping[str, str]) -> DataFrame:
    """Return the events that belong to a table.

    If the table has a schema, the result contains the column of values for this schema.
    """
    found = patterns_in(table, routes, schemas)
    names = {schema: _table_name(name, schemas) for schema, name in value_names(schemas).items()}
    kept = names[schemas[found[0]]] if found else None
    others = (name for name in names.values() if name != kept)
    rows = rows.drop(*others)
    return rows.withColumnRenamed(kept, VALUE) if kept else rows


def _table_name(name: str, schemas: Schemas) -> str:
    """Return the name that the column of values has in the tables of the pipeline.

    If the pipeline has only one schema, the name of this column is `VALUE`.
    """
    return VALUE if len(value_names(schemas)) == 1 else name
