"""The logins of the protocol commands, by the settings of the other commands."""

from __future__ import annotations

import os
import ssl

import pytest

from cloudevents_kafka.cli.commands.protocol import _login
from cloudevents_kafka.cli.commands.protocol._login import Login, read_login
from cloudevents_kafka.cli.kafka.settings import load_settings
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.protocol import OAuthBearer, Plain, Scram
from tests.support.cases import each
from tests.support.wire_broker import WireBroker

OIDC = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
    "sasl.oauthbearer.client.id": "shop",
    "sasl.oauthbearer.client.secret": "hunter22",
}


def login(*pairs: str, config=None) -> Login:
    return read_login(load_settings(config, os.environ, pairs, "broker:9092"), 5.0)


def pairs(settings, **more):
    changed = {**settings, **{name.replace("_", "."): value for name, value in more.items()}}
    return [f"{name}={value}" for name, value in changed.items() if value is not None]


def test_without_options():
    """Without options and settings there is neither TLS nor a login."""
    assert login() == Login(tls=False, sasl=None)


@pytest.mark.parametrize(
    ("security", "mechanism", "expected"),
    [
        ("SASL_SSL", "PLAIN", Login(tls=True, sasl=Plain("ann", "secret"))),
        ("sasl_plaintext", "SCRAM-SHA-512", Login(tls=False, sasl=Scram("ann", "secret", "SCRAM-SHA-512"))),
        ("ssl", "PLAIN", Login(tls=True, sasl=None)),
        ("plaintext", "PLAIN", Login(tls=False, sasl=None)),
    ],
)
def test_settings(tmp_path, security, mechanism, expected):
    """A file of the other commands has an effect by its security.protocol; its other settings have none."""
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers=x:1\nclient.id=y\nsecurity.protocol={security}\nsasl.mechanism={mechanism}\n"
        "sasl.username=ann\nsasl.password=secret\nssl.endpoint.identification.algorithm=https\n"
    )
    assert login(config=str(file)) == expected


def test_later_settings_override_earlier_ones(monkeypatch):
    """-X takes the place of the settings of the environment."""
    monkeypatch.setenv("CE_KAFKA_SECURITY_PROTOCOL", "SASL_PLAINTEXT")
    monkeypatch.setenv("CE_KAFKA_SASL_USERNAME", "bob")
    monkeypatch.setenv("CE_KAFKA_SASL_MECHANISM", "SCRAM-SHA-512")
    monkeypatch.setenv("CE_KAFKA_SASL_PASSWORD", "secret")
    assert login("sasl.username=ann").sasl == Scram("ann", "secret", "SCRAM-SHA-512")
    assert login("sasl.mechanism=PLAIN").sasl == Plain("bob", "secret")


def test_a_command_is_a_function_of_the_client():
    """The client calls the command for each token; extensions are passed on."""
    token = 'echo \'{"access_token": "abc", "expires_in": 600}\''
    for more in (["sasl.mechanism=OAUTHBEARER"], []):
        found = login(
            "security.protocol=sasl_plaintext",
            f"sasl.oauthbearer.token.command={token}",
            "sasl.oauthbearer.extensions=logicalCluster=lkc-1",
            *more,
        ).sasl
        assert isinstance(found, OAuthBearer)
        assert (found.token(), found.extensions) == ("abc", {"logicalCluster": "lkc-1"})


@each(
    ("settings", "words"),
    [
        (["group.id=g"], "these commands do not support group.id; leave it out"),
        (["ssl.certificate.location=/x"], "do not support ssl.certificate.location"),
        (["enable.ssl.certificate.verification=false"], "do not support enable.ssl.certificate.verification"),
        (["security.protocol=tls"], "security.protocol must be one of plaintext, ssl, "),
        (["security.protocol=ssl", "ssl.ca.location=/nowhere"], "ssl.ca.location: cannot read certificates"),
        (pairs(OIDC, sasl_mechanism="GSSAPI"), "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256, "),
        (pairs(OIDC, sasl_mechanism="PLAIN"), "PLAIN needs sasl.username and sasl.password"),
        (pairs(OIDC, sasl_oauthbearer_method=None), "OAUTHBEARER needs a token: set sasl.oauthbearer.token."),
        (pairs(OIDC, sasl_oauthbearer_token_command="x"), "exclude each other; leave out one"),
        (pairs(OIDC, sasl_oauthbearer_client_secret=""), "need sasl.oauthbearer.client.secret"),
        (pairs(OIDC, sasl_oauthbearer_token_endpoint_url="file:///x"), "must be a URL of http or https"),
        (pairs(OIDC, https_ca_location="/nowhere"), "https.ca.location: cannot read certificates from /now"),
    ],
)
def test_wrong_settings(settings, words):
    """A setting that is wrong, missing or without effect is bad usage, and no secret is printed."""
    with pytest.raises(BadUsage) as caught:
        login("security.protocol=sasl_plaintext", *settings)
    assert words in caught.value.message
    assert "hunter22" not in caught.value.message


def test_a_certificate_authority_is_trusted(monkeypatch):
    """ssl.ca.location is the authority that is trusted."""
    loaded = []
    monkeypatch.setattr(ssl, "create_default_context", lambda cafile: loaded.append(cafile) or True)
    login("security.protocol=ssl", "ssl.ca.location=ca.pem")
    assert loaded == ["ca.pem"]


def test_the_settings_in_force_are_shown(run):
    """--show-config prints the settings, with the address, and no secret; nothing is connected."""
    done = run(
        "protocol", "api-versions", "-b", "127.0.0.1:1", "-X", "sasl.password=hunter22", "--show-config"
    )
    assert done.exit_code == 0
    assert "bootstrap.servers=127.0.0.1:1" in done.stdout
    assert "hunter22" not in done.stdout


def test_login_by_settings(run, tmp_path):
    """A command logs in by the settings of a file."""
    file = tmp_path / "client.properties"
    with WireBroker("4.3", users={"ann": "secret"}) as broker:
        file.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            "sasl.username=ann\nsasl.password=secret\n"
        )
        assert (
            run("protocol", "api-versions", "-b", broker.bootstrap_servers, "--config", file).exit_code == 0
        )


def test_mechanisms():
    """The command has the mechanisms of the client."""
    assert {"PLAIN", "OAUTHBEARER", "SCRAM-SHA-256", "SCRAM-SHA-512"} == set(_login.CHOICES)
