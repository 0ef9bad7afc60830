"""The login of the protocol commands, which is read from the settings of the Kafka client.

The tuple `_READ` names the settings that this library's client reads. Settings of a connection that this
client does not read are refused, so that no setting is ignored by mistake. Settings that only other commands
use have no effect. The client does not fetch tokens, so this module fetches tokens with client credentials
(RFC 6749 4.4).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from http.client import HTTPException, InvalidURL
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode

import msgspec

from cloudevents_kafka import protocol
from cloudevents_kafka.cli.kafka.logins import (
    CHECK_ISSUER,
    MECHANISMS,
    OAUTH,
    TOKEN_COMMAND,
    extensions,
    mechanism,
    token_command,
)
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.clients.oauth import TokenError
from cloudevents_kafka.primitives.redaction import mask_name, mask_url
from cloudevents_kafka.primitives.web import TooLarge, open_url, split_url

CHOICES: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTH)
"""The SASL mechanisms of this library's client."""

_SECURITY: Final = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_METHOD: Final = "sasl.oauthbearer.method"
_NEEDED: Final = (
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
)
_CREDENTIALS: Final = (*_NEEDED, "sasl.oauthbearer.scope", "https.ca.location")
_READ: Final = frozenset(
    {
        *("bootstrap.servers", "security.protocol", "ssl.ca.location", *MECHANISMS),
        *("sasl.username", "sasl.password", TOKEN_COMMAND, "sasl.oauthbearer.extensions", _METHOD),
        *_CREDENTIALS,
    }
)
_DECIDING: Final = ("security.", "ssl.", "sasl.", "https.", "enable.ssl.", "enable.sasl.")
_DEFAULTS: Final = {
    "ssl.endpoint.identification.algorithm": "https",
    "enable.ssl.certificate.verification": "true",
}
_NO_TOKEN: Final = "there is no token"  # noqa: S105  # words of the client's error
_LIMIT: Final = 1 << 20  # bytes of an answer of a token endpoint
_SHOWN: Final = 300  # characters of an endpoint's error in a message


class Login(NamedTuple):
    """The arguments for TLS and SASL that this library's client receives."""

    tls: ssl.SSLContext | bool
    sasl: protocol.Plain | protocol.Scram | protocol.OAuthBearer | None


def read_login(settings: Settings, timeout: float) -> Login:
    """Return the login that the settings of the user describe. Raises `BadUsage` for wrong settings.

    ``timeout`` is the timeout of a request for a token, in seconds.
    """
    _check(settings)
    effective = settings.effective
    security = effective.get("security.protocol", "plaintext").lower()
    if security not in _SECURITY:
        raise BadUsage(f"security.protocol must be one of {', '.join(_SECURITY)}")
    tls = security.endswith("ssl") and (_trusted(effective, "ssl.ca.location") or True)
    return Login(tls, _sasl(settings, timeout) if security.startswith("sasl_") else None)


def explain_refusal(settings: Settings, reason: str) -> str:
    """Return the settings to check if a broker refuses the login with this reason."""
    effective = settings.effective
    if _mechanism(effective) != OAUTH:
        return "check sasl.mechanism, sasl.username and sasl.password (--show-config)"
    if _NO_TOKEN not in reason:
        return CHECK_ISSUER
    return f"check {TOKEN_COMMAND if effective.get(TOKEN_COMMAND) else ', '.join(_CREDENTIALS)}"


def _check(settings: Settings) -> None:
    """Raise `BadUsage` for a setting that this library's client does not support."""
    *_, (_, from_option) = settings.sources
    unused = [name for name in from_option if name not in _READ and name not in _DEFAULTS]
    unused += [name for name, value in settings.effective.items() if _is_refused(name, value)]
    if unused:
        names = ", ".join(mask_name(name) for name in dict.fromkeys(unused))
        raise BadUsage(f"these commands do not support {names}; leave it out")


