"""Settings from a file, the environment and the command line; secrets are never printed."""

from __future__ import annotations

import pytest

from cloudevents_kafka.cli.kafka.settings import Settings, load_settings
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.primitives.redaction import MASK
from tests.support.cases import each


def settings_of(
    *options: str, env: dict[str, str] | None = None, config: str | None = None, brokers: str | None = None
) -> Settings:
    return load_settings(config, env or {}, options, brokers)


def test_later_sources_win(tmp_path):
    """The environment overrides the file, and the command line overrides both."""
    file = tmp_path / "client.properties"
    file.write_text("# comment\n! too\n\nclient.id = file\nlinger.ms=1\nbootstrap.servers=a:1\nacks=1\n")
    env = {"CE_KAFKA_CLIENT_ID": "env", "CE_KAFKA_LINGER_MS": "2", "CE_KAFKA_ACKS": "", "KAFKA_X": "y"}
    settings = settings_of("client.id=flag", env=env, config=str(file), brokers="b:2")
    assert settings.effective == {
        "client.id": "flag",
        "linger.ms": "2",
        "bootstrap.servers": "b:2",
        "acks": "1",
    }
    assert settings_of(env={"CE_KAFKA_CONFIG": str(file)}).effective["client.id"] == "file"


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    """Files that a program on Windows has written begin with a mark; settings and secrets do not have it."""
    (file := tmp_path / "client.properties").write_bytes(b"\xef\xbb\xbfbootstrap.servers=a:1\r\nacks=1\r\n")
    assert settings_of(config=str(file)).effective == {"bootstrap.servers": "a:1", "acks": "1"}
    (secret := tmp_path / "secret").write_bytes(b"\xef\xbb\xbfhunter22\r\n")
    assert settings_of(f"sasl.password@={secret}").effective == {"sasl.password": "hunter22"}


def test_names_of_the_environment():
    """Underscores become dots, except in log_level."""
    env = {"CE_KAFKA_LOG_LEVEL": "7", "CE_KAFKA_SSL_CA_LOCATION": "/x"}
    assert settings_of(env=env).effective == {"log_level": "7", "ssl.ca.location": "/x"}


def test_secrets_from_files(tmp_path):
    """A value can be read from a file, in every source of settings."""
    file = tmp_path / "secret"
    file.write_text("p w=1 \n")
    assert settings_of(f"sasl.password@={file}").effective == {"sasl.password": "p w=1 "}
    env = {"CE_KAFKA_SASL_PASSWORD_FILE": str(file), "CE_KAFKA_SASL_OAUTHBEARER_ASSERTION_FILE": "/y"}
    assert settings_of(env=env).effective == {
        "sasl.password": "p w=1 ",
        "sasl.oauthbearer.assertion.file": "/y",
    }
    config = tmp_path / "c.properties"
    config.write_text(f"ssl.key.password@ = {file}\n")
    assert settings_of(config=str(config)).effective == {"ssl.key.password": "p w=1 "}


def test_printed_settings_have_no_secret():
    """Settings are grouped by source; names and values not known to be harmless are masked."""
    settings = settings_of(
        "sasl.password=hunter22", "aHVudGVyMjI=", env={"CE_KAFKA_CLIENT_ID": "me"}
    ).with_defaults("defaults", {"client.id": "no", "linger.ms": "5"})
    assert settings.to_text() == (
        "# defaults\nlinger.ms=5\nlog_level=0\n# environment\nclient.id=me\n"
        f"# command line\n{MASK}={MASK}\nsasl.password={MASK}\n"
    )
    assert settings.redact("hunter22 at http://a:b@c") == f"{MASK} at http://{MASK}@c"
    assert "hunter22" not in repr(settings)


def test_overrides_win():
    """The overrides of a command override the settings of the user."""
    assert settings_of("a=1").with_overrides("rules", {"a": "2"}).effective == {"a": "2"}


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


@each(("option", "reason"), BAD)
def test_bad_settings(option, reason):
    """The error of an invalid setting does not quote text that may be a secret."""
    with pytest.raises(BadUsage) as caught:
        settings_of(option)
    assert reason in caught.value.message
    assert "hunter22" not in caught.value.message


def test_bad_secret_files(tmp_path):
    """A file that is not UTF-8, and a folder, are errors without their names."""
    (tmp_path / "hunter22").write_bytes(b"\xff")
    (tmp_path / "hunter22d").mkdir()
    for name, reason in (("hunter22", "not UTF-8"), ("hunter22d", "Is a directory")):
        with pytest.raises(BadUsage, match=reason) as caught:
            settings_of(env={"CE_KAFKA_SASL_PASSWORD_FILE": str(tmp_path / name)})
        assert "hunter22" not in caught.value.message
        assert "CE_KAFKA_SASL_PASSWORD_FILE" in caught.value.message


def test_bad_lines_of_a_file(tmp_path):
    """An invalid line of a file is reported with its number."""
    file = tmp_path / "c.properties"
    file.write_text("acks=1\n\n# comment\nhunter22\n")
    with pytest.raises(BadUsage, match=r"c\.properties, line 4: a setting must be") as caught:
        settings_of(config=str(file))
    assert "hunter22" not in caught.value.message


def test_line_ends(tmp_path):
    """Only LF ends a line: characters that Python's splitlines splits at can be part of a password."""
    file = tmp_path / "c.properties"
    file.write_text("sasl.password=a\x0cb\x85c\u2028d\r\nacks=1", encoding="utf-8", newline="")
    assert settings_of(config=str(file)).effective == {"sasl.password": "a\x0cb\x85c\u2028d", "acks": "1"}


@each("brokers", ["me:hunter22@h:9092", "SSL://me:hunter22@h:9092", "a:1,me@h:1"])
def test_no_credentials_in_addresses(brokers):
    """Credentials in an address are refused and not quoted."""
    with pytest.raises(BadUsage, match=r"sasl\.username and sasl\.password") as caught:
        _ = settings_of(brokers=brokers).bootstrap_servers
    assert "hunter22" not in caught.value.message


def test_no_file():
    """The error of a missing file has its name."""
    with pytest.raises(BadUsage, match="/not/there"):
        settings_of(config="/not/there")


def test_no_brokers():
    """The error of missing brokers has the three ways to set them."""
    with pytest.raises(BadUsage, match="CE_KAFKA_BOOTSTRAP_SERVERS"):
        _ = settings_of().bootstrap_servers
