"""Settings of librdkafka as options of Spark's Kafka source, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloudevents_kafka.spark.kafka_settings import (
    NoCounterpart,
    allow_token_endpoint,
    librdkafka_settings,
    to_java_settings,
)
from tests.support.cases import each

OAUTH = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "https://login.example.com/token",
    "sasl.oauthbearer.client.id": "shop",
    "sasl.oauthbearer.client.secret": 'p"w\\d',
    "sasl.oauthbearer.scope": "kafka",
    "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool-2",
    "https.ca.location": "/ca.pem",
}


@each(
    ("settings", "reason"),
    [
        (
            {"ssl.key.location": "hunter2"},
            "ssl.key.location: cannot read the file that it names: No such file",
        ),
        ({"ssl.key.location": "hunter2\0"}, "it is not a valid file name"),
        ({"hunter2": "x"}, "is a setting of librdkafka"),
        ({"sasl.mechanism": "hunter2", "sasl.username": "a", "sasl.password": "b"}, "PLAIN or SCRAM"),
    ],
)
def test_invalid_kafka_settings(settings: dict[str, str], reason: str) -> None:
    """The errors for invalid settings do not contain values, which may be secrets."""
    with pytest.raises(ValueError, match=reason) as caught:
        to_java_settings(settings)
    assert "hunter2" not in str(caught.value)


def test_a_key_that_is_not_text(tmp_path: Path) -> None:
    """A key in a binary format is an error without its bytes."""
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"it is not PEM, which is text$"):
        to_java_settings({"ssl.key.location": str(tmp_path / "key")})


@each("kind", ["RSA", "EC", "DSA"])
def test_a_key_that_java_cannot_read(kind: str, tmp_path: Path) -> None:
    """Only librdkafka reads a key that is not in PKCS#8; the error says how to convert the key."""
    (tmp_path / "key").write_text(f"-----BEGIN {kind} PRIVATE KEY-----\nhunter2\n")
    with pytest.raises(ValueError, match=f"got BEGIN {kind} PRIVATE KEY; .*openssl pkcs8") as caught:
        to_java_settings({"ssl.key.location": str(tmp_path / "key")})
    assert "hunter2" not in str(caught.value)


def test_kafka_settings_of_librdkafka(tmp_path: Path) -> None:
    """Settings of librdkafka for SASL and TLS become those of the Java client."""
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_text("CHAIN")
    key.write_text("KEY")
    options = to_java_settings(
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


def test_no_check_of_host_names() -> None:
    """Librdkafka switches the check of host names off with "none", and Java with an empty text."""
    name = "ssl.endpoint.identification.algorithm"
    options = to_java_settings({name: "None"})
    assert options == {f"kafka.{name}": ""}
    assert librdkafka_settings({"kafka.bootstrap.servers": "b:1", **options})[name] == "none"


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
        to_java_settings(settings)


def test_client_credentials() -> None:
    """A login by client credentials becomes that of Java's client, with its extensions."""
    assert to_java_settings(OAUTH) == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            'clientId="shop" clientSecret="p\\"w\\\\d" scope="kafka" ssl.truststore.location="/ca.pem" '
            'ssl.truststore.type="PEM" extension_logicalCluster="lkc-1" extension_identityPoolId="pool-2";'
        ),
        "kafka.sasl.login.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        ),
        "kafka.sasl.oauthbearer.token.endpoint.url": "https://login.example.com/token",
    }


def test_client_credentials_and_back() -> None:
    """The options of Spark's source connect librdkafka by the same client credentials."""
    back = librdkafka_settings({"kafka.bootstrap.servers": "b:1", **to_java_settings(OAUTH)})
    assert back == {"bootstrap.servers": "b:1", **OAUTH}


def test_the_other_names_of_client_credentials() -> None:
    """Librdkafka has two names for the id and the secret."""
    short = {**OAUTH}
    for name in ("id", "secret"):
        short[f"sasl.oauthbearer.client.credentials.client.{name}"] = short.pop(
            f"sasl.oauthbearer.client.{name}"
        )
    assert to_java_settings(short) == to_java_settings(OAUTH)


@each(
    ("changed", "words"),
    [
        ({"sasl.oauthbearer.client.secret": ""}, "method=oidc needs sasl.oauthbearer.client.secret$"),
        ({"sasl.mechanism": "PLAIN"}, "need sasl.mechanism=OAUTHBEARER and sasl.oauthbearer.method=oidc"),
        ({"sasl.oauthbearer.method": "default"}, "and sasl.oauthbearer.method=oidc"),
        ({"sasl.oauthbearer.extensions": "hunter2"}, "must be name=value"),
        ({"sasl.oauthbearer.extensions": "hunter 2=x"}, "with letters as names"),
        ({"sasl.oauthbearer.grant.type": "hunter2"}, "grant.type is a setting of librdkafka"),
    ],
)
def test_incomplete_client_credentials(changed: dict[str, str], words: str) -> None:
    """Client credentials that are incomplete, or of another kind, are refused without their values."""
    with pytest.raises(ValueError, match=words) as caught:
        to_java_settings({**OAUTH, **changed})
    assert "hunter" not in str(caught.value)


def test_a_login_class_of_java() -> None:
    """A login that only Java has is passed through, without settings of librdkafka for it."""
    assert to_java_settings({"sasl.mechanism": "OAUTHBEARER"}) == {"kafka.sasl.mechanism": "OAUTHBEARER"}


def test_newer_clients_may_reach_the_endpoint() -> None:
    """Java gets the list of allowed URLs that Kafka's clients require from 4.0 on, unless there is one."""
    name, option = "spark.driver.extraJavaOptions", "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
    kafka = to_java_settings(OAUTH)
    conf = allow_token_endpoint({name: "-Xss2m"}, kafka)
    assert conf[name] == f"-Xss2m {option}https://login.example.com/token"
    assert conf["spark.executor.extraJavaOptions"] == f"{option}https://login.example.com/token"
    own = {name: f"{option}https://other"}
    assert allow_token_endpoint(own, kafka) == own
    assert allow_token_endpoint({}, {}) == {}
    secret = {"kafka.sasl.oauthbearer.token.endpoint.url": "https://login.example.com/token?key=x"}
    assert allow_token_endpoint({}, secret) == {}


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
