"""The jars and settings of Delta and Iceberg are those for the installed PySpark."""

from __future__ import annotations

import re

import pytest

from cloudevents_kafka.jvm import NoJars
from cloudevents_kafka.jvm._coordinates import JarRequest, jar_sets
from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.spark import table_formats
from cloudevents_kafka.spark.table_formats import NoTableFormat, table_jars, table_package, table_settings

_DELTA = "io.delta.sql.DeltaSparkSessionExtension"
_ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


@pytest.mark.parametrize(
    ("pyspark", "delta", "iceberg"),
    [("4.0.0", "4.0.0", "4.0_2.13:1.10.0"), ("4.1.1", "4.1.0", "4.1_2.13:1.11.0")],
)
def test_package(monkeypatch, pyspark, delta, iceberg):
    """Each minor version of PySpark has its Delta and its Iceberg, whose jars the package lists."""
    monkeypatch.setattr(table_formats.importlib.util, "find_spec", lambda _: True)
    monkeypatch.setattr(table_formats, "version", lambda _: pyspark)
    assert table_package("delta") == f"io.delta:delta-spark_2.13:{delta}"
    assert table_package("iceberg") == f"org.apache.iceberg:iceberg-spark-runtime-{iceberg}"
    excluded = table_formats.FORMATS["delta"].in_pyspark
    jars = jar_sets()[JarRequest.create([table_package("delta")], excluded)]
    assert {"delta-spark_2.13", "delta-storage"} <= {jar.artifact for jar in jars}
    assert len(jar_sets()[JarRequest.create([table_package("iceberg")])]) == 1


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_none_known(monkeypatch, name):
    """For another PySpark the error names the versions that have the format."""
    monkeypatch.setattr(table_formats.importlib.util, "find_spec", lambda _: True)
    monkeypatch.setattr(table_formats, "version", lambda _: "4.2.0")
    with pytest.raises(NoTableFormat, match=r"PySpark 4\.2\.0, only for 4\.0 and 4\.1; do: pip install"):
        table_jars([name])


def test_no_pyspark(monkeypatch):
    """Without PySpark, the error says how to install it."""
    monkeypatch.setattr(table_formats.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(NoTableFormat, match=re.escape(pip_install("spark"))):
        table_package("delta")


def test_no_download(monkeypatch, tmp_path):
    """If the download fails, the error names the format."""

    def fail(coordinates, exclude):
        raise NoJars(coordinates, tmp_path, "the Maven repository does not have it", "hint")

    monkeypatch.setattr(table_formats, "table_package", lambda _: "io.delta:x:1")
    monkeypatch.setattr(table_formats, "resolve", fail)
    with pytest.raises(NoTableFormat, match=r"the jars of Delta are missing: cannot fetch io\.delta:x:1"):
        table_jars(["delta"])


@pytest.mark.parametrize("function", [table_jars, table_settings])
def test_unknown(function):
    """Another format is refused."""
    with pytest.raises(ValueError, match="must be one of delta, iceberg, avro, got 'hudi'"):
        function(["hudi"])


@pytest.mark.spark
def test_jars():
    """The jars are Delta's and Iceberg's, without what PySpark contains."""
    names = [jar.name.rpartition("-")[0] for jar in table_jars(["delta", "iceberg"])]
    assert names[-1].startswith("iceberg-spark-runtime-")
    assert {*names[:-1]} <= {"delta-spark_2.13", "delta-storage", "unitycatalog-client"}


def test_settings():
    """Both formats have their extension, and a user's are added to them; times are never INT96."""
    settings = table_settings(["delta", "iceberg"], {"spark.sql.extensions": f"my.Own, {_DELTA}"})
    assert settings["spark.sql.extensions"] == f"{_DELTA},{_ICEBERG},my.Own"
    assert settings["spark.databricks.delta.snapshotPartitions"] == "2"
    assert settings["spark.sql.catalog.spark_catalog"].endswith("DeltaCatalog")
    assert settings["spark.sql.parquet.outputTimestampType"] == "TIMESTAMP_MICROS"


def test_settings_of_the_user():
    """A setting of the user overrides ours; without a format only times are set."""
    assert table_settings(["delta"], {"spark.sql.catalog.spark_catalog": "x"})[
        "spark.sql.catalog.spark_catalog"
    ] == ("x")
    assert table_settings([]) == {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
