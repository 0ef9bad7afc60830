"""Logins of the Kafka client: tokens that a command prints, and advice about failed logins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.cli.data_schemas import REGISTRY
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.primitives.redaction import mask_url

if TYPE_CHECKING:
    from cloudevents_kafka.clients.oauth import TokenCommand

TOKEN_COMMAND: Final = "sasl.oauthbearer.token.command"  # noqa: S105  # the name of a setting
"""The name of the setting whose value is a command that prints a token."""

MECHANISMS: Final = ("sasl.mechanism", "sasl.mechanisms")
"""The two names of the setting that selects the SASL mechanism."""
OAUTH: Final = "OAUTHBEARER"

_EXTENSIONS: Final = "sasl.oauthbearer.extensions"
# The client's error if it could not fetch a token; it uses an older token meanwhile, and tries again.
_NO_TOKEN: Final = "Failed to acquire SASL OAUTHBEARER token"  # noqa: S105
CHECK_ISSUER: Final = (
    "check that its issuer, audience and scope are those that the broker expects, and check the clocks"
)
"""Advice for the case that a broker refuses a token."""
_NO_SOURCE: Final = (
    f"{OAUTH} needs a token: set {TOKEN_COMMAND}, or set sasl.oauthbearer.method=oidc and the token endpoint"
)
_CHECK_ENDPOINT: Final = (
    "check sasl.oauthbearer.token.endpoint.url, sasl.oauthbearer.client.id, sasl.oauthbearer.client.secret "
    "and https.ca.location (--show-config)"
)


def token_command(settings: Settings) -> TokenCommand | None:
    """Return the command that prints tokens, or None if no such command is set.

    Raises `BadUsage` if the text is not a valid command line, or if other settings contradict the token
    command.
    """
    effective = settings.effective
    if not effective.get(TOKEN_COMMAND):
        return None
    if mechanism(effective) not in (OAUTH, ""):
        raise BadUsage(f"{TOKEN_COMMAND} needs sasl.mechanism={OAUTH}; leave out one of them")
    if effective.get("sasl.oauthbearer.method", "default") != "default":
        raise BadUsage(f"{TOKEN_COMMAND} and sasl.oauthbearer.method exclude each other; leave out one")
    from cloudevents_kafka.clients.oauth import TokenCommand

    try:
        return TokenCommand(effective[TOKEN_COMMAND], extensions=extensions(effective))
    except ValueError as error:
        raise BadUsage(f"{TOKEN_COMMAND}: {error}") from None


def client_settings(settings: Settings, command: TokenCommand | None) -> dict[str, Any]:
    """Return the settings for confluent-kafka's client, with a callback that runs the token command."""
    effective: dict[str, Any] = settings.split(REGISTRY)[0].effective  # a profile may have these, too
    effective.pop(TOKEN_COMMAND, None)
    if command is not None:
        effective.pop(_EXTENSIONS, None)  # librdkafka's extensions are for its own tokens
        if not mechanism(effective):
            effective["sasl.mechanism"] = OAUTH
        effective["oauth_cb"] = command
    return effective


def has_no_token(reason: str) -> bool:
    """Return whether an error says that the client could not fetch a token."""
    return _NO_TOKEN in reason


def explain_login(settings: Settings, command: TokenCommand | None, reason: str) -> tuple[str, str]:
    """Return the reason why a login failed, and advice about what to check.

    If the client could not get a token, the reason or the advice names the token's endpoint or command.
    """
    if mechanism(settings.effective) != OAUTH and command is None:
        return reason, "check sasl.username, sasl.password and security.protocol (--show-config)"
    if not has_no_token(reason):
        return reason, f"the broker refuses the token: {CHECK_ISSUER}"
    if command is not None:
        return str(command.error or reason), f"check {TOKEN_COMMAND}"
    return f"token endpoint {_endpoint(settings)}: {reason}", _CHECK_ENDPOINT


def explain_silence(settings: Settings) -> str | None:
    """Return advice for the case that no broker was contacted and the client does not report an error.

    In two cases, librdkafka does not report an error. If a token endpoint returns an internal error,
    librdkafka repeats the request for minutes. If no source of tokens is configured, librdkafka waits.
    """
    effective = settings.effective
    if effective.get("sasl.oauthbearer.method") != "oidc":
        no_token = mechanism(effective).upper() == OAUTH and not effective.get(TOKEN_COMMAND)
        return _NO_SOURCE if no_token else None
    return f"there may be no token from {_endpoint(settings)}: look into its log, and {_CHECK_ENDPOINT}"


def _endpoint(settings: Settings) -> str:
    return mask_url(settings.effective.get("sasl.oauthbearer.token.endpoint.url", "of the client"))


def mechanism(effective: Mapping[str, str]) -> str:
    """Return the SASL mechanism, or an empty text if no mechanism is set."""
    return next((effective[name] for name in MECHANISMS if effective.get(name)), "")


def extensions(effective: Mapping[str, str]) -> dict[str, str]:
    """Return the SASL extensions as a dictionary by name."""
    pairs = [pair.partition("=") for pair in effective.get(_EXTENSIONS, "").split(",") if pair.strip()]
    return {name.strip(): value.strip() for name, _, value in pairs}
