"""Options of Spark's source, as settings of librdkafka."""

from __future__ import annotations

import pytest

from cloudevents_kafka.spark.pipeline import to_java_settings
from cloudevents_kafka.spark.pipeline._errors import failure_of
from cloudevents_kafka.spark.pipeline.topics._librdkafka import NoCounterpart, librdkafka_settings
from tests.support.cases import each


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


@each(
    "setting",
    ["kafka.sasl.login.callback.handler.class", "kafka.ssl.keystore.location", "kafka.sasl.jaas.config"],
)
def test_no_counterpart(setting: str) -> None:
    """A setting of Java's client that librdkafka does not have is named."""
    options = {"kafka.bootstrap.servers": "b:1", setting: "x"}
    with pytest.raises(NoCounterpart, match=setting):
        librdkafka_settings(options)


def test_python_processes() -> None:
    """A process of Spark that was killed, or that does not start, is not taken for a broker."""
    slow = "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back"
    assert "the machine is busy" in str(failure_of(f"Caused by: {slow}"))
    assert "a Python process of Spark ended" in str(failure_of("java.io.EOFException"))
