"""What a pipeline refuses on Spark Connect, without a server; settings of librdkafka for its topics."""

from __future__ import annotations

from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline import EventPipeline, NotOnConnect, PipelineOptions, to_java_settings
from cloudevents_kafka.spark.pipeline._errors import failure_of
from cloudevents_kafka.spark.pipeline.topics import LibrdkafkaAdmin
from cloudevents_kafka.spark.pipeline.topics._librdkafka_admin import NoCounterpart, librdkafka_settings
from cloudevents_kafka.spark.pipeline.topics._topics import TopicState


class ConnectSession:
    """A session of Spark Connect without a server."""

    __module__ = "pyspark.sql.connect.session"


def start(**options: Any) -> None:
    settings = {"bootstrap_servers": "b:1", "topics": ("t",), "out": "/lake", **options}
    EventPipeline(PipelineOptions(**settings), spark=ConnectSession()).start()  # type: ignore[arg-type]


def test_parquet() -> None:
    """Parquet needs a file system in this process."""
    with pytest.raises(
        NotOnConnect, match=r"to must be delta on Spark Connect, got parquet: .* Land in Delta, or use"
    ):
        start()


def test_function_and_topics() -> None:
    """A function with state of this process, and topics, which have no commits, are refused."""
    options = PipelineOptions(bootstrap_servers="b:1", topics=("t",), out="/lake")
    with pytest.raises(
        NotOnConnect, match="each_batch must be None on Spark Connect: batches land in a process"
    ):
        EventPipeline(options, spark=ConnectSession(), each_batch=print).start()  # type: ignore[arg-type]
    with pytest.raises(NotOnConnect, match="must be delta on Spark Connect, got kafka"):
        start(to="kafka", table="copy")


@pytest.mark.parametrize(
    ("name", "options"),
    [("out", {"out": "lake"}), ("out", {"out": "~/lake"}), ("checkpoint", {"checkpoint": "./c"})],
)
def test_relative_folders(name: str, options: dict[str, str]) -> None:
    """A folder is one of the server, which has another current directory."""
    with pytest.raises(NotOnConnect, match=f"{name} must be a URL or an absolute path on Spark Connect"):
        start(to="delta", **options)


def test_settings_for_librdkafka() -> None:
    """The options of Spark's source connect librdkafka, too."""
    wanted = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": 'a"b\\\\c',
        "ssl.ca.location": "/ca.pem",
    }
    options = {"kafka.bootstrap.servers": "b:1", "subscribe": "t", **to_java_settings(wanted)}
    assert librdkafka_settings(options) == {"bootstrap.servers": "b:1", **wanted}
    assert librdkafka_settings({**options, "kafka.fetch.max.bytes": "1"})["sasl.username"] == "me"


@pytest.mark.parametrize(
    "setting",
    ["kafka.sasl.login.callback.handler.class", "kafka.ssl.keystore.location", "kafka.sasl.jaas.config"],
)
def test_no_counterpart(setting: str) -> None:
    """A setting of Java's client that librdkafka does not have is named; the topics have no id then."""
    options = {"kafka.bootstrap.servers": "b:1", setting: "x"}
    with pytest.raises(NoCounterpart, match=setting):
        librdkafka_settings(options)
    states = LibrdkafkaAdmin(options).describe(["t"], {}, 1.0)
    assert states == {"t": TopicState(None, None, f"{setting} is a setting that only the Java client has")}


def test_no_way_to_the_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this process does not reach the brokers, topics have no id, and it is asked once only."""
    monkeypatch.setattr("cloudevents_kafka.spark.pipeline.topics._librdkafka_admin._FIRST_SECONDS", 0.3)
    admin = LibrdkafkaAdmin({"kafka.bootstrap.servers": "127.0.0.1:1"})
    for _ in range(2):
        state = admin.describe(["t"], {}, 60.0)["t"]
        assert state is not None
        assert state.id is None
        assert "this process does not reach them" in state.no_id_reason


def test_python_processes() -> None:
    """A process of Spark that was killed, or that does not start, is not taken for a broker."""
    slow = "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back"
    assert "the machine is busy" in str(failure_of(f"Caused by: {slow}"))
    assert "a Python process of Spark ended" in str(failure_of("java.io.EOFException"))
