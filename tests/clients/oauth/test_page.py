"""The settings on the page about managed Kafka are accepted by each client that they are for."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from confluent_kafka import Producer

from cloudevents_kafka.cli.kafka.logins import client_settings, token_command
from cloudevents_kafka.cli.kafka.settings import Settings, load_settings
from tests.support.wire import self_signed

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "managed_kafka.md"
BLOCKS = re.findall(r"^```properties\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("tls"))


def settings_of(block: str, files: tuple[Path, Path], folder: Path) -> Settings:
    """Return the settings of a block, with files that exist and addresses where nothing listens."""
    certificate, key = files
    (folder / "secret").write_text("s3cret\n")
    block = re.sub(r"@=.*", f"@={folder / 'secret'}", block)
    block = re.sub(r"=(ca\.pem|service\.cert)", f"={certificate}", block)
    block = block.replace("=service.key", f"={key}")
    block = re.sub(r"(servers=).*", r"\g<1>127.0.0.1:1", block)
    block = re.sub(r"(endpoint\.url=).*", r"\g<1>http://127.0.0.1:1/token", block)
    (folder / "client.properties").write_text(block)
    return load_settings(str(folder / "client.properties"), {}, (), None)


@pytest.mark.parametrize("block", [block for block in BLOCKS if "kafka.security" not in block])
def test_librdkafka_accepts_them(block, files, tmp_path):
    """confluent-kafka creates a client with each block for it."""
    settings = settings_of(block, files, tmp_path)
    command = token_command(settings)
    client = client_settings(settings, command)
    assert client.pop("oauth_cb", None) is command
    Producer({**client, "log_level": 0})


@pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is not installed")
@pytest.mark.parametrize("block", [block for block in BLOCKS if ".command" not in block])
def test_spark_accepts_them(block, files, tmp_path):
    """A pipeline has a translation for each block but those with a command."""
    from cloudevents_kafka.spark.pipeline import to_java_settings

    effective = settings_of(block, files, tmp_path).effective
    java = {name: value for name, value in effective.items() if name.startswith(("kafka.", "spark."))}
    rest = {name: value for name, value in effective.items() if name not in java}
    assert {**to_java_settings(rest), **java}.keys() & {"kafka.sasl.jaas.config", "kafka.ssl.keystore.key"}
