"""The Kafka connector is the one for the installed PySpark."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from cloudevents_kafka.jvm import NoJars
from cloudevents_kafka.jvm._coordinates import JarRequest, jar_sets
from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.spark import connector
from cloudevents_kafka.spark.table_formats import FORMATS

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"


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
    with pytest.raises(connector.NoConnector, match=re.escape(pip_install("spark"))):
        connector.kafka_package()


def test_the_extra_allows_what_has_all_jars():
    """The extra allows PySpark from the first to the last release with a connector, Delta and Iceberg."""
    complete = [
        release
        for release in connector.KNOWN_GOOD
        if {release.rpartition(".")[0]}
        <= FORMATS["delta"].releases.keys() & FORMATS["iceberg"].releases.keys()
    ]
    requires = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"]["spark"]
    assert f"pyspark>={complete[0]},<={complete[-1]}" in requires
    for release in complete:
        assert JarRequest.create([f"{CONNECTOR}:{release}"], connector.IN_PYSPARK) in jar_sets()
