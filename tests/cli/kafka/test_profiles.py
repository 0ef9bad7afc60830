"""Profiles are tables of one TOML file; a secret in one is a reference."""

from __future__ import annotations

import pytest

PROFILES = """
[local]
bootstrap.servers = "a:1,b:2"
client.id = "me"
socket.keepalive.enable = true
"statistics.interval.ms" = 500
schema.registry.url = "http://127.0.0.1:1"

[staging]
bootstrap.servers = "s:1"
[staging.sasl]
username = "u"
password = { file = "FOLDER/password" }

[by-environment]
sasl.password = { env = "PASSWORD" }
sasl.oauthbearer.assertion.file = "FOLDER/key.pem"

[tokens]
bootstrap.servers = "s:1"
sasl.oauthbearer.token.command = "kafka-token --audience 'kafka prod'"
sasl.oauthbearer.extensions = "logicalCluster=lkc-1,identityPoolId=pool-2"
sasl.oauthbearer.assertion.claim.aud = "kafka"
schema.registry.basic.auth.credentials.source = "USER_INFO"
schema.registry.bearer.auth.logical.cluster = "lsrc-1"

[registry]
schema.registry.basic.auth.user.info = "u:hunter22"

[plain]
sasl.password = "hunter22"

[odd]
retries = [1]

[callback]
error_cb = "x"
"""


@pytest.fixture
def show(run, tmp_path, monkeypatch):
    """A function that returns the settings in force with a profile."""
    (file := tmp_path / "profiles.toml").write_text(PROFILES.replace("FOLDER", str(tmp_path)))
    (tmp_path / "password").write_text("hunter22\n")
    monkeypatch.setenv("CE_KAFKA_PROFILES", str(file))

    def call(*options):
        return run("consume", "--show-config", *options)

    return call


def test_a_profile(show):
    """Settings of a profile are those of librdkafka, by dotted names; later sources override them."""
    result = show("--profile", "local", "-X", "client.id=you")
    assert result.exit_code == 0, result.output
    shown = "bootstrap.servers=a:1,b:2\nsocket.keepalive.enable=true\nstatistics.interval.ms=500\n"
    assert f"# profile local\n{shown}" in result.stdout
    assert "client.id=you" in result.stdout


def test_the_environment_names_a_profile(show, monkeypatch):
    """CE_KAFKA_PROFILE is the profile where the option is not set; other variables override its settings."""
    monkeypatch.setenv("CE_KAFKA_PROFILE", "local")
    monkeypatch.setenv("CE_KAFKA_BOOTSTRAP_SERVERS", "c:3")
    result = show()
    assert "# profile local\nclient.id=me\n" in result.stdout
    assert "# environment\nbootstrap.servers=c:3\n" in result.stdout


def test_secrets_are_references(show, monkeypatch):
    """A secret is in a file or in a variable; one in the profile itself is refused, and not shown."""
    assert "sasl.password=********\n" in show("--profile", "staging").stdout
    monkeypatch.setenv("PASSWORD", "hunter22")
    result = show("--profile", "by-environment")
    assert "sasl.password=********\n" in result.stdout
    assert "sasl.oauthbearer.assertion.file=" in result.stdout
    refused = show("--profile", "plain")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert 'sasl.password may be a secret: refer to it, { file = "…" } or { env = "…" }' in refused.stderr
    assert "hunter22" not in refused.stderr


def test_settings_that_only_resemble_secrets(show):
    """A command for tokens, extensions and where a registry's login is are in a profile, and not shown."""
    result = show("--profile", "tokens")
    assert result.exit_code == 0, result.output
    shown = [line for line in result.stdout.splitlines() if line.endswith("=********")]
    assert len(shown) == 3  # those of a registry are not settings of the client
    refused = show("--profile", "registry")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "schema.registry.basic.auth.user.info may be a secret: refer to it" in refused.stderr


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("lokal", "profiles.toml has no profile 'lokal'; did you mean 'local'?"),
        ("zz", "has no profile 'zz'; it has local, staging, by-environment, tokens, registry, plain, "),
        ("by-environment", "the environment must have the variable that sasl.password names"),
        ("odd", "profile odd: retries must be text, a number or a boolean"),
        ("callback", "is a Python function and cannot be set here"),
    ],
)
def test_wrong_profiles(show, profile, message):
    """A wrong profile is one sentence with its name; exit code 2."""
    result = show("--profile", profile)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize("content", [None, "[a", "a = 1"])
def test_wrong_files(show, tmp_path, content):
    """A file that is not there, is not TOML or has no table is one sentence with its name; exit code 2."""
    file = tmp_path / "profiles.toml"
    file.unlink()
    if content is not None:
        file.write_text(content)
    result = show("--profile", "a")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert str(file) in result.stderr


def test_settings_of_a_registry_are_not_those_of_brokers(run, show, mock_cluster):
    """Commands that need no registry take a profile that names one."""
    for command in (["topics"], ["produce", "-t", "profiles"], ["consume", "-t", "profiles"]):
        result = run(*command, "--profile", "local", "-b", mock_cluster, stdin="")
        assert result.exit_code == 0, result.output
