"""Settings come from a file, the environment and the command line; secrets are never shown."""

from __future__ import annotations

import pytest

from cloudevents_kafka.cli.kafka import Settings, load_settings
from cloudevents_kafka.cli.terminal import BadUsage
from cloudevents_kafka.redaction import MASK


def gathered(
    *options: str, env: dict[str, str] | None = None, config: str | None = None, brokers: str | None = None
) -> Settings:
    return load_settings(config, env or {}, options, brokers)


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


def test_what_is_shown_has_no_secret():
    """Settings are shown by origin; what is not known to be harmless is masked, name and value."""
    settings = gathered(
        "sasl.password=hunter22", "aHVudGVyMjI=", env={"CE_KAFKA_CLIENT_ID": "me"}
    ).with_defaults("defaults", {"client.id": "no", "linger.ms": "5"})
    assert settings.to_text() == (
        "# defaults\nlinger.ms=5\n# environment\nclient.id=me\n"
        f"# command line\n{MASK}={MASK}\nsasl.password={MASK}\n"
    )
    assert settings.redact("hunter22 at http://a:b@c") == f"{MASK} at http://{MASK}@c"
    assert "hunter22" not in repr(settings)


def test_rules_win():
    """What a command cannot do without wins over what a user says."""
    assert gathered("a=1").with_overrides("rules", {"a": "2"}).effective == {"a": "2"}


BAD = [
    ("hunter22", "name=value"),
    ("=hunter22", "name=value"),
    ("error_cb=hunter22", "Python function"),
    ("hunter22_cb=x", "Python function"),
    ("sasl.password@=hunter22", "-X: sasl.password: cannot read the file that it names: No such file"),
    ("client.id@=~hunter22", "the name is not a file name"),
    ("client.id@=hunter22\0", "the name is not a file name"),
    (f"client.id@=/{'hunter22' * 60}", "File name too long"),
    ("hunter22@=/not/there", "-X: ********: cannot read"),
]


@pytest.mark.parametrize(("option", "reason"), BAD)
def test_bad_settings(option, reason):
    """A setting that cannot be is an error that does not repeat what may be a secret."""
    with pytest.raises(BadUsage) as caught:
        gathered(option)
    assert reason in caught.value.message
    assert "hunter22" not in caught.value.message


def test_bad_secret_files(tmp_path):
    """A file that is not UTF-8, and a folder, are errors without the name of either."""
    (tmp_path / "hunter22").write_bytes(b"\xff")
    (tmp_path / "hunter22d").mkdir()
    for name, reason in (("hunter22", "not UTF-8"), ("hunter22d", "Is a directory")):
        with pytest.raises(BadUsage, match=reason) as caught:
            gathered(env={"CE_KAFKA_SASL_PASSWORD_FILE": str(tmp_path / name)})
        assert "hunter22" not in caught.value.message
        assert "CE_KAFKA_SASL_PASSWORD_FILE" in caught.value.message


def test_bad_lines_of_a_file(tmp_path):
    """A line of a file that cannot be is named by its number."""
    file = tmp_path / "c.properties"
    file.write_text("acks=1\n\n# comment\nhunter22\n")
    with pytest.raises(BadUsage, match=r"c\.properties, line 4: a setting must be") as caught:
        gathered(config=str(file))
    assert "hunter22" not in caught.value.message


def test_what_a_line_may_have(tmp_path):
    """Only a line end ends a line: other characters, which Python takes for one, may stand in a password."""
    file = tmp_path / "c.properties"
    file.write_text("sasl.password=a\x0cb\x85c\u2028d\r\nacks=1", encoding="utf-8", newline="")
    assert gathered(config=str(file)).effective == {"sasl.password": "a\x0cb\x85c\u2028d", "acks": "1"}


@pytest.mark.parametrize("brokers", ["me:hunter22@h:9092", "SSL://me:hunter22@h:9092", "a:1,me@h:1"])
def test_no_credentials_in_addresses(brokers):
    """Kafka has no credentials in addresses: they are refused, and not repeated."""
    with pytest.raises(BadUsage, match=r"sasl\.username and sasl\.password") as caught:
        _ = gathered(brokers=brokers).bootstrap_servers
    assert "hunter22" not in caught.value.message


def test_no_file():
    """A file that is not there is named."""
    with pytest.raises(BadUsage, match="/not/there"):
        gathered(config="/not/there")


def test_no_brokers():
    """Without brokers there is an error that says the three ways to give them."""
    with pytest.raises(BadUsage, match="CE_KAFKA_BOOTSTRAP_SERVERS"):
        _ = gathered().bootstrap_servers
