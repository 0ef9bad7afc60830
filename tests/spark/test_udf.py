"""Workers use what is registered on the driver, and need neither PySpark nor a Kafka client."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
import zipimport
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from cloudevents_kafka import AttributeType, Event, Record, register_extension, register_format
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.spark._workers import with_registry
from tests.spark.records import BASE, binary, structured
from tests.spark.rows import expected, read_back, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lucky(registry: None) -> None:
    """Register an extension with a type and a rule for one test."""
    register_extension("lucky", AttributeType.INTEGER, rule="must be 7", accepts=lambda value: value == 7)


@pytest.mark.usefixtures("lucky")
def test_registered_extensions_are_read_by_their_rule(spark: SparkSession) -> None:
    """In both modes, a value that the rule refuses makes an event broken."""
    from cloudevents_kafka.spark import decode_events

    events = [{**BASE, "lucky": value} for value in ("7", "8", "seven")]
    records = [make(event) for make in (binary, structured) for event in events]
    read = read_back(decode_events(rows_of(spark, records), keep=["offset"]))
    assert [read[offset] for offset in range(len(records))] == [expected(record) for record in records]
    assert ["error" in read[offset] for offset in range(3)] == [False, True, True]


@pytest.mark.usefixtures("lucky")
def test_registered_extensions_are_written_with_their_type(spark: SparkSession) -> None:
    """An Integer is written as a number in JSON; a refused one is an error."""
    from cloudevents_kafka.spark import encode_events, register

    rows = [("1", "/s", "t", {"lucky": value}) for value in ("7", "8")]
    df = spark.createDataFrame(rows, "id string, source string, type string, extensions map<string,string>")
    good, bad = encode_events(df, mode="structured", errors="column").collect()
    assert b'"lucky":7' in good.value
    assert "must be 7" in bad.error.reason
    register(spark)
    df.createOrReplaceTempView("lucky")
    made = spark.sql("select ce_encode(struct(*), 'structured') as made from lucky").collect()
    assert [row.made.error is None for row in made] == [True, False]


@pytest.mark.usefixtures("registry")
def test_registered_formats_are_read(spark: SparkSession) -> None:
    """Workers use a registered format; an unknown one is an error."""
    from cloudevents_kafka.spark import decode_events

    class Shouted(JsonFormat):
        def decode(self, value: bytes) -> Event:
            return super().decode(value.removeprefix(b"!"))

    value = b"!" + (structured(BASE).value or b"")
    record = Record(value=value, headers=[("content-type", b"application/cloudevents+x-shouted")])
    (before,) = read_back(decode_events(rows_of(spark, [record]), keep=["offset"])).values()
    assert "error" in before
    register_format("x-shouted", Shouted)
    (after,) = read_back(decode_events(rows_of(spark, [record]), keep=["offset"])).values()
    assert after == expected(record)
    assert "error" not in after


def test_workers_need_no_client_and_no_spark() -> None:
    """The module of workers imports neither a Kafka client nor PySpark."""
    code = (
        "import sys; sys.modules['confluent_kafka'] = sys.modules['pyspark'] = None; "
        "import cloudevents_kafka.spark.udf"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("first", [pd.Series(["a"]), pd.Series([None]), "a"], ids=["rows", "nulls", "a row"])
def test_a_worker_caches_no_directory_of_a_zip(
    first: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its first batch or row a function caches no finder of a zip, which each task would refresh."""
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as archive:
        archive.writestr("in_a_zip/__init__.py", "")
    monkeypatch.syspath_prepend(tmp_path / "some.zip")
    assert importlib.util.find_spec("in_a_zip")
    with_registry(lambda argument: argument)(first)
    finders = sys.path_importer_cache.values()
    assert not any(isinstance(finder, zipimport.zipimporter) for finder in finders)
