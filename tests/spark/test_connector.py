"""The Kafka connector is the one for the installed PySpark."""

from __future__ import annotations

import pytest

from cloudevents_kafka.jvm import NoJars
from cloudevents_kafka.spark import connector


@pytest.mark.parametrize("version", ["4.0.0", "4.1.2"])
def test_package(monkeypatch, version):
    """The coordinate has the version of the installed PySpark."""
    monkeypatch.setattr(connector, "version", lambda _: version)
    assert connector.kafka_package() == f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"


@pytest.mark.spark
def test_jars():
    """The jars are the connector and those that PySpark does not contain, of which lz4-java is one in 4.2."""
    names = [jar.name.rpartition("-")[0] for jar in connector.connector_jars()]
    assert [name for name in names if name != "lz4-java"] == [
        "commons-pool2",
        "kafka-clients",
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
    ]


def test_none_published(monkeypatch, tmp_path):
    """If there is none, the error names the installed PySpark and a version with a connector."""

    def fail(coordinates, exclude):
        raise NoJars(coordinates, tmp_path, "the Maven repository does not have it", "hint")

    monkeypatch.setattr(connector, "version", lambda _: "4.0.4")
    monkeypatch.setattr(connector, "resolve", fail)
    with pytest.raises(connector.NoConnector) as caught:
        connector.connector_jars()
    text = str(caught.value)
    assert "no Kafka connector for PySpark 4.0.4" in text
    assert "pip install pyspark==4.0.0" in text


def test_no_pyspark(monkeypatch):
    """Without PySpark, the error says how to install it."""
    monkeypatch.setattr(connector.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(connector.NoConnector, match=r"pip install 'cloudevents-kafka\[spark\]'"):
        connector.kafka_package()
