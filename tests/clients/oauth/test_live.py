"""SASL OAUTHBEARER on a real broker: client credentials and commands, expiry, and what goes wrong."""

from __future__ import annotations

import json
import os
import sys
import time

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition

from cloudevents_kafka import Event, EventConsumer, EventProducer
from cloudevents_kafka.cli.app import app
from cloudevents_kafka.clients.oauth import TokenCommand, TokenEndpoint
from cloudevents_kafka.protocol import AuthenticationFailed, Client, OAuthBearer
from tests.support.oidc import CLIENT, SECRET, IdentityProvider, client_credentials, oauth_broker

pytestmark = pytest.mark.broker

FETCH = """
import sys, urllib.request
login = urllib.request.HTTPPasswordMgrWithPriorAuth()
login.add_password(None, sys.argv[1], sys.argv[2], sys.argv[3], is_authenticated=True)
opener = urllib.request.build_opener(
    urllib.request.ProxyHandler({}), urllib.request.HTTPBasicAuthHandler(login)
)
print(opener.open(sys.argv[1], b"grant_type=client_credentials", 10).read().decode())
"""


@pytest.fixture(scope="module")
def provider():
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture(autouse=True)
def _as_it_was(provider):
    yield
    provider.lifetime, provider.down = 300.0, False


@pytest.fixture(scope="module")
def brokers(provider):
    """The address of a broker that ends each session after two seconds."""
    with oauth_broker(provider, session_ms=2000) as started:
        started.broker.create_topic("orders")
        yield started.secured


def token_command(provider, secret=SECRET):
    return TokenCommand([sys.executable, "-c", FETCH, f"{provider.url}/token", CLIENT, secret])


def by_command(provider):
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": token_command(provider),
    }


def round_trip(settings, brokers, name):
    """Send an event and read it."""
    common = {"bootstrap.servers": brokers, "log_level": 0, **settings}
    with EventProducer(Producer(common)) as producer:
        sent = producer.send(Event(id=name, source="/s", type="t"), "orders").result(20)
    reader = Consumer({**common, "group.id": name, "enable.auto.commit": False})
    with EventConsumer(reader) as events:
        reader.assign([TopicPartition("orders", 0, sent.offset)])
        item = next(events.items(idle_timeout=20))
    assert item.event.id == name


def test_client_credentials(provider, brokers):
    """Librdkafka fetches tokens by itself; the scope is in its request."""
    before = len(provider.requests)
    round_trip(client_credentials(provider, **{"sasl.oauthbearer.scope": "kafka"}), brokers, "credentials")
    assert "scope=kafka" in provider.requests[before]


def test_a_command(provider, brokers):
    """A command is an oauth_cb; the two clients share its token."""
    before = len(provider.requests)
    round_trip(by_command(provider), brokers, "command")
    assert len(provider.requests) == before + 1


def test_an_endpoint(provider, brokers):
    """A client that fetches tokens over HTTP gets those of a command from the endpoint on loopback."""
    with TokenEndpoint(token_command(provider)) as endpoint:
        round_trip({"security.protocol": "SASL_PLAINTEXT", **endpoint.settings}, brokers, "endpoint")


def send_for(seconds, provider, brokers):
    """Send through a client of each kind; return the errors that they report meanwhile."""
    errors = []
    common = {"bootstrap.servers": brokers, "log_level": 0, "error_cb": errors.append}
    with (
        EventProducer(Producer({**common, **client_credentials(provider)})) as by_credentials,
        EventProducer(Producer({**common, **by_command(provider)})) as commanded,
    ):
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for producer in (by_credentials, commanded):
                producer.send(Event(id="1", source="/s", type="t"), "orders").result(20)
            time.sleep(0.05)
    return errors


def test_tokens_expire(provider, brokers):
    """Clients outlive their tokens: all is delivered while tokens expire and the broker ends sessions."""
    provider.lifetime = 4.0
    before = len(provider.requests)
    send_for(5, provider, brokers)
    assert len(provider.requests) - before >= 4


@pytest.mark.release
def test_tokens_expire_without_an_error(provider, brokers):
    """The clients report no error where a session is longer than a second, as brokers require."""
    provider.lifetime = 15.0
    assert send_for(40, provider, brokers) == []


