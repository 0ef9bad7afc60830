"""How the commands log in: by the settings that the other commands have.

They are librdkafka's, from --config, the environment and -X (see `cli.kafka.settings`). Our client
reads those in `_READ`. Other settings of connections are refused, so that none is ignored by mistake;
settings for other commands have no effect.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple

from cloudevents_kafka import protocol
from cloudevents_kafka.cli.commands.protocol import _credentials
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
from cloudevents_kafka.primitives.redaction import mask_name

CHOICES: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTH)
"""The mechanisms of our client."""

_SECURITY: Final = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_METHOD: Final = "sasl.oauthbearer.method"
_READ: Final = frozenset(
    {
        *(
            "bootstrap.servers",
            "security.protocol",
            "ssl.ca.location",
            "sasl.username",
            "sasl.password",
            *MECHANISMS,
        ),
        *(TOKEN_COMMAND, "sasl.oauthbearer.extensions", _METHOD, *_credentials.SETTINGS),
    }
)
_DECIDING: Final = ("security.", "ssl.", "sasl.", "https.", "enable.ssl.", "enable.sasl.")
_DEFAULTS: Final = {
    "ssl.endpoint.identification.algorithm": "https",
    "enable.ssl.certificate.verification": "true",
}
_NO_TOKEN: Final = "there is no token"  # noqa: S105  # words of the client's error


class Login(NamedTuple):
    """The arguments of our client for TLS and SASL."""

    tls: ssl.SSLContext | bool
    sasl: protocol.Plain | protocol.Scram | protocol.OAuthBearer | None


def read_login(settings: Settings, timeout: float) -> Login:
    """Return the login by settings. Raises `BadUsage` if they are wrong.

    ``timeout`` is that of a request for a token, in seconds.
    """
    _check(settings)
    effective = settings.effective
    security = effective.get("security.protocol", "plaintext").lower()
    if security not in _SECURITY:
        raise BadUsage(f"security.protocol must be one of {', '.join(_SECURITY)}")
    tls = _context(effective.get("ssl.ca.location")) if security.endswith("ssl") else False
    return Login(tls, _sasl(settings, timeout) if security.startswith("sasl_") else None)


def explain_refusal(settings: Settings, reason: str) -> str:
    """Return what to check if a broker refuses the login for a reason."""
    effective = settings.effective
    if _mechanism(effective) != OAUTH:
        return "check sasl.mechanism, sasl.username and sasl.password (--show-config)"
    if _NO_TOKEN not in reason:
        return CHECK_ISSUER
    return f"check {TOKEN_COMMAND if effective.get(TOKEN_COMMAND) else ', '.join(_credentials.SETTINGS)}"


def _check(settings: Settings) -> None:
    """Raise `BadUsage` for a setting that our client does not have."""
    *_, (_, from_option) = settings.sources
    unused = [name for name in from_option if name not in _READ and name not in _DEFAULTS]
    unused += [name for name, value in settings.effective.items() if _is_refused(name, value)]
    if unused:
        names = ", ".join(mask_name(name) for name in dict.fromkeys(unused))
        raise BadUsage(f"the client of these commands does not have {names}; leave it out")


def _is_refused(name: str, value: str) -> bool:
    return name.startswith(_DECIDING) and name not in _READ and _DEFAULTS.get(name) != value.lower()


def _context(path: str | None) -> ssl.SSLContext | bool:
    if not path:
        return True
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or error
        raise BadUsage(f"ssl.ca.location: cannot read certificates from {path}: {reason}") from None


def _mechanism(effective: Mapping[str, str]) -> str:
    """Return the mechanism in the settings, by default that of a token command, or an empty text."""
    return mechanism(effective).upper() or (OAUTH if effective.get(TOKEN_COMMAND) else "")


def _sasl(settings: Settings, timeout: float) -> protocol.Plain | protocol.Scram | protocol.OAuthBearer:
    effective = settings.effective
    name = _mechanism(effective)
    if name not in CHOICES:
        raise BadUsage(f"sasl.mechanism must be one of {', '.join(CHOICES)}")
    if name == OAUTH:
        return _bearer(settings, timeout)
    user, password = effective.get("sasl.username"), effective.get("sasl.password")
    if not user or not password:
        raise BadUsage(f"{name} needs sasl.username and sasl.password (CE_KAFKA_SASL_PASSWORD, --config)")
    if name == "PLAIN":
        return protocol.Plain(user, password)
    return protocol.Scram(user, password, name)  # type: ignore[arg-type]  # one of the choices


def _bearer(settings: Settings, timeout: float) -> protocol.OAuthBearer:
    """Return the login by tokens of a command, or of a token endpoint."""
    effective = settings.effective
    command = token_command(settings)
    if command is not None:
        return protocol.OAuthBearer(lambda: command.token().value, extensions(effective))
    if effective.get(_METHOD, "").lower() != "oidc":
        raise BadUsage(
            f"{OAUTH} needs a token: set {TOKEN_COMMAND}, or {_METHOD}=oidc with "
            f"{', '.join(_credentials.SETTINGS[:3])} (-X, --config)"
        )
    return protocol.OAuthBearer(_credentials.token_fetcher(effective, timeout), extensions(effective))
