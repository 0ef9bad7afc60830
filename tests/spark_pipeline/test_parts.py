"""The parts of a pipeline that need no Spark: settings, errors, progress, summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloudevents_kafka.spark.failures import explained
from cloudevents_kafka.spark.options import PipelineOptions, is_secret
from cloudevents_kafka.spark.progress import batch_of
from cloudevents_kafka.spark.security import kafka_options
from cloudevents_kafka.spark.store import local_path
from cloudevents_kafka.spark.summary import Summary, aligned
from cloudevents_kafka.spark.tally import Offsets, Tally

GOOD: dict[str, Any] = {"bootstrap_servers": "b:1", "topics": ("t",), "out": "o"}
TALLY = Tally(
    read=3,
    events=2,
    quarantined=1,
    by_type={"a\x1b[2J": {"binary": 2}},
    by_reason={"batch": {"no batches [K-01]": 1}},
    offsets={"t": {"0": Offsets(5, 9, 3)}},
)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"topics": ()}, "no topic"),
        ({"bootstrap_servers": ""}, "no bootstrap servers"),
        ({"interval": -1}, "interval"),
        ({"max_records": 0}, "max_records"),
        ({"start": "yesterday"}, "earliest, latest"),
        ({"start": "[]"}, "earliest, latest"),
        ({"kafka": {"subscribe": "x"}}, "sets subscribe itself"),
    ],
)
def test_options_that_cannot_be(changed: dict[str, Any], words: str) -> None:
    """Settings that make no sense are refused before anything starts."""
    with pytest.raises(ValueError, match=words):
        PipelineOptions(**{**GOOD, **changed})


def test_source_options() -> None:
    """Spark's source always reads headers, and fails on lost data unless told otherwise."""
    source = PipelineOptions(**GOOD, kafka={"kafka.security.protocol": "SSL"}, max_records=None).source()
    assert source["includeHeaders"] == "true"
    assert source["failOnDataLoss"] == "true"
    assert source["kafka.security.protocol"] == "SSL"
    assert "maxOffsetsPerTrigger" not in source
    assert PipelineOptions(**GOOD, allow_data_loss=True).source()["failOnDataLoss"] == "false"
    assert PipelineOptions(**GOOD).checkpoint_url == "o/_checkpoint"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("kafka.sasl.jaas.config", True),
        ("kafka.ssl.keystore.password", True),
        ("kafka.ssl.keystore.key", True),
        ("spark.hadoop.fs.s3a.secret.key", True),
        ("spark.hadoop.fs.s3a.access.key", True),
        ("kafka.ssl.keystore.location", False),
        ("spark.driver.memory", False),
    ],
)
def test_secrets_are_known(name: str, *, secret: bool) -> None:
    """Settings with secrets are told from others by name, so that no command line shows them."""
    assert is_secret(name) == secret


def test_one_spelling_of_security(tmp_path: Path) -> None:
    """Settings of librdkafka for SASL and TLS become those of the Java client."""
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_text("CHAIN")
    key.write_text("KEY")
    options = kafka_options(
        {
            "bootstrap.servers": "b:1",
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "me",
            "sasl.password": 'p"w\\d',
            "ssl.ca.location": "/ca.pem",
            "ssl.certificate.location": str(chain),
            "ssl.key.location": str(key),
        }
    )
    assert options == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="me" password="p\\"w\\\\d";'
        ),
        "kafka.ssl.truststore.location": "/ca.pem",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "CHAIN",
        "kafka.ssl.keystore.key": "KEY",
        "kafka.ssl.keystore.type": "PEM",
    }


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"queue.buffering.max.ms": "5"}, "kafka.NAME=VALUE"),
        ({"sasl.mechanism": "GSSAPI", "sasl.username": "a", "sasl.password": "b"}, "jaas"),
    ],
)
def test_settings_without_counterpart(settings: dict[str, str], words: str) -> None:
    """A setting that Spark's client does not have is refused, not dropped."""
    with pytest.raises(ValueError, match=words):
        kafka_options(settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x\nCaused by: java.lang.IllegalStateException: Some data may have been lost", "--allow-data-loss"),
        ("org.apache.kafka.common.errors.UnknownTopicOrPartitionException: no", "create it first"),
        (
            "Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting",
            "no broker answered",
        ),
        ("Caused by: org.apache.kafka.common.errors.SaslAuthenticationException: x", "refused"),
        ("java.lang.OutOfMemoryError: Java heap space", "--max-records"),
        (
            "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'y'\n",
            "named 'y'",
        ),
        ("something new", "Spark stopped: something new"),
    ],
)
def test_what_spark_says(text: str, words: str) -> None:
    """An error of Spark's comes down to its cause, and to what can be done about it."""
    assert words in explained(text)
    assert "\tat " not in explained(text)


def test_progress_tells_the_lag() -> None:
    """What is behind is counted over all partitions, as far as Spark knows their ends."""
    source = {"latestOffset": '{"t":{"0":10,"1":4}}', "endOffset": '{"t":{"0":7}}'}
    none = {"latestOffset": "None", "endOffset": "None"}
    progress = {"batchId": 3, "durationMs": {"triggerExecution": 500}, "sources": [source, none]}
    batch = batch_of(progress, TALLY)
    assert batch.behind == 7
    assert str(batch) == "batch 3: 3 read = 2 events + 1 quarantined, 6 records/s, 7 behind"


def test_summary_as_text() -> None:
    """The text has all counts, says which offsets had no record, and obeys no event's type."""
    text = Summary(
        topics=("t",),
        events_table="e",
        quarantine_table="q",
        checkpoint="c",
        batches=1,
        recovered=4,
        complete=True,
        seconds=2.0,
        tally=TALLY,
        total=TALLY.plus(TALLY),
        skipped={"t": {"0": 1002}},
    ).to_text()
    assert "3 records read = 2 events + 1 quarantined  (1 batches, 2.0 s, 2 records/s)" in text
    assert "batch 4 of an earlier run was finished first" in text
    assert "4 events, 2 quarantined, of 6 records" in text
    assert "\x1b" not in text
    assert "\\x1b[2J" in text
    assert [line.split() for line in text.splitlines() if "t[0]" in line] == [
        ["t[0]", "5", "9", "3", "1,002"]
    ]


def test_aligned() -> None:
    """Numbers stand to the right, words to the left."""
    assert aligned(["a", "n"], [["x", "1,000"], ["long", "2"]]).splitlines() == [
        "  a         n",
        "  ----  -----",
        "  x     1,000",
        "  long      2",
    ]


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", Path("/a/b")),
        ("file:///a/b", Path("/a/b")),
        ("file:/a/b%20c", Path("/a/b c")),
        ("s3a://bucket/a", None),
        ("hdfs://host:1/a", None),
    ],
)
def test_where_a_folder_is(location: str, path: Path | None) -> None:
    """A path or file URL is on this machine, any other URL is Hadoop's."""
    assert local_path(location) == path
