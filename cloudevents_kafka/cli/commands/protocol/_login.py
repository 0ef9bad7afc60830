"""How the commands log in: by their own options, or by the settings that the other commands have.

The settings are librdkafka's, from --config, the environment and -X (see `cli.kafka.settings`). Our client
reads those in `_READ`. Others that decide on a connection are refused, so that none is ignored by mistake;
all others, which are for other commands, have no effect.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

import click

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
from cloudevents_kafka.cli.kafka.settings import Settings, load_settings
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.primitives.redaction import mask_name

CHOICES: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTH)
"""The mechanisms of our client."""

_SECURITY: Final = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_METHOD: Final = "sasl.oauthbearer.method"
_READ: Final = frozenset(
    {
        *("security.protocol", "ssl.ca.location", "sasl.username", "sasl.password", *MECHANISMS),
        *(TOKEN_COMMAND, "sasl.oauthbearer.extensions", _METHOD, *_credentials.SETTINGS),
    }
)
_DECIDING: Final = ("security.", "ssl.", "sasl.", "https.", "enable.ssl.", "enable.sasl.")
_DEFAULTS: Final = {
    "ssl.endpoint.identification.algorithm": "https",
    "enable.ssl.certificate.verification": "true",
}
_NO_TOKEN: Final = "there is no token"  # noqa: S105  # words of the client's error


class LoginOptions(NamedTuple):
    """The options of a login."""

    tls: bool
    cafile: str | None
    user: str | None
    mechanism: str | None
    config: str | None
    settings: tuple[str, ...]
    """Of -X."""


class Login(NamedTuple):
    """The arguments of our client for TLS and SASL."""

    tls: ssl.SSLContext | bool
    sasl: protocol.Plain | protocol.Scram | protocol.OAuthBearer | None


def read_login(options: LoginOptions, timeout: float) -> Login:
    """Return the login; ask for a password on a terminal. Raises `BadUsage` if options or settings are wrong.

    ``timeout`` is that of a request for a token, in seconds.
    """
    settings = _settings(options)
    effective = settings.effective
    security = effective.get("security.protocol", "plaintext").lower()
    if security not in _SECURITY:
        raise BadUsage(f"security.protocol must be one of {', '.join(_SECURITY)}")
    tls = options.tls or options.cafile is not None or security.endswith("ssl")
    asked = options.user is not None or options.mechanism is not None or security.startswith("sasl_")
    if options.user is not None and _mechanism(effective) == OAUTH:
        raise BadUsage(f"--user and {OAUTH} exclude each other: a token names its user")
    return Login(_context(options, effective) if tls else False, _sasl(settings, timeout) if asked else None)


def explain_refusal(options: LoginOptions, reason: str) -> str:
    """Return what to check if a broker refuses the login for a reason."""
    effective = _settings(options).effective
    if _mechanism(effective) != OAUTH:
        return "check --user, --mechanism and the password"
    if _NO_TOKEN not in reason:
        return CHECK_ISSUER
    return f"check {TOKEN_COMMAND if effective.get(TOKEN_COMMAND) else ', '.join(_credentials.SETTINGS)}"


def _settings(options: LoginOptions) -> Settings:
    """Return the settings, which the options override. Raises `BadUsage` for one that cannot be had."""
    settings = load_settings(options.config, os.environ, options.settings, None)
    *_, (_, from_option) = settings.sources
    unused = [name for name in from_option if name not in _READ and name not in _DEFAULTS]
    unused += [name for name, value in settings.effective.items() if _is_refused(name, value)]
    if unused:
        names = ", ".join(mask_name(name) for name in dict.fromkeys(unused))
        raise BadUsage(f"the client of these commands does not have {names}; leave it out")
    given = {"sasl.username": options.user, "sasl.mechanism": options.mechanism}
    return settings.with_overrides("options", {name: text for name, text in given.items() if text})


def _is_refused(name: str, value: str) -> bool:
    return name.startswith(_DECIDING) and name not in _READ and _DEFAULTS.get(name) != value.lower()


def _context(options: LoginOptions, effective: Mapping[str, str]) -> ssl.SSLContext | bool:
    path = options.cafile or effective.get("ssl.ca.location")
    if not path:
        return True
    name = "ssl.ca.location" if options.cafile is None else "--cafile"
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise BadUsage(f"{name}: cannot read certificates from {path}: {error.strerror or error}") from None


def _mechanism(effective: Mapping[str, str]) -> str:
    """Return the mechanism; without one, that of what is set."""
    return mechanism(effective).upper() or (OAUTH if effective.get(TOKEN_COMMAND) else "SCRAM-SHA-256")


def _sasl(settings: Settings, timeout: float) -> protocol.Plain | protocol.Scram | protocol.OAuthBearer:
    effective = settings.effective
    name, user = _mechanism(effective), effective.get("sasl.username")
    if name not in CHOICES:
        raise BadUsage(f"sasl.mechanism must be one of {', '.join(CHOICES)}")
    if name == OAUTH:
        return _bearer(settings, timeout)
    if not user:
        raise BadUsage(f"--mechanism needs --user, or the setting sasl.username, for {name}")
    password = effective.get("sasl.password") or _ask_password(user)
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


def _ask_password(user: str) -> str:
    """Return the password from a prompt without echo."""
    name = user.partition(":")[0]  # users may write user:password, as for curl
    if not sys.stdin.isatty():
        raise BadUsage(f"--user {name} needs a password: set CE_KAFKA_SASL_PASSWORD, or run on a terminal")
    prompted: str = click.prompt(f"password of {name}", hide_input=True, err=True)
    return prompted
