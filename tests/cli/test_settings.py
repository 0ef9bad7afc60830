"""Settings come from a file, the environment and the command line; secrets are never shown."""

from __future__ import annotations

import pytest

from cloudevents_kafka.cli.failures import BadUsage
from cloudevents_kafka.cli.settings import MASK, Settings, gather, is_secret


def gathered(
    *options: str, env: dict[str, str] | None = None, config: str | None = None, brokers: str | None = None
) -> Settings:
    return gather(config, env or {}, options, brokers)


def test_later_origins_win(tmp_path):
    """The file is overruled by the environment, and that by the command line."""
    file = tmp_path / "client.properties"
    file.write_text("# comment\n! too\n\nclient.id = file\nlinger.ms=1\nbootstrap.servers=a:1\nacks=1\n")
    env = {"CE_KAFKA_CLIENT_ID": "env", "CE_KAFKA_LINGER_MS": "2", "CE_KAFKA_ACKS": "", "KAFKA_X": "y"}
    settings = gathered("client.id=flag", env=env, config=str(file), brokers="b:2")
    assert settings.effective == {
        "client.id": "flag",
        "linger.ms": "2",
        "bootstrap.servers": "b:2",
        "acks": "1",
    }
    assert gathered(env={"CE_KAFKA_CONFIG": str(file)}).effective["client.id"] == "file"


def test_names_of_the_environment():
    """Underscores become dots, but for the setting that has an underscore itself."""
    env = {"CE_KAFKA_LOG_LEVEL": "7", "CE_KAFKA_SSL_CA_LOCATION": "/x"}
    assert gathered(env=env).effective == {"log_level": "7", "ssl.ca.location": "/x"}


def test_secrets_from_files(tmp_path):
    """A secret may stand in a file of its own, wherever the setting comes from."""
    file = tmp_path / "secret"
    file.write_text("p w=1 \n")
    assert gathered(f"sasl.password@={file}").effective == {"sasl.password": "p w=1 "}
    env = {"CE_KAFKA_SASL_PASSWORD_FILE": str(file), "CE_KAFKA_SASL_OAUTHBEARER_ASSERTION_FILE": "/y"}
    assert gathered(env=env).effective == {
        "sasl.password": "p w=1 ",
        "sasl.oauthbearer.assertion.file": "/y",
    }
    config = tmp_path / "c.properties"
    config.write_text(f"ssl.key.password@ = {file}\n")
    assert gathered(config=str(config)).effective == {"ssl.key.password": "p w=1 "}


SECRETS = [
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
    "sasl.jaas.config",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "basic.auth.user.info",
    "SASL.PASSWORD",
]
OPEN = [
    "bootstrap.servers",
    "sasl.username",
    "ssl.key.location",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.mechanisms",
    "client.id",
    "ssl.ca.location",
    "sasl.oauthbearer.assertion.private.key.file",
]


@pytest.mark.parametrize(("name", "secret"), [*((n, True) for n in SECRETS), *((n, False) for n in OPEN)])
def test_which_settings_are_secret(name, secret):
    """Passwords, keys and tokens are secret; where they are kept is not."""
    assert is_secret(name) is secret


def test_what_is_shown_has_no_secret():
    """Settings are shown by origin, secrets masked, so that --config can read them again."""
    settings = gathered(
        "sasl.password=hunter22", "x.url=http://me:hunter22@h/", env={"CE_KAFKA_CLIENT_ID": "me"}
    ).with_defaults("defaults", {"client.id": "no", "linger.ms": "5"})
    assert settings.shown() == (
        "# defaults\nlinger.ms=5\n# environment\nclient.id=me\n"
        f"# command line\nsasl.password={MASK}\nx.url=http://{MASK}@h/\n"
    )
    assert settings.redact("hunter22 at http://a:b@c") == f"{MASK} at http://{MASK}@c"


def test_rules_win():
    """What a command cannot do without wins over what a user says."""
    assert gathered("a=1").with_rules("rules", {"a": "2"}).effective == {"a": "2"}


BAD = [
    ("hunter22", "name=value"),
    ("=hunter22", "name=value"),
    ("error_cb=hunter22", "function of Python"),
    ("sasl.password@=/not/there", "sasl.password: cannot read /not/there"),
]


@pytest.mark.parametrize(("option", "reason"), BAD)
def test_bad_settings(option, reason):
    """A setting that cannot be is an error that does not repeat what may be a secret."""
    with pytest.raises(BadUsage) as caught:
        gathered(option)
    assert reason in caught.value.message
    assert "hunter22" not in caught.value.message


def test_no_file():
    """A file that is not there is named."""
    with pytest.raises(BadUsage, match="/not/there"):
        gathered(config="/not/there")


def test_no_brokers():
    """Without brokers there is an error that says the three ways to give them."""
    with pytest.raises(BadUsage, match="CE_KAFKA_BOOTSTRAP_SERVERS"):
        _ = gathered().brokers
