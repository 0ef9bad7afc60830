"""TLS and SASL on a real broker's listeners; passwords do not appear anywhere."""

from __future__ import annotations

import io
import json
import re
import secrets
import ssl
import subprocess
import time
import traceback

import pytest
from click.testing import CliRunner
from confluent_kafka import admin

from cloudevents_kafka.cli.app import app
from cloudevents_kafka.jvm import find_java
from cloudevents_kafka.protocol import (
    LATEST,
    AuthenticationFailed,
    BrokerError,
    Client,
    Plain,
    ProtocolError,
    Scram,
    TopicPartition,
)
from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.client import CLIENT_VERSIONS
from cloudevents_kafka.protocol.schema import Versions
from cloudevents_kafka.testing import LocalBroker
from cloudevents_kafka.testing.local import free_ports

from .kafkas import delivered, pairs, read, write

pytestmark = pytest.mark.broker

PASSWORD = secrets.token_urlsafe(12)
USERS = [Plain("alice", PASSWORD), *(Scram("bob,=", PASSWORD, f"SCRAM-SHA-{n}") for n in (256, 512))]
SASL_IDS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class Secured:
    """A broker with a listener for each kind of security."""

    def __init__(self, folder):
        self.plain, self.tls, self.sasl, self.both = ports = free_ports(4)
        kinds = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
        listeners = [f"{kind}://127.0.0.1:{port}" for kind, port in zip(kinds, ports, strict=True)]
        self.certificate, store = certificate(folder)
        [controller] = free_ports(1)
        self.broker = LocalBroker(
            port=self.plain,
            properties={
                "listeners": ",".join([*listeners, f"CONTROLLER://127.0.0.1:{controller}"]),
                "advertised.listeners": ",".join(listeners),
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
                "listener.security.protocol.map": ",".join(f"{k}:{k}" for k in kinds)
                + ",CONTROLLER:PLAINTEXT",
                "ssl.keystore.location": store,
                "ssl.keystore.password": "changeit",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                "connections.max.reauth.ms": 1500,
                **{
                    f"listener.name.{kind}.{mechanism}.sasl.jaas.config": login
                    for kind in ("sasl_plaintext", "sasl_ssl")
                    for mechanism, login in LOGINS.items()
                },
            },
        )

    def client(self, port, **settings):
        return Client(f"127.0.0.1:{port}", timeout=10.0, **settings)

    def context(self):
        return ssl.create_default_context(cafile=self.certificate)


_MODULES = "org.apache.kafka.common.security"
LOGINS = {
    "plain": f'{_MODULES}.plain.PlainLoginModule required user_alice="{PASSWORD}";',
    "scram-sha-256": f"{_MODULES}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_MODULES}.scram.ScramLoginModule required;",
}


def certificate(folder):
    """Return a certificate for 127.0.0.1 and the store with its key, by Java's keytool."""
    tool, store, path = find_java().home / "bin" / "keytool", folder / "store.p12", folder / "broker.pem"
    common = ["-keystore", store, "-storetype", "PKCS12", "-storepass", "changeit", "-alias", "broker"]
    made = [
        "-genkeypair",
        "-keyalg",
        "EC",
        "-dname",
        "CN=broker",
        "-ext",
        "san=ip:127.0.0.1",
        "-validity",
        "2",
    ]
    for arguments in (made, ["-exportcert", "-rfc", "-file", path]):
        subprocess.run([tool, *arguments, *common], check=True, capture_output=True, timeout=60)
    return path, store


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """The broker, with users of both mechanisms."""
    made = Secured(tmp_path_factory.mktemp("tls"))
    with made.broker as broker:
        client = admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        for mechanism in (admin.ScramMechanism.SCRAM_SHA_256, admin.ScramMechanism.SCRAM_SHA_512):
            about = admin.ScramCredentialInfo(mechanism, 4096)
            change = admin.UserScramCredentialUpsertion("bob,=", about, PASSWORD.encode())
            for future in client.alter_user_scram_credentials([change]).values():
                future.result(20)
        broker.create_topic("secured")
        yield made


