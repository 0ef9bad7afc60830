"""The endpoint on loopback prints tokens to clients that know its secret."""

from __future__ import annotations

import base64
import json
import sys
import urllib.error
import urllib.request

import pytest

from cloudevents_kafka.clients.oauth import TokenCommand, TokenEndpoint
from tests.support.cases import each
from tests.support.oidc import SOON, unsigned_jwt

LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(endpoint: TokenEndpoint, secret: str | None = None) -> tuple[int, dict[str, object]]:
    settings = endpoint.settings
    secret = settings["sasl.oauthbearer.client.secret"] if secret is None else secret
    login = f"{settings['sasl.oauthbearer.client.id']}:{secret}"
    headers = {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()}
    request = urllib.request.Request(endpoint.url, b"grant_type=client_credentials", headers)
    try:
        with LOCAL.open(request, timeout=20) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def printing(text: str) -> TokenCommand:
    return TokenCommand([sys.executable, "-c", f"print({text!r})"])


def test_a_token():
    """The answer has the token of the command, and the seconds that are left."""
    token = unsigned_jwt(exp=SOON, sub="shop")
    with TokenEndpoint(printing(token)) as endpoint:
        status, answer = ask(endpoint)
    assert status == 200
    assert answer["access_token"] == token
    assert isinstance(answer["expires_in"], int)


@each("secret", ["", "wrong", "\xfc"])
def test_other_users(secret):
    """Without the secret there is no token, and the command does not run."""
    command = printing(unsigned_jwt(exp=SOON))
    with TokenEndpoint(command) as endpoint:
        assert ask(endpoint, secret) == (401, {"error": "invalid_client"})
    assert command._kept is None


def test_secrets_differ():
    """Each endpoint has a secret of its own."""
    command = printing("x")
    with TokenEndpoint(command) as first, TokenEndpoint(command) as second:
        name = "sasl.oauthbearer.client.secret"
        assert first.settings[name] != second.settings[name]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hunter2", "but not its expiry time"),
        ('{"access_token": "hunter2", "expires_in": 60}', "the token is not a JWT"),
    ],
)
def test_failures(text, words):
    """The answer has why there is no token, without the output of the command."""
    with TokenEndpoint(printing(text)) as endpoint:
        status, answer = ask(endpoint)
    assert status == 400
    assert words in str(answer["error_description"])
    assert "hunter2" not in str(answer)
