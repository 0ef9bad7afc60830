"""A pipeline reads from a broker that accepts tokens only: client credentials, and a command."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from cloudevents_kafka import Event, EventProducer
from cloudevents_kafka.cli.app import app
from cloudevents_kafka.clients.oauth import TokenCommand, TokenEndpoint
from cloudevents_kafka.spark.pipeline import EventPipeline, PipelineFailed, PipelineOptions, to_java_settings
from tests.support.oidc import SECRET, IdentityProvider, OAuthBroker, client_credentials, oauth_broker

pytestmark = [pytest.mark.spark, pytest.mark.broker]


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def broker(provider: IdentityProvider) -> Iterator[OAuthBroker]:
    with oauth_broker(provider) as broker:
        broker.broker.create_topic("orders")
        with EventProducer(Producer({"bootstrap.servers": broker.broker.bootstrap_servers})) as producer:
            for number in range(3):
                producer.send(Event(id=str(number), source="/s", type="t"), "orders")
        yield broker


def landed(session: SparkSession, broker: OAuthBroker, out: Path, settings: dict[str, str]) -> int:
    options = PipelineOptions(
        bootstrap_servers=broker.secured,
        topics=("orders",),
        out=str(out),
        once=True,
        kafka_options=to_java_settings(settings),
    )
    return EventPipeline(options, spark=session).run().counts.events


def test_client_credentials(
    session: SparkSession, provider: IdentityProvider, broker: OAuthBroker, tmp_path: Path
) -> None:
    """Java fetches tokens from the provider."""
    assert landed(session, broker, tmp_path / "out", client_credentials(provider)) == 3


def test_a_command(
    session: SparkSession, provider: IdentityProvider, broker: OAuthBroker, tmp_path: Path
) -> None:
    """Java fetches the tokens of a command from the endpoint of this process."""
    command = TokenCommand([sys.executable, "-c", f"print({provider.token()!r})"])
    with TokenEndpoint(command) as endpoint:
        settings = {"security.protocol": "SASL_PLAINTEXT", **endpoint.settings}
        assert landed(session, broker, tmp_path / "out", settings) == 3


@pytest.mark.release
def test_tokens_expire(
    session: SparkSession, provider: IdentityProvider, broker: OAuthBroker, tmp_path: Path
) -> None:
    """A pipeline outlives its tokens: it lands what is sent after the first ones have expired."""
    provider.lifetime, before = 12.0, len(provider.requests)
    # Java renews a token a minute before its end by default, but no sooner than after a minute.
    soon = {"min.period": "1", "buffer": "1"}
    options = PipelineOptions(
        bootstrap_servers=broker.secured,
        topics=("orders",),
        out=str(tmp_path / "out"),
        interval=1.0,
        kafka_options={
            **to_java_settings(client_credentials(provider)),
            **{f"kafka.sasl.login.refresh.{name}.seconds": value for name, value in soon.items()},
        },
    )
    sent, started = 3, time.monotonic()
    with (
        EventProducer(Producer({"bootstrap.servers": broker.broker.bootstrap_servers})) as producer,
        EventPipeline(options, spark=session) as pipeline,
    ):
        while time.monotonic() - started < 40:
            producer.send(Event(id=str(sent), source="/s", type="t"), "orders").result(20)
            sent += 1
            assert not pipeline.wait(1.0)
        pipeline.stop()
        pipeline.wait()
        summary = pipeline.summary()
    provider.lifetime = 300.0
    assert len(provider.requests) - before > 4
    assert sent - 5 <= summary.counts.events <= sent
    assert summary.counts.quarantined == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            {"sasl.oauthbearer.client.secret": "wrong-Xv9y"},
            r"^token endpoint http://.*/token: .* response code 401 .*unknown client or wrong secret",
        ),
        pytest.param(
            {"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"},
            r"^token endpoint http://127.0.0.1:1/token: .*LoginException",
            marks=pytest.mark.release,  # Java tries for ten seconds
        ),
    ],
)
def test_no_token(
    session: SparkSession,
    provider: IdentityProvider,
    broker: OAuthBroker,
    tmp_path: Path,
    wrong: dict[str, str],
    words: str,
) -> None:
    """The error has the endpoint and what to check, without the secret."""
    settings: Any = client_credentials(provider, **wrong)
    with pytest.raises(PipelineFailed, match=words) as caught:
        landed(session, broker, tmp_path / "out", settings)
    assert str(caught.value).endswith("and the client id and secret (sasl.oauthbearer.…)")
    assert "Xv9y" not in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.release
def test_the_command_line(provider: IdentityProvider, broker: OAuthBroker, tmp_path: Path) -> None:
    """A pipeline with a Spark of its own lands the topic, by a command that prints tokens."""
    command = f"{sys.executable} -c \"print('{provider.token()}')\""
    words = ["pipeline", "-b", broker.secured, "-t", "orders", "-o", str(tmp_path / "out"), "--once"]
    login = ["-X", "security.protocol=SASL_PLAINTEXT", "-X", f"sasl.oauthbearer.token.command={command}"]
    argv = [sys.executable, "-m", "cloudevents_kafka", *words, *login]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert "3 events" in done.stdout


def test_a_command_needs_a_spark_on_this_machine(tmp_path: Path) -> None:
    """Executors of a cluster cannot reach the endpoint, so a command is refused before Spark starts."""
    words = ["pipeline", "-b", "127.0.0.1:1", "-t", "t", "-o", str(tmp_path), "--master", "spark://h:7077"]
    result = CliRunner().invoke(app, [*words, "-X", "sasl.oauthbearer.token.command=hunter2"])
    assert result.exit_code == 2
    assert "needs a Spark on this machine" in result.output
    failed = CliRunner().invoke(app, [*words[:-2], "-X", "sasl.oauthbearer.token.command=no-such-program"])
    assert failed.exit_code == 3
    assert "there is no login for the brokers: the token command 'no-such-program' failed" in failed.output