def round_trip(client):
    value = secrets.token_bytes(8)
    [offset] = delivered(write(client, "secured", [{"value": value}]))
    assert (None, value) in pairs(read(client, "secured", offset + 1))


def test_tls(secured):
    """Records go over TLS where the broker's certificate is trusted."""
    with secured.client(secured.tls, tls=secured.context()) as client:
        round_trip(client)


@pytest.mark.parametrize(
    ("command", "listener"),
    [
        ("consume", "tls"),
        ("topics", "sasl"),
        *(pytest.param("produce", name, marks=pytest.mark.release) for name in ("tls", "sasl", "both")),
        *(pytest.param("doctor", name, marks=pytest.mark.release) for name in ("tls", "sasl", "both")),
    ],
)
def test_commands_have_the_reason_of_the_client(secured, command, listener):
    """A command without TLS or SASL says why the broker closes its connections, and which setting it is."""
    words = {"consume": ["-t", "secured"], "produce": ["-t", "secured", "--source", "/", "--type", "t"]}
    at = f"127.0.0.1:{getattr(secured, listener)}"
    result = CliRunner().invoke(app, [command, "-b", at, "--timeout", "2", *words.get(command, [])])
    said = result.stdout if command == "doctor" else result.stderr
    assert result.exit_code == 3
    assert f"broker {at} did not answer within 2 s: {at}/bootstrap: " in said
    assert re.search("Disconnected|Broken pipe|Connection reset", said)
    assert (
        "check security.protocol (--show-config), and -b" in said or "and security.protocol (--show" in said
    )
    assert "brokers are down" not in said


def test_an_untrusted_certificate_is_not_retried(secured):
    """An untrusted certificate raises an error at once, without retries."""
    began = time.monotonic()
    with (
        secured.client(secured.tls, tls=True) as client,
        pytest.raises(AuthenticationFailed, match="self-signed"),
    ):
        client.metadata()
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("sasl", USERS, ids=SASL_IDS)
@pytest.mark.parametrize("tls", [False, True], ids=["bare", "tls"])
def test_log_in(secured, sasl, tls):
    """Users authenticate by each mechanism, with and without TLS; traces do not have the password."""
    trace, port = io.StringIO(), secured.both if tls else secured.sasl
    with secured.client(port, tls=secured.context() if tls else False, sasl=sasl, trace=trace) as client:
        round_trip(client)
    frames = [json.loads(line) for line in trace.getvalue().splitlines()]
    assert frames
    everything = b"".join(bytes.fromhex(row.get("sent") or row["received"]) for row in frames)
    assert PASSWORD.encode() not in everything
    assert PASSWORD not in repr(client) + repr(sasl) + trace.getvalue()


def produce_and_read(client, seconds, pause=0.0):
    """Produce records one by one and read each, for some seconds; return the number of them."""
    with client.producer() as producer, client.consumer(auto_commit=None) as consumer:
        consumer.assign([TopicPartition("secured", 0, client.offset_at("secured", 0, LATEST))])
        end, sent, found = time.monotonic() + seconds, 0, 0
        while time.monotonic() < end:
            producer.produce("secured", b"v")
            sent += 1
            assert producer.flush(10) == 0
            found += consumer.poll(10) is not None
            time.sleep(pause)
    assert found == sent
    return sent


def requests_of(frames):
    return [int.from_bytes(frame.data[4:6]) for frame in frames if frame.direction == "sent"]


RELEASE = pytest.mark.release  # the rest is the sample


