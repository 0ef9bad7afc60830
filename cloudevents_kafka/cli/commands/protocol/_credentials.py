"""Tokens by client credentials (RFC 6749 4.4), by librdkafka's settings: our client fetches none itself."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from contextlib import closing
from http.client import HTTPException, InvalidURL
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode

import msgspec

from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.clients.oauth import TokenError
from cloudevents_kafka.primitives.redaction import mask_url
from cloudevents_kafka.primitives.web import TooLarge, open_url, split_url

_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_ID: Final = "sasl.oauthbearer.client.id"
_SECRET: Final = "sasl.oauthbearer.client.secret"  # noqa: S105  # the name of a setting
SETTINGS: Final = (_URL, _ID, _SECRET, "sasl.oauthbearer.scope", "https.ca.location")
"""The settings that are read."""

_LIMIT: Final = 1 << 20  # bytes of an answer
_SHOWN: Final = 300  # characters of the error that an endpoint sends


def token_fetcher(settings: Mapping[str, str], timeout: float) -> Callable[[], str]:
    """Return a function that fetches a token, and raises `TokenError` if it gets none.

    ``timeout`` is in seconds. Raises `BadUsage` if a setting is missing or wrong.
    """
    if missing := [name for name in (_URL, _ID, _SECRET) if not settings.get(name)]:
        raise BadUsage(f"client credentials need {', '.join(missing)}")
    url, form = settings[_URL], _form(settings)
    login = f"{settings[_ID]}:{settings[_SECRET]}"
    trusted = _trusted(settings.get("https.ca.location"))

    def fetch() -> str:
        try:
            with open_url(
                url, timeout=timeout, limit=_LIMIT, login=login, form=form, trusted=trusted
            ) as answer:
                fields = _fields(answer.read())
        except HTTPError as error:
            with closing(error):  # a refused redirect is closed already
                reason = str(_fields(error.read(_LIMIT)).get("error") or error.reason)[:_SHOWN]
            raise TokenError(f"token endpoint {mask_url(url)} answers {error.code}: {reason}") from None
        except (OSError, HTTPException, TooLarge) as error:
            reason = getattr(error, "reason", None) or str(error) or type(error).__name__
            raise TokenError(f"token endpoint {mask_url(url)} does not answer: {reason}") from None
        token = fields.get("access_token")
        if not isinstance(token, str):
            raise TokenError(f"token endpoint {mask_url(url)} answers without an access_token")
        return token

    return fetch


def _form(settings: Mapping[str, str]) -> bytes:
    """Return the form of a request, after a check of the URL."""
    url, scope = settings[_URL], settings.get("sasl.oauthbearer.scope")
    try:
        split_url(url)
    except InvalidURL:
        raise BadUsage(f"{_URL} must be a URL of http or https, got {mask_url(url)}") from None
    return urlencode({"grant_type": "client_credentials", **({"scope": scope} if scope else {})}).encode()


def _trusted(path: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=path or None)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or error
        raise BadUsage(f"https.ca.location: cannot read certificates from {path}: {reason}") from None


def _fields(answer: bytes) -> dict[str, Any]:
    """Return the members of an answer, none if it is not a JSON object."""
    try:
        return msgspec.json.decode(answer, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
