"""Tokens of a command as a setting of the command line, and what to check if a login fails."""

from __future__ import annotations

import sys

import pytest

from cloudevents_kafka.cli.kafka.logins import (
    TOKEN_COMMAND,
    client_settings,
    explain_login,
    explain_silence,
    token_command,
)
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.clients.oauth import TokenError
from tests.support.cases import each

NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token: why"


def settings_of(**settings: str) -> Settings:
    return Settings((("test", {name.replace("_", "."): value for name, value in settings.items()}),))


def test_a_command_is_a_callback_of_the_client():
    """The client gets the callback and the mechanism, and no setting that it does not have."""
    settings = settings_of(
        sasl_oauthbearer_token_command=f"{sys.executable} -V", sasl_oauthbearer_extensions="a=b, c=d"
    )
    command = token_command(settings)
    assert command is not None
    assert client_settings(settings, command) == {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": command}
    assert command._extensions == {"a": "b", "c": "d"}


def test_other_logins_are_as_they_were():
    """Without a command, the settings of the client are those of the user."""
    settings = settings_of(sasl_mechanism="PLAIN", sasl_oauthbearer_token_command="")
    assert token_command(settings) is None
    assert client_settings(settings, None) == {"sasl.mechanism": "PLAIN"}


@each(
    ("other", "words"),
    [
        ({"sasl_mechanism": "PLAIN"}, "needs sasl.mechanism=OAUTHBEARER"),
        ({"sasl_mechanisms": "PLAIN"}, "needs sasl.mechanism=OAUTHBEARER"),
        ({"sasl_oauthbearer_method": "oidc"}, "exclude each other"),
        ({"sasl_oauthbearer_token_command": "hunter2 '"}, "must have closed quotes"),
        ({"sasl_oauthbearer_token_command": " "}, "must be a program and its arguments"),
    ],
)
def test_contradictions(other, words):
    """Settings that contradict the command, and a text that is not a command line, are bad usage."""
    with pytest.raises(BadUsage, match=words) as caught:
        token_command(settings_of(**{"sasl_oauthbearer_token_command": "x", **other}))
    assert "hunter2" not in caught.value.message


OIDC = {
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauthbearer_method": "oidc",
    "sasl_oauthbearer_token_endpoint_url": "https://me:hunter2@login/token?key=hunter2",
}


@each(
    ("settings", "reason", "expected", "words"),
    [
        ({"sasl_mechanism": "PLAIN"}, "no", "no", "check sasl.username"),
        ({}, "no", "no", "check sasl.username"),
        (
            OIDC,
            NO_TOKEN,
            f"token endpoint https://********@login/token?********: {NO_TOKEN}",
            "check sasl.oauthbearer.token.endpoint.url",
        ),
        (OIDC, "no", "no", "the broker refuses the token"),
        ({"sasl_oauthbearer_token_command": "x"}, NO_TOKEN, NO_TOKEN, f"check {TOKEN_COMMAND}"),
        ({"sasl_oauthbearer_token_command": "x"}, "no", "no", "the broker refuses the token"),
    ],
)
def test_failed_logins(settings, reason, expected, words):
    """The reason has the token endpoint without its secrets, and the advice is about the login in use."""
    loaded = settings_of(**settings)
    got, advice = explain_login(loaded, token_command(loaded), reason)
    assert got == expected
    assert advice.startswith(words)


def test_the_reason_of_a_command():
    """The client drops the reason of a failed command; the error has it."""
    command = token_command(settings_of(sasl_oauthbearer_token_command="no-such-program"))
    assert command is not None
    with pytest.raises(TokenError):
        command.token()
    reason, _ = explain_login(settings_of(), command, NO_TOKEN)
    assert reason.startswith("the token command 'no-such-program' failed: there is no such program")


def test_silence():
    """Without an error of the client and an answer, the token endpoint is named if there is one."""
    assert explain_silence(settings_of()) is None
    advice = explain_silence(settings_of(**OIDC))
    assert advice is not None
    assert advice.startswith("there may be no token from https://********@login/token?********: look into")