@pytest.mark.parametrize(
    ("sasl", "pause"),
    [
        pytest.param(USERS[0], 0.0, id="PLAIN-busy", marks=RELEASE),
        pytest.param(USERS[0], 2.0, id="PLAIN-idle", marks=RELEASE),
        pytest.param(USERS[1], 0.0, id="SCRAM-SHA-256-busy", marks=pytest.mark.release),
        pytest.param(USERS[2], 2.0, id="SCRAM-SHA-512-idle", marks=RELEASE),
    ],
)
def test_log_in_again(secured, sasl, pause):
    """Sessions of 1.5 seconds are renewed on the same connections, also after they have ended."""
    frames = []
    with secured.client(secured.sasl, sasl=sasl, trace=frames.append) as client:
        assert produce_and_read(client, 3.5, pause)
    keys = requests_of(frames)
    connections = keys.count(ApiKey.API_VERSIONS)
    assert connections == 3  # of the client, the producer and the consumer: none is opened again
    assert keys.count(ApiKey.SASL_HANDSHAKE) >= connections + 2


@pytest.mark.parametrize("sasl", [pytest.param(USERS[0], marks=RELEASE), USERS[2]], ids=["PLAIN", "SCRAM"])
def test_log_in_without_requests(secured, sasl, monkeypatch):
    """After a handshake of version 0 tokens are sent bare; the broker ends such sessions in time."""
    monkeypatch.setitem(CLIENT_VERSIONS, ApiKey.SASL_HANDSHAKE, Versions(0, 0))
    frames = []
    with secured.client(secured.sasl, sasl=sasl, trace=frames.append) as client:
        assert produce_and_read(client, 2.0)
    keys = requests_of(frames)
    assert ApiKey.SASL_AUTHENTICATE not in keys
    assert keys.count(ApiKey.SASL_HANDSHAKE) == keys.count(ApiKey.API_VERSIONS) > 3
    wrong = sasl._replace(password=f"wrong-{PASSWORD}")
    with secured.client(secured.sasl, sasl=wrong) as client, pytest.raises(AuthenticationFailed):
        client.metadata()


@pytest.mark.parametrize("password", ["\u2168\u00a0", "I\u00adX"])
def test_passwords_that_saslprep_changes(secured, password):
    """Kafka's broker stores passwords as they are, and so they log in."""
    admins = admin.AdminClient({"bootstrap.servers": f"127.0.0.1:{secured.plain}"})
    about = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_256, 4096)
    change = admin.UserScramCredentialUpsertion("carol", about, password.encode())
    for future in admins.alter_user_scram_credentials([change]).values():
        future.result(20)
    with secured.client(secured.sasl, sasl=Scram("carol", password)) as client:
        assert client.metadata().brokers


@pytest.mark.parametrize("sasl", USERS, ids=SASL_IDS)
def test_wrong_password(secured, sasl):
    """A wrong password raises an error at once, which does not have the password."""
    wrong = sasl._replace(password=f"wrong-{PASSWORD}")
    began = time.monotonic()
    with (
        secured.client(secured.sasl, sasl=wrong) as client,
        pytest.raises(AuthenticationFailed, match=r"[Aa]uthentication failed") as caught,
    ):
        client.metadata()
    assert time.monotonic() - began < 5
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


def test_wrong_password_of_producer_and_consumer(secured):
    """Producers report the error for each record, and consumers raise it."""
    with secured.client(secured.sasl, sasl=Plain("alice", "wrong")) as client:
        [(error, _)] = write(client, "secured", [{"value": b"v"}])
        assert isinstance(error, AuthenticationFailed)
        with client.consumer(group="g") as consumer:
            consumer.subscribe(["secured"])
            with pytest.raises(AuthenticationFailed):
                consumer.poll(20)
        with pytest.raises(AuthenticationFailed):
            read(client, "secured", 1)


def test_a_missing_login(secured):
    """Without authentication the broker disconnects; the error has the possible cause."""
    address = f"127.0.0.1:{secured.sasl}"
    with Client(address, timeout=2.0) as client, pytest.raises(ProtocolError, match="TLS or SASL"):
        client.metadata()


def test_unknown_mechanism(secured):
    """An unsupported mechanism raises an error with the supported ones."""
    sasl = Scram("bob", PASSWORD, "SCRAM-SHA-1")
    with (
        secured.client(secured.sasl, sasl=sasl) as client,
        pytest.raises(BrokerError, match=r"it offers .*PLAIN"),
    ):
        client.metadata()