def test_our_client(provider, brokers):
    """The client of the protocol logs in, and again at the end of the session, each time with a new token."""
    tokens = []

    def token():
        tokens.append(provider.token())
        return tokens[-1]

    with Client(brokers, timeout=10.0, sasl=OAuthBearer(token)) as client:
        ends = time.monotonic() + 20
        while len(set(tokens)) < 2 and time.monotonic() < ends:
            assert client.metadata(["orders"]).brokers
            time.sleep(0.1)
    assert len(set(tokens)) >= 2
    with Client(brokers, timeout=10.0, sasl=OAuthBearer(token, {"logicalCluster": "lkc-1"})) as client:
        assert client.metadata().brokers


@pytest.mark.parametrize("claims", [{"aud": "another"}, {"exp": time.time() - 60}, {"sub": ""}])
def test_our_client_is_refused(provider, brokers, claims):
    """A token that the broker refuses is an error without the token, and not tried again."""
    token = provider.token(**claims)
    with (
        Client(brokers, timeout=10.0, sasl=OAuthBearer(token)) as client,
        pytest.raises(
            AuthenticationFailed, match="the broker refuses the token: status invalid_token"
        ) as caught,
    ):
        client.metadata()
    assert token not in str(caught.value)


# --- the command line ---


@pytest.fixture
def run(monkeypatch):
    """A function that runs a command in this process, without settings of the environment."""
    for name in [name for name in os.environ if name.startswith("CE_KAFKA_")]:
        monkeypatch.delenv(name)
    return lambda *words: CliRunner().invoke(app, words, prog_name="cloudevents-kafka")


def options(brokers, settings):
    """Return the arguments for settings of the client."""
    return ["-b", brokers, *(part for name, value in settings.items() for part in ("-X", f"{name}={value}"))]


@pytest.fixture
def fetch(tmp_path, provider):
    """A program that prints a token of the provider, as a command line."""
    script = tmp_path / "fetch.py"
    script.write_text(FETCH)
    return f"{sys.executable} {script} {provider.url}/token {CLIENT}"


def test_the_command_line(provider, brokers, run, fetch, tmp_path):
    """Produce and consume log in by client credentials and by a command; secrets come from files."""
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    settings = client_credentials(provider)
    del settings["sasl.oauthbearer.client.secret"]
    settings["sasl.oauthbearer.client.secret@"] = str(tmp_path / "secret")
    event = ["--id", "line", "--source", "/s", "--type", "t"]
    sent = run("produce", *options(brokers, settings), "-t", "orders", *event)
    assert sent.exit_code == 0, sent.stderr
    commanded = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.oauthbearer.token.command": f"{fetch} {SECRET}",
    }
    read = run("consume", *options(brokers, commanded), "-t", "orders", "--from", "-1")
    assert read.exit_code == 0, read.stderr
    assert json.loads(read.stdout)["event"]["id"] == "line"
    shown = run("consume", *options(brokers, commanded), "-t", "orders", "--show-config")
    assert "sasl.oauthbearer.token.command=********" in shown.stdout


def failure(run, brokers, settings, *words):
    """Return the message of a command that fails soon."""
    started = time.monotonic()
    result = run(
        *("consume", *options(brokers, {"security.protocol": "SASL_PLAINTEXT", **settings})),
        *("-t", "orders", *words),
    )
    assert result.exit_code == 3, result.output
    assert time.monotonic() - started < 20
    assert SECRET not in result.output
    assert "wrong-Xv9y" not in result.output
    return result.stderr


def test_a_wrong_secret(provider, brokers, run, fetch):
    """The error has the endpoint or the command, the reason and what to check, and no secret."""
    wrong = client_credentials(provider, **{"sasl.oauthbearer.client.secret": "wrong-Xv9y"})
    text = failure(run, brokers, wrong)
    assert f"{provider.url}/token" in text
    assert "invalid_client" in text
    assert "check sasl.oauthbearer.token.endpoint.url" in text
    text = failure(run, brokers, {"sasl.oauthbearer.token.command": f"{fetch} wrong-Xv9y"})
    assert "there is no login for broker" in text
    assert "HTTP Error 401: Unauthorized; run it by hand" in text


