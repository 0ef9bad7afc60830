"""The logins of managed services over TLS: PLAIN, SCRAM, and tokens of an https endpoint, by each client."""

from __future__ import annotations

import ssl
import subprocess
import sys
from importlib.util import find_spec

import pytest
from confluent_kafka import Producer, admin

from cloudevents_kafka.jvm import find_java
from cloudevents_kafka.testing import LocalBroker
from cloudevents_kafka.testing.local import free_ports
from tests.support.oidc import OAUTH_LISTENER, IdentityProvider, client_credentials
from tests.support.wire import self_signed

pytestmark = [pytest.mark.broker, pytest.mark.release, pytest.mark.timeout(300)]

CONNECTION_STRING = "Endpoint=sb://shop/;SharedAccessKey=a+b="
MODULES = "org.apache.kafka.common.security"
LISTENER = "listener.name.sasl_ssl"
WAYS = {
    "PLAIN": {"sasl.mechanism": "PLAIN", "sasl.username": "key", "sasl.password": 'pass"word'},
    "Event Hubs": {
        "sasl.mechanism": "PLAIN",
        "sasl.username": "$ConnectionString",
        "sasl.password": CONNECTION_STRING,
    },
    "SCRAM": {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "shop", "sasl.password": "password"},
    "tokens": {},
}


def broker_certificate(folder):
    """Return a certificate for 127.0.0.1 and the store with its key, by Java's keytool."""
    tool, store, path = find_java().home / "bin" / "keytool", folder / "store.p12", folder / "broker.pem"
    common = ["-keystore", store, "-storetype", "PKCS12", "-storepass", "changeit", "-alias", "broker"]
    made = ["-genkeypair", "-keyalg", "EC", "-dname", "CN=broker", "-ext", "san=ip:127.0.0.1"]
    for arguments in (made, ["-exportcert", "-rfc", "-file", path]):
        subprocess.run([tool, *arguments, *common], check=True, capture_output=True, timeout=60)
    return path, store


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """The settings of each login, for a broker and a token endpoint with authorities of their own."""
    folder = tmp_path_factory.mktemp("tls")
    path, store = broker_certificate(folder)
    certificate, key = self_signed(folder)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    plain, secured, controller = free_ports(3)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SASL_SSL://127.0.0.1:{secured}"
    with IdentityProvider() as keys, IdentityProvider(tls, keys) as provider:
        broker = LocalBroker(
            port=plain,
            properties={
                "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
                "advertised.listeners": listeners,
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
                "listener.security.protocol.map": (
                    "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT"
                ),
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
                "ssl.keystore.location": store,
                "ssl.keystore.password": "changeit",
                f"{LISTENER}.plain.sasl.jaas.config": (
                    f'{MODULES}.plain.PlainLoginModule required user_key="pass\\"word" '
                    f'user_$ConnectionString="{CONNECTION_STRING}";'
                ),
                f"{LISTENER}.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
                **{f"{LISTENER}.oauthbearer.{name}": value for name, value in OAUTH_LISTENER.items()},
                "sasl.oauthbearer.jwks.endpoint.url": f"{keys.url}/keys",
                "sasl.oauthbearer.expected.audience": "kafka",
            },
            jvm_options=[f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.url}/keys"],
        )
        with broker:
            broker.create_topic("orders")
            client = admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            about = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_512, 4096)
            change = admin.UserScramCredentialUpsertion("shop", about, b"password")
            for future in client.alter_user_scram_credentials([change]).values():
                future.result(20)
            common = {"bootstrap.servers": f"127.0.0.1:{secured}", "ssl.ca.location": str(path)}
            tokens = {**client_credentials(provider), "https.ca.location": str(certificate)}
            yield {
                name: {**common, **(login or tokens), "security.protocol": "SASL_SSL"}
                for name, login in WAYS.items()
            }


@pytest.mark.parametrize("way", WAYS)
def test_confluent_kafka(settings, way):
    """A producer of confluent-kafka delivers."""
    errors = []
    producer = Producer({**settings[way], "log_level": 0})
    producer.produce("orders", b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert errors == [None]


@pytest.mark.parametrize("way", WAYS)
def test_the_command_line(settings, way, tmp_path):
    """Doctor reports that the broker answers to a file of settings, and so does our client."""
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings[way].items()))
    argv = [sys.executable, "-m", "cloudevents_kafka", "doctor", "consume", "--config", str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " answers: 1 broker, " in done.stdout
    argv[3:5] = ["protocol", "api-versions", "-b", settings[way]["bootstrap.servers"]]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is not installed")
def test_spark(settings):
    """Spark reads the topic by each login."""
    from cloudevents_kafka.spark.pipeline import local_session, to_java_settings

    with local_session(master="local[1]") as spark:
        for login in settings.values():
            address = login["bootstrap.servers"]
            options = {"kafka.bootstrap.servers": address, "subscribe": "orders", **to_java_settings(login)}
            assert spark.read.format("kafka").options(**options).load().count() >= 0
