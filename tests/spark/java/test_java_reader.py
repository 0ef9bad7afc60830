"""The Java function in local sessions: added to each of them, or replaced by Python."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", minversion="4.0")

from cloudevents_kafka.spark import decode_events
from cloudevents_kafka.spark.java import reader as java_reader
from cloudevents_kafka.spark.java.jar import session_jar
from tests.spark.records import BASE, binary, structured
from tests.spark.rows import expected, read_back, rows_of

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


@pytest.mark.release  # each other test of Java has the function in its session
def test_each_session_gets_the_function(spark: SparkSession) -> None:
    """A session created from another one has its own settings, and gets the Java function too."""
    for session in (spark, spark.newSession(), spark.newSession()):
        session.conf.set("spark.sql.session.timeZone", "UTC")
        events = decode_events(rows_of(session, RECORDS), keep=["offset"])
        assert "cloudevents_kafka.spark.Functions$Read" in _plan(events)
        assert _is_read(events)


def test_the_function_is_added_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session adds the function for its first DataFrame only."""
    assert java_reader.reader_sql(rows_of(spark, RECORDS)) is not None
    monkeypatch.setattr(java_reader, "_add_function", None)
    assert java_reader.reader_sql(rows_of(spark, RECORDS)) is not None


def test_each_row_has_its_own_names(spark: SparkSession) -> None:
    """Queries from before and after a registration of extensions can run in one JVM at the same time."""
    assert java_reader.reader_sql(rows_of(spark, RECORDS)) is not None
    rows = rows_of(spark, [binary({**BASE, "comexampleext5": "text"})] * 200)
    rows = rows.selectExpr("offset % 40 AS n", "value", "headers")
    names = "concat('other,comexampleext', n)"
    read = f"cloudevents_kafka.read(value, headers, {names}, 'id') IS NOT NULL AS read_"
    read_by = {(row.n, row.read_) for row in rows.selectExpr("n", read).collect()}
    assert read_by == {(n, n != 5) for n in range(40)}


def _compiler_refused(_: object) -> Path:
    from py4j.protocol import Py4JError

    raise Py4JError("Constructor is not whitelisted")


@pytest.fixture
def other_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name a class that no jar has, as the session may have the classes from other tests."""
    monkeypatch.setattr(java_reader, "_CATALOG_CLASS", "cloudevents_kafka.spark.Missing")


@pytest.mark.usefixtures("other_class")
@pytest.mark.parametrize(
    ("build", "reason"),
    [
        pytest.param(_compiler_refused, "not whitelisted", id="compiler refused"),
        pytest.param(None, "cloudevents_kafka.spark.Missing", id="jar added, classes missing"),
    ],
)
def test_without_java_classes_python_decodes(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    build: Callable[[object], Path] | None,
    reason: str,
) -> None:
    """A cluster may refuse classes: the events are the same, and one warning says why it is slower."""
    if build is not None:
        monkeypatch.setattr(java_reader, "session_jar", build)
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    with caplog.at_level(logging.WARNING, "cloudevents_kafka"):
        for _ in range(2):
            events = decode_events(rows_of(session, RECORDS), keep=["offset"])
    assert "Functions$Read" not in _plan(events)
    assert _is_read(events)
    (message,) = caplog.messages
    assert "by an Arrow UDF" in message
    assert reason in message
    assert "cloudevents-kafka spark-jar FILE" in message


def test_settings_without_the_jar(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    """Settings of somebody else stay, even if they are of no use."""
    session = spark.newSession()
    name = "spark.sql.catalog.cloudevents_kafka"
    session.conf.set(name, "cloudevents_kafka.spark.Missing")
    with caplog.at_level(logging.WARNING, "cloudevents_kafka"):
        events = decode_events(rows_of(session, RECORDS), keep=["offset"])
    assert "Functions$Read" not in _plan(events)
    assert "cloudevents_kafka.spark.Missing" in caplog.text
    assert session.conf.get(name) == "cloudevents_kafka.spark.Missing"


def test_a_session_may_name_the_jar(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A jar that the session's settings name is used instead of the one in the package."""
    jar = session_jar(spark._jvm)
    named = tmp_path / "with space.jar"
    named.write_bytes(jar.read_bytes())
    monkeypatch.setattr(java_reader, "session_jar", _compiler_refused)
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.catalog.cloudevents_kafka.jar", str(named))
    events = decode_events(rows_of(session, RECORDS), keep=["offset"])
    assert "Functions$Read" in _plan(events)
    assert _is_read(events)


def test_the_catalog_lists_its_functions(spark: SparkSession) -> None:
    """Spark lists the functions, and refuses a misspelt one."""
    from pyspark.errors import AnalysisException

    assert java_reader.reader_sql(rows_of(spark, RECORDS)) is not None
    listed = spark.sql("SHOW USER FUNCTIONS IN cloudevents_kafka").collect()
    ours = {row[0] for row in listed if "." in row[0]}  # the session's own functions are listed, too
    names = (
        "coalesce",
        "coalesce_lenient",
        "few",
        "fits",
        "foreign",
        "is_new",
        "read",
        "read_lenient",
        "write",
    )
    assert ours == {f"cloudevents_kafka.{name}" for name in names}
    with pytest.raises(AnalysisException, match="reed"):
        spark.sql("SELECT cloudevents_kafka.reed(1)")
