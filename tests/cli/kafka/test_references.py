"""Settings as they are written: what may stand in a file that others read, and what a reference reads."""

from __future__ import annotations

import pytest

from cloudevents_kafka.cli.kafka.references import (
    Reference,
    may_be_secret,
    read_settings,
    settings_of_pairs,
    settings_of_table,
)
from cloudevents_kafka.cli.terminal.errors import BadUsage
from tests.support.cases import each

SECRET = "hunter2-hunter2"
SECRETS = [
    ("sasl.password", SECRET),
    ("sasl.oauthbearer.client.secret", SECRET),
    ("kafka.sasl.jaas.config", f'x required password="{SECRET}";'),
    ("spark.hadoop.fs.s3a.secret.key", SECRET),
    ("schema.registry.url", f"https://me:{SECRET}@registry:8081"),
    ("spark.jars.repositories", f"https://{SECRET}@repository/x"),
    ("spark.driver.extraJavaOptions", f"-Djavax.net.ssl.trustStorePassword={SECRET}"),
    ("client.id", f"Bearer {SECRET}"),
]
HARMLESS = [
    ("bootstrap.servers", "a:1,[::1]:2"),
    ("sasl.username", "me@example.com"),
    ("sasl.username", "$ConnectionString"),
    ("kafka.sasl.kerberos.service.name", "kafka"),
    ("sasl.oauthbearer.token.endpoint.url", "https://login.example.com/oauth2/token?api-version=1"),
    ("sasl.oauthbearer.token.command", "kafka-token --audience kafka"),
    ("schema.registry.url", "https://registry:8081"),
    ("schema.registry.basic.auth.credentials.source", "USER_INFO"),
    ("spark.driver.memory", "4g"),
    ("spark.sql.catalog.lake.warehouse", "abfss://lake@me.dfs.core.windows.net/warehouse"),
    ("spark.hadoop.fs.s3a.endpoint", "http://127.0.0.1:9000"),
]


@each(("name", "text"), SECRETS, ids=lambda value: value[:30])
def test_secrets(name, text):
    """By its name, or by a login, a token or an assignment in its text; a file must not have it."""
    assert may_be_secret(name, text)
    with pytest.raises(BadUsage, match="may be a secret: refer to it") as caught:
        dict(settings_of_table({name: text}, "a.toml"))
    assert SECRET not in caught.value.message


@each(("name", "text"), HARMLESS, ids=lambda value: value[:30])
def test_what_is_not_a_secret(name, text):
    """Addresses, names of users, commands and the containers of Azure may stand in a file."""
    assert not may_be_secret(name, text)
    assert dict(settings_of_table({name: text}, "a.toml")) == {name: text}


def test_forms(tmp_path):
    """A reference of a pair is a file; in TOML it is a file or a variable, also by a dotted name."""
    (file := tmp_path / "secret").write_text(f"{SECRET}\r\n")
    pairs = settings_of_pairs([(f"sasl.password@={file}", "-X"), ("a.b = c=d ", "-X")])
    assert pairs == {"sasl.password": Reference("file", str(file)), "a.b": "c=d"}
    assert read_settings(pairs, "-X", {}) == {"sasl.password": SECRET, "a.b": "c=d"}
    table = {"sasl": {"password": {"env": "WORD"}, "username": "u"}, "retries": 3, "debug.on": True}
    settings = dict(settings_of_table(table, "a.toml"))
    assert settings == {
        "sasl.password": Reference("env", "WORD"),
        "sasl.username": "u",
        "retries": "3",
        "debug.on": "true",
    }
    assert read_settings(settings, "a.toml", {"WORD": SECRET})["sasl.password"] == SECRET
    with pytest.raises(
        BadUsage, match=r"a\.toml: the environment must have the variable that sasl\.password"
    ):
        read_settings(settings, "a.toml", {})
