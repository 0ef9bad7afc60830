"""The function in Java: given to any session, and done without where that cannot be."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from ..records import BASE, binary, structured
from ..rows import expected, read_back, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = [binary(BASE), structured(BASE), binary({**BASE, "id": ""})]


def _plan(df: DataFrame) -> str:
    execution: Any = df._jdf.queryExecution()
    text: str = execution.executedPlan().toString()
    return text


def _is_read(df: DataFrame) -> bool:
    read = read_back(df)
    return [read[offset] for offset in range(len(RECORDS))] == [expected(record) for record in RECORDS]


def test_every_session_of_a_spark_gets_it(spark: SparkSession) -> None:
    """A session that was made from another one has settings of its own, and reads by Java as well."""
    from cloudevents_kafka.spark import decode_events

    for session in (spark, spark.newSession(), spark.newSession()):
        session.conf.set("spark.sql.session.timeZone", "UTC")
        events = decode_events(rows_of(session, RECORDS), keep=["offset"])
        assert "cloudevents_kafka.spark.Functions$Read" in _plan(events)
        assert _is_read(events)


def test_it_is_compiled_once_for_a_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who decodes a second DataFrame does not wait for the compiler again."""
    from cloudevents_kafka.spark.fast import java_reader

    assert java_reader.reader_sql(rows_of(spark, RECORDS)) is not None
    monkeypatch.setattr(java_reader, "_add_classes", None)
    assert java_reader.reader_sql(rows_of(spark, RECORDS)) is not None


def _refused(_: object) -> dict[str, bytes]:
    from py4j.protocol import Py4JError

    raise Py4JError("Constructor is not whitelisted")


def test_each_row_is_read_by_the_names_that_come_with_it(spark: SparkSession) -> None:
    """Queries that were made before and after a registration run in one JVM, turn by turn."""
    from cloudevents_kafka.spark.fast import java_reader

    assert java_reader.reader_sql(rows_of(spark, RECORDS)) is not None
    rows = rows_of(spark, [binary({**BASE, "comexampleext5": "text"})] * 200)
    rows = rows.selectExpr("offset % 40 AS n", "value", "headers")
    names = "concat('other,comexampleext', n)"
    read = f"cloudevents_kafka.read(value, headers, {names}, 'id') IS NOT NULL AS sure"
    sure = {(row.n, row.sure) for row in rows.selectExpr("n", read).collect()}
    assert sure == {(n, n != 5) for n in range(40)}


@pytest.mark.parametrize(
    ("classes", "reason"),
    [
        pytest.param(_refused, "not whitelisted", id="compiler refused"),
        pytest.param(lambda _: {}, "cloudevents_kafka.spark.Lost", id="jar taken, classes not found"),
    ],
)
def test_where_no_class_can_be_added_columns_read(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    classes: Callable[[object], dict[str, bytes]],
    reason: str,
) -> None:
    """A cluster may refuse: the log says why it is slower now, and the events are the same."""
    from cloudevents_kafka.spark import decode_events
    from cloudevents_kafka.spark.fast import java_reader

    monkeypatch.setattr(java_reader, "_compile", classes)
    monkeypatch.setattr(java_reader, "_CATALOG_CLASS", "cloudevents_kafka.spark.Lost")
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    with caplog.at_level(logging.WARNING, "cloudevents_kafka"):
        events = decode_events(rows_of(session, RECORDS), keep=["offset"])
    assert "Functions$Read" not in _plan(events)
    assert _is_read(events)
    (said,) = caplog.messages
    assert "column expressions" in said
    assert reason in said


def test_a_data_frame_of_spark_connect_is_read_by_columns() -> None:
    """Its client has no Java to compile with, and asks for none."""
    from cloudevents_kafka.spark.fast import java_reader

    assert java_reader.reader_sql(object()) is None  # type: ignore[arg-type]  # stands for any that is not classic


def test_the_catalog_says_what_it_has(spark: SparkSession) -> None:
    """Who looks for the functions, or misspells one, is told by Spark itself."""
    from pyspark.errors import AnalysisException

    from cloudevents_kafka.spark.fast import java_reader

    assert java_reader.reader_sql(rows_of(spark, RECORDS)) is not None
    listed = spark.sql("SHOW USER FUNCTIONS IN cloudevents_kafka").collect()
    ours = {row[0] for row in listed if "." in row[0]}  # the session's own functions are listed, too
    assert ours == {"cloudevents_kafka.either", "cloudevents_kafka.read"}
    with pytest.raises(AnalysisException, match="reed"):
        spark.sql("SELECT cloudevents_kafka.reed(1)")
