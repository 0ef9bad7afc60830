"""The jars and settings of a session that users build."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cloudevents_kafka.spark import configure_session, session


@pytest.fixture(autouse=True)
def known_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the jars of the connector and of formats by their names."""
    monkeypatch.setattr(session, "connector_jars", lambda: ["kafka.jar"])
    monkeypatch.setattr(session, "table_jars", lambda formats: [f"{name}.jar" for name in formats])


def options(builder: SparkSession.Builder) -> dict[str, str]:
    found: dict[str, str] = vars(builder)["_options"]
    return found


def test_a_builder_has_the_jars_of_kafka_and_of_formats() -> None:
    """The jars of formats, of Kafka, of the caller and of the settings are joined in this order."""
    builder = SparkSession.Builder()
    assert configure_session(builder, ["delta"], jars=["own.jar"], conf={"spark.jars": "a.jar"}) is builder
    assert options(builder)["spark.jars"] == "delta.jar,kafka.jar,own.jar,a.jar"


def test_settings_of_the_caller_override_those_of_formats() -> None:
    """Settings of the caller stay, and its extensions are added to those of the formats."""
    own = {"spark.sql.catalog.spark_catalog": "x", "spark.sql.extensions": "my.Own"}
    found = options(configure_session(SparkSession.Builder(), ["delta"], conf=own))
    assert found["spark.sql.catalog.spark_catalog"] == "x"
    assert found["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension,my.Own"


def test_a_wrong_format_is_refused() -> None:
    """A format that is not a table format is a ValueError."""
    with pytest.raises(ValueError, match="must be one of delta, iceberg, avro, got 'csv'"):
        configure_session(SparkSession.Builder(), ["csv"])  # type: ignore[list-item]  # it is wrong
