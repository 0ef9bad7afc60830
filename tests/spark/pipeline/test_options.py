"""The options of a pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline.options._options import PipelineOptions
from cloudevents_kafka.spark.pipeline.session._session import is_launch_setting
from cloudevents_kafka.spark.pipeline.stores import local_path
from tests.support.cases import each

GOOD: dict[str, Any] = {"bootstrap_servers": "b:1", "topics": ("t",), "out": "o"}


@each(
    ("changed", "words"),
    [
        ({"topics": ()}, "topics must have"),
        ({"bootstrap_servers": ""}, "bootstrap_servers must be"),
        ({"interval": -1}, "interval"),
        ({"max_records": 0}, "max_records"),
        ({"start": "yesterday"}, "earliest, latest"),
        ({"start": "[]"}, "earliest, latest"),
        ({"kafka_options": {"subscribe": "x"}}, "must not contain subscribe: the pipeline sets"),
        ({"topics": ("e9-.*",)}, r"got 'e9-\.\*'; for a regular expression, use .*--topic-pattern"),
        ({"topic_pattern": "e9-.*"}, "topics must be empty with topic_pattern"),
        ({"topics": (), "topic_pattern": "e9-("}, "topic_pattern must be a regular expression"),
        ({"to": "delta", "table": "a..b"}, "the name of a table must be"),
        ({"out": "file://other/lake"}, "with the host 'other'; write file:///PATH"),
        ({"deduplicate": "1h"}, "deduplicate must be used without tables and with .* got to='parquet'"),
        ({"to": "delta", "deduplicate": "1 month"}, "deduplicate must be a whole number of .* '1 month'"),
        ({"upsert": ("key",)}, "upsert must be used without tables and with"),
        ({"to": "iceberg", "upsert": ("key",), "tables": {"a": "b"}}, "without tables"),
        ({"to": "delta", "upsert": ("key",), "adopt": True}, "without deduplicate and without adopt"),
        (
            {"to": "delta", "upsert": ("key",), "deduplicate": "1h"},
            "deduplicate and upsert must be used without tables",
        ),
        ({"to": "delta", "upsert": ("Key",)}, r"upsert must name key \(of the Kafka record\), .* got Key"),
        ({"to": "delta", "upsert": ("time",)}, "upsert must name .* got time"),
        ({"to": "delta", "upsert": ("key", "key")}, "each once, got key, key"),
        (
            {"to": "delta", "upsert": ("key",), "deleted": "op"},
            "deleted must be ATTRIBUTE=VALUE, .* got 'op'",
        ),
        ({"to": "delta", "deleted": "op=d"}, "needs the option upsert, got 'op=d'"),
        (
            {"topics": ("a,b",), "forget_topics": ("b",)},
            "topics and forget_topics must not overlap, got b",
        ),
    ],
)
def test_invalid_options(changed: dict[str, Any], words: str) -> None:
    """Invalid options are refused before anything starts."""
    with pytest.raises(ValueError, match=words):
        PipelineOptions(**{**GOOD, **changed})


def test_source_options() -> None:
    """Spark's source always reads headers, and fails on lost data by default."""
    source = PipelineOptions(
        **GOOD, kafka_options={"kafka.security.protocol": "SSL"}, max_records=None
    ).source_options()
    assert source["includeHeaders"] == "true"
    assert source["failOnDataLoss"] == "true"
    assert source["kafka.security.protocol"] == "SSL"
    assert "maxOffsetsPerTrigger" not in source
    assert PipelineOptions(**GOOD, allow_data_loss=True).source_options()["failOnDataLoss"] == "false"
    assert PipelineOptions(**GOOD).checkpoint_url == "o/_checkpoint"


@each(
    ("name", "default"),
    [
        ("kafka.isolation.level", "read_committed"),
        ("kafka.fetch.max.wait.ms", "1"),
        ("kafka.auto.include.jmx.reporter", "false"),
        ("kafka.enable.metrics.push", "false"),
    ],
)
def test_defaults_of_the_source(name: str, default: str) -> None:
    """Aborted records are not read, no end of a partition is waited for, and consumers report nothing."""
    assert PipelineOptions(**GOOD).source_options()[name] == default
    assert PipelineOptions(**GOOD, kafka_options={name: "x"}).source_options()[name] == "x"


@each(
    ("name", "may"),
    [
        ("spark.master", True),
        ("spark.driver.memory", True),
        ("spark.jars.packages", True),
        ("spark.hadoop.fs.s3a.secret.key", False),
        ("spark.hadoop.fs.azure.account.key.me", False),
        ("spark.driver.password", False),
        ("spark.sql.shuffle.partitions", False),
        ("kafka.sasl.jaas.config", False),
    ],
)
def test_settings_on_the_command_line(name: str, *, may: bool) -> None:
    """Only settings that Java needs at its start are on its command line, and no secrets."""
    assert is_launch_setting(name) == may


def test_no_login_on_a_command_line() -> None:
    """A repository with a password, which Java needs at its start, is refused; the error omits it."""
    with pytest.raises(ValueError, match=r"spark\.jars\.repositories must not have a URL") as caught:
        PipelineOptions(**GOOD, conf={"spark.jars.repositories": "https://h/x,https://me:hunter2@h/y"})
    assert "hunter2" not in str(caught.value)
    PipelineOptions(**GOOD, conf={"spark.jars.repositories": "https://h/x"})


def test_options_hide_secrets() -> None:
    """Neither the options nor a redacted error of Spark contains a secret."""
    options = PipelineOptions(
        **{**GOOD, "out": "s3a://me:hunter2@bucket/x"},
        kafka_options={"kafka.sasl.jaas.config": 'x required password="hunter2";', "kafka.acks": "hunter2"},
        conf={"spark.hadoop.fs.azure.account.key.me": "hunter2hunter2"},
    )
    assert "hunter2" not in repr(options)
    for value in (*options.kafka_options.values(), *options.conf.values()):
        assert "hunter2" not in options.redact(f"bad: {value}")


@each(
    ("location", "path"),
    [
        ("/a/b", Path("/a/b")),
        ("file:///a/b", Path("/a/b")),
        ("file:/a/b%20c", Path("/a/b c")),
        ("s3a://bucket/a", None),
        ("hdfs://host:1/a", None),
    ],
)
def test_local_folders(location: str, path: Path | None) -> None:
    """A path or file URL is local, any other URL belongs to Hadoop."""
    assert local_path(location) == path
