"""Tables that need renames in one step are refused in object stores, before anything starts."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner

from cloudevents_kafka.cli.app import app
from cloudevents_kafka.spark.pipeline import EventPipeline, PipelineOptions, WrongStore
from cloudevents_kafka.spark.pipeline.landing import check_renames
from tests.support.cases import each


def options(out: str, **more: Any) -> PipelineOptions:
    return PipelineOptions(bootstrap_servers="127.0.0.1:1", topics=("t",), out=out, **more)


@each("scheme", ["s3", "s3a", "S3A", "s3n", "gs", "wasb", "wasbs", "oss", "cosn", "swift"])
@each("to", ["parquet", "iceberg"])
def test_object_stores(scheme: str, to: Any) -> None:
    """The error has the folder without its login, the reason, and what to use instead."""
    with pytest.raises(WrongStore, match=rf"^out must .* for {to}.*, got {scheme}://.*copies and") as raised:
        EventPipeline(options(f"{scheme}://me:hunter2@bucket/x", to=to)).start()
    assert "--to delta" in str(raised.value)
    assert "--table CATALOG" in str(raised.value)
    assert "hunter2" not in str(raised.value)


@each(
    ("out", "more"),
    [
        ("lake", {}),
        ("file:///lake", {"to": "iceberg"}),
        ("hdfs://name/lake", {}),
        ("s3a://bucket/lake", {"to": "delta"}),
        ("s3a://bucket/lake", {"to": "delta", "table": "a.b.c"}),
        ("s3a://bucket/lake", {"to": "iceberg", "table": "a.b.c"}),
    ],
)
def test_others(out: str, more: Any) -> None:
    """Files that are renamed in one step suit all tables, and object stores suit those without renames."""
    check_renames(options(out, **more))
    check_renames(options(out, **more), MagicMock())


def test_functions() -> None:
    """A function for each batch needs no renames."""
    check_renames(options("s3a://bucket/lake"), has_function=True)


@pytest.mark.parametrize("has_namespace", [True, False])
def test_azure(*, has_namespace: bool) -> None:
    """An account of Azure says whether it has a hierarchical namespace."""
    spark = MagicMock()
    files = spark._jvm.org.apache.hadoop.fs.Path.return_value.getFileSystem.return_value
    files.hasPathCapability.return_value = has_namespace
    lake = options("abfss://lake@account.dfs.core.windows.net/x")
    check_renames(lake)
    if has_namespace:
        check_renames(lake, spark)
    else:
        with pytest.raises(WrongStore, match="got abfss://"):
            check_renames(lake, spark)


def test_command() -> None:
    """The command ends with exit code 2 and one sentence."""
    argv = ["pipeline", "-b", "127.0.0.1:1", "-t", "t", "-o", "s3a://bucket/x"]
    done = CliRunner().invoke(app, argv)
    assert done.exit_code == 2
    assert "Land in Delta (--to delta)" in done.stderr