def _is_refused(name: str, value: str) -> bool:
    return name.startswith(_DECIDING) and name not in _READ and _DEFAULTS.get(name) != value.lower()


def _trusted(effective: Mapping[str, str], name: str) -> ssl.SSLContext | None:
    """Return a TLS context for the certificate file in a setting, or None if the setting is missing."""
    if not (path := effective.get(name)):
        return None
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or error
        raise BadUsage(f"{name}: cannot read certificates from {path}: {reason}") from None


def _mechanism(effective: Mapping[str, str]) -> str:
    """Return the SASL mechanism that the settings name.

    If the settings do not name a mechanism, return OAUTHBEARER if a token command is set, and otherwise an
    empty text.
    """
    return mechanism(effective).upper() or (OAUTH if effective.get(TOKEN_COMMAND) else "")


def _sasl(settings: Settings, timeout: float) -> protocol.Plain | protocol.Scram | protocol.OAuthBearer:
    effective = settings.effective
    name = _mechanism(effective)
    if name not in CHOICES:
        raise BadUsage(f"sasl.mechanism must be one of {', '.join(CHOICES)}")
    if name == OAUTH:
        return protocol.OAuthBearer(_tokens(settings, timeout), extensions(effective))
    user, password = effective.get("sasl.username"), effective.get("sasl.password")
    if not user or not password:
        raise BadUsage(f"{name} needs sasl.username and sasl.password (CE_KAFKA_SASL_PASSWORD, --config)")
    if name == "PLAIN":
        return protocol.Plain(user, password)
    return protocol.Scram(user, password, name)  # type: ignore[arg-type]  # one of the choices


def _tokens(settings: Settings, timeout: float) -> Callable[[], str]:
    """Return a function that returns a token from a command or from a token endpoint."""
    effective = settings.effective
    if (command := token_command(settings)) is not None:
        return lambda: command.token().value
    if effective.get(_METHOD, "").lower() != "oidc":
        raise BadUsage(
            f"{OAUTH} needs a token: set {TOKEN_COMMAND}, or {_METHOD}=oidc with "
            f"{', '.join(_NEEDED)} (-X, --config)"
        )
    if missing := [name for name in _NEEDED if not effective.get(name)]:
        raise BadUsage(f"client credentials need {', '.join(missing)}")
    url, *login = (effective[name] for name in _NEEDED)
    try:
        split_url(url)
    except InvalidURL:
        raise BadUsage(f"{_NEEDED[0]} must be a URL of http or https, got {mask_url(url)}") from None
    scope = effective.get("sasl.oauthbearer.scope")
    form = urlencode({"grant_type": "client_credentials", **({"scope": scope} if scope else {})}).encode()
    trusted = _trusted(effective, "https.ca.location")
    return partial(_fetch_token, url, timeout=timeout, login=":".join(login), form=form, trusted=trusted)


def _fetch_token(url: str, **request: Any) -> str:
    """Return a token from an endpoint; raise `TokenError` if the endpoint does not return a token."""
    try:
        with open_url(url, limit=_LIMIT, **request) as answer:
            token = _fields(answer.read()).get("access_token")
    except HTTPError as error:
        with closing(error):  # a refused redirect is closed already
            reason = str(_fields(error.read(_LIMIT)).get("error") or error.reason)[:_SHOWN]
        raise TokenError(f"token endpoint {mask_url(url)} answers {error.code}: {reason}") from None
    except (OSError, HTTPException, TooLarge) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise TokenError(f"token endpoint {mask_url(url)} does not answer: {reason}") from None
    if not isinstance(token, str):
        raise TokenError(f"token endpoint {mask_url(url)} answers without an access_token")
    return token


def _fields(answer: bytes) -> dict[str, Any]:
    """Return the members of a server's answer, or an empty mapping if the answer is not a JSON object."""
    try:
        return msgspec.json.decode(answer, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
