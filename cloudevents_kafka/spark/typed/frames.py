"""`data_as` and `data_by_type`: the payloads of events in a DataFrame by a schema; and that of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import BinaryType, StringType

from cloudevents_kafka.spark._columns import PREFIX, ColumnType, InputColumns, is_text, quote_name
from cloudevents_kafka.spark._patterns import literal, matches_sql, patterns_in
from cloudevents_kafka.spark._workers import with_registry
from cloudevents_kafka.spark.java.reader import fits_sql
from cloudevents_kafka.spark.schema import FROM_JSON, event_schema
from cloudevents_kafka.spark.typed.fetching import SchemaFetcher
from cloudevents_kafka.spark.typed.framed import Writers, header_sql
from cloudevents_kafka.spark.typed.schemas import DataSchema, check_readable, data_schema
from cloudevents_kafka.spark.typed.shape import VALUE
from cloudevents_kafka.spark.typed.worker import payload_checker

ERROR: Final = "data_error"
Schemas = Mapping[str, DataSchema]
"""Schemas by patterns of types; the first pattern that matches decides."""

_SUSPECT: Final = f"{PREFIX}suspect"
_FOUND: Final = f"{PREFIX}found"
_FOUND_TYPE: Final = "STRUCT<payload: BINARY, reason: STRING>"
_INPUT: Final = {
    "type": ColumnType("string", is_text, "pass the result of decode_events"),
    "data": ColumnType(
        "binary", lambda type_: isinstance(type_, BinaryType), "pass the result of decode_events"
    ),
}


def data_as(events: DataFrame, schema: Any, *, rescue: bool = False, registry: Any = None) -> DataFrame:
    """Return the events with two columns more: ``value``, their data by a schema, and ``data_error``.

    ``events`` is a batch or a stream of `decode_events`. ``schema`` is DDL, a `StructType`, JSON Schema or
    Avro (a text, a dict, or the path of a file), a dataclass, a msgspec Struct or a pydantic model. Avro
    needs a session with ``spark-avro``, see `configure_session`.

    ``value`` is a struct. It is null, and ``data_error`` says why and where, if the data is a misfit: it has
    another type, no required member, a member twice, something behind its value, or a number that does not
    fit. Both are null for rows that are not events. Members that the schema does not have are dropped. With
    ``rescue`` these, and members whose value does not fit, are in the text ``value._rescued``: JSON with the
    members by their JSON pointers.

    ``registry`` is the client of a schema registry (confluent's ``SchemaRegistryClient``), its settings or
    its URL, for data of JSON or Avro that its serializers have framed: each id is fetched at this call, and
    data is read by the schema of its writer into ``schema``. GUIDs are in the column ``headers``, which
    `decode_events` keeps with ``keep``. Data of a stream needs a pipeline, or ``foreachBatch``.

    Raises `ValueError` for a schema with a part that has no type of Spark, and names its place.

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
    rows = _check_payloads(events, schemas, _fetch(events, schemas, registry), rescue=rescue)
    value = schemas["*"].value_sql(f"{_FOUND}.payload", rescue=rescue)
    return _with_values(rows, events.columns, f"CASE WHEN `type` IS NOT NULL THEN {value} END")


def data_by_type(
    events: DataFrame, schemas: Mapping[str, Any], *, rescue: bool = False, registry: Any = None
) -> DataFrame:
    """Return the events with the columns of `data_as`, by the schema for the type of each event.

    ``schemas`` maps types, in which ``*`` is any text, to schemas; the first that matches decides. ``value``
    is a struct with a field for each of them, named by it: all are null but one. Data of other types is not
    read: both columns are null.

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
    rows = _check_payloads(events, known, _fetch(events, known, registry), rescue=rescue)
    numbers = _by_type("`type`", {pattern: str(n) for n, pattern in enumerate(known)})
    fields = (
        f"CASE WHEN {PREFIX}n = {n} THEN {schema.value_sql(f'{_FOUND}.payload', rescue=rescue)} END "
        f"AS {quote_name(pattern)}"
        for n, (pattern, schema) in enumerate(known.items())
    )
    rows = rows.selectExpr("*", f"{numbers} AS {PREFIX}n")
    return _with_values(
        rows, events.columns, f"CASE WHEN {PREFIX}n IS NOT NULL THEN struct({', '.join(fields)}) END"
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
    return SchemaFetcher(registry, schemas).fetch(events)


def _with_values(rows: DataFrame, names: list[str], value: str) -> DataFrame:
    reason = f"{_FOUND}.reason"
    return rows.selectExpr(
        *map(quote_name, names),
        f"CASE WHEN {reason} IS NULL THEN {value} END AS {VALUE}",
        f"{reason} AS {ERROR}",
    )


def _check_payloads(rows: DataFrame, schemas: Schemas, writers: Writers | None, *, rescue: bool) -> DataFrame:
    """Add a struct with the payload that Spark reads whole, and the reason why there is none."""
    suspect = suspicion_sql(rows, schemas, "", writers, rescue=rescue)
    frame = "" if writers is None else f", {header_sql(rows.columns)} AS header"
    numbers = _by_type("`type`", {pattern: str(n) for n, pattern in enumerate(schemas)})
    packed = f"CASE WHEN {suspect} THEN to_json(struct({numbers} AS n, `data`{frame})) END AS {_SUSPECT}"
    checker = with_registry(payload_checker(list(schemas.values()), writers, rescue=rescue))
    check: Any = pandas_udf(checker, StringType())  # type: ignore[call-overload]  # pandas has no types
    rows = rows.selectExpr("*", packed).withColumn(_FOUND, check(F.col(_SUSPECT)))
    checked = F.from_json(_FOUND, _FOUND_TYPE, FROM_JSON)
    unread = F.expr("named_struct('payload', `data`, 'reason', CAST(NULL AS STRING))")
    return rows.withColumn(_FOUND, F.when(F.col(_FOUND).isNotNull(), checked).otherwise(unread))


def suspicion_sql(
    rows: DataFrame, schemas: Schemas, event: str, writers: Writers | None = None, *, rescue: bool
) -> str:
    """Return SQL for whether a payload may not fit, or is framed, which Python reads.

    ``event`` is the prefix of the columns of an event.
    """
    shapes = {
        pattern: "false"
        if schema.refused
        else fits_sql(rows, f"{event}`data`", literal(schema.words(rescue=rescue)))
        for pattern, schema in schemas.items()
    }
    if writers is not None:  # JSON does not begin as a frame does, but Avro may
        bare = f"{header_sql(rows.columns)} IS NULL"
        shapes = {
            name: "false" if schemas[name].avro else f"{fits} AND {bare}" for name, fits in shapes.items()
        }
    return f"NOT ({_by_type(f'{event}`type`', shapes, 'true')})"


def refuse_misfits(
    decoded: DataFrame, schemas: Schemas, writers: Writers | None = None, *, rescue: bool
) -> DataFrame:
    """Return rows of `decode_events` in which misfits are errors, and Spark reads all other data whole."""
    if not schemas:
        return decoded
    reason, of_event = f"{_FOUND}.reason", set(event_schema(lenient=True).names)
    error = f"named_struct('verdict', 'broken-data', 'attribute', 'data', 'reason', {reason}, 'clause', NULL)"
    columns = {
        name: f"CASE WHEN {reason} IS NULL THEN {quote_name(name)} END"
        if name in of_event
        else quote_name(name)
        for name in decoded.columns
    }
    columns |= {
        "data": f"{_FOUND}.payload",
        "error": f"CASE WHEN {reason} IS NULL THEN error ELSE {error} END",
    }
    rows = _check_payloads(decoded, schemas, writers, rescue=rescue)
    return rows.selectExpr(*(f"{value} AS {quote_name(name)}" for name, value in columns.items()))


def typed_columns(schemas: Schemas, event: str, *, rescue: bool) -> dict[str, str]:
    """Return SQL for the columns of events whose data is read: it is in `VALUE`, and no longer in ``data``.

    If there are several schemas, each has a column of its own, of which `rows_of_table` selects one.
    """
    type_, data = f"{event}`type`", f"{event}`data`"
    names = _value_names(schemas)
    columns = {
        name: _by_type(
            type_,
            {
                pattern: schema.value_sql(data, rescue=rescue) if each == schema else "NULL"
                for pattern, each in schemas.items()
            },
        )
        for schema, name in names.items()
    }
    kept = ("data", "data_kind") if schemas else ()
    read = dict.fromkeys(schemas, "NULL")
    return {name: _by_type(type_, read, f"{event}`{name}`") for name in kept} | columns


def rows_of_table(rows: DataFrame, table: str, schemas: Schemas, routes: Mapping[str, str]) -> DataFrame:
    """Return the events of a table with the value of its schema, if it has one."""
    found = patterns_in(table, routes, schemas)
    kept = _value_names(schemas)[schemas[found[0]]] if found else None
    others = (name for name in _value_names(schemas).values() if name != kept)
    rows = rows.drop(*others)
    return rows.withColumnRenamed(kept, VALUE) if kept else rows


def _value_names(schemas: Schemas) -> dict[DataSchema, str]:
    distinct = list(dict.fromkeys(schemas.values()))
    return {
        schema: VALUE if len(distinct) == 1 else f"{PREFIX}value_{n}" for n, schema in enumerate(distinct)
    }


def _by_type(type_: str, values: Mapping[str, str], otherwise: str = "NULL") -> str:
    """Return SQL for the value of the first pattern that matches a type."""
    cases = (f"WHEN {matches_sql(type_, pattern)} THEN {value}" for pattern, value in values.items())
    return f"CASE {' '.join(cases)} ELSE {otherwise} END"