def test_an_endpoint_that_is_down(provider, brokers, run):
    """The error has the endpoint, whether it answers by an error or not at all."""
    provider.down = True
    text = failure(run, brokers, client_credentials(provider), "--timeout", "0.5")
    assert f"did not answer within 0.5 s; there may be no token from {provider.url}/token: look into" in text
    nowhere = {"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"}
    text = failure(run, brokers, client_credentials(provider, **nowhere))
    assert "http://127.0.0.1:1/token" in text
    assert "check sasl.oauthbearer.token.endpoint.url" in text


def test_a_token_that_the_broker_refuses(provider, brokers, run):
    """The error says that it is the broker that refuses, and what it looks at."""
    token = provider.token(aud="another")
    text = failure(
        run, brokers, {"sasl.oauthbearer.token.command": f"{sys.executable} -c 'print(\"{token}\")'"}
    )
    assert "the broker refuses the token: check that its issuer, audience and scope" in text
    assert token not in text


# --- the commands of the protocol ---


def test_protocol_commands(provider, brokers, run, fetch, tmp_path, monkeypatch):
    """They log in by the settings of the other commands: a command, client credentials, the environment."""
    capture = tmp_path / "capture.jsonl"
    command = f"sasl.oauthbearer.token.command={fetch} {SECRET}"
    words = ("-X", "security.protocol=sasl_plaintext", "-X", command, "--trace", str(capture))
    sent = run("protocol", "produce", "-b", brokers, "orders", "by our client", *words)
    assert (sent.exit_code, sent.stderr) == (0, "")
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    settings = client_credentials(provider, **{"client.id": "shop", "sasl.oauthbearer.scope": "kafka"})
    settings["sasl.oauthbearer.client.secret@"] = settings.pop("sasl.oauthbearer.client.secret")
    settings["sasl.oauthbearer.client.secret@"] = str(tmp_path / "secret")
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    before = len(provider.requests)
    read = run(
        "protocol", "fetch", "-b", brokers, "orders", "--from", "-1", "-o", "json", "--config", str(file)
    )
    assert read.exit_code == 0, read.stderr
    assert json.loads(read.stdout)["value"] == "by our client"
    assert "scope=kafka" in provider.requests[before]
    monkeypatch.setenv("CE_KAFKA_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
    monkeypatch.setenv("CE_KAFKA_SASL_OAUTHBEARER_TOKEN_COMMAND", f"{fetch} {SECRET}")
    assert run("protocol", "api-versions", "-b", brokers).exit_code == 0
    assert not any(text in capture.read_text() for text in ("Bearer", b"Bearer".hex(), SECRET))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sasl.oauthbearer.client.secret": "wrong-Xv9y"}, "/token answers 401: invalid_client; check sasl."),
        ({"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"}, "1/token does not answer: "),
    ],
)
def test_protocol_commands_without_a_token(provider, brokers, run, settings, words):
    """The error has the endpoint, its answer and what to check, and no secret."""
    pairs = client_credentials(provider, **settings).items()
    options = [part for name, value in pairs for part in ("-X", f"{name}={value}")]
    result = run("protocol", "api-versions", "-b", brokers, *options)
    assert (result.exit_code, result.stdout) == (3, "")
    assert words in result.stderr
    assert "wrong-Xv9y" not in result.stderr


@pytest.mark.release
def test_protocol_commands_with_a_token_that_is_refused(provider, brokers, run, fetch):
    """The error says whether the command or the broker refuses, and what to check."""
    command = "sasl.oauthbearer.token.command"
    login = ("protocol", "api-versions", "-b", brokers, "-X", "security.protocol=sasl_plaintext", "-X")
    failed = run(*login, f"{command}={fetch} wrong-Xv9y")
    assert failed.exit_code == 3
    assert "HTTP Error 401: Unauthorized; run it by hand; check sasl.oauthbearer.token" in failed.stderr
    token = provider.token(aud="another")
    refused = run(*login, f"{command}={sys.executable} -c 'print(\"{token}\")'")
    assert refused.exit_code == 3
    assert "the broker refuses the token" in refused.stderr
    assert "check that its issuer, audience and scope" in refused.stderr
    assert not any(secret in failed.stderr + refused.stderr for secret in ("wrong-Xv9y", token))
