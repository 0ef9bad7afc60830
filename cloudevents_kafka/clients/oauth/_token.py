"""`Token`: a bearer token and its expiry time, read from the output of a command.

If a token itself contains its expiry time, the command may print the token alone. A JWT (RFC 7519) contains
the claim ``exp``. An Amazon MSK token is a signed URL whose query contains the expiry time. For any other
token, the command must print JSON like the answer of an OAuth token endpoint (RFC 6749 5.1), or like the
output of the command-line tools of Azure and Google Cloud.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.primitives.plural import pluralize

_BEARER: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750 2.1: b64token
_JWT: Final = re.compile(r"[\w-]+\.([\w-]+)\.[\w-]*")
_NAMES: Final = ("access_token", "accessToken", "token")
_LAST_SECOND: Final = 253402300799.0  # of the year 9999
_SIGNED_AT: Final = "%Y%m%dT%H%M%SZ"
_FORMS: Final = (
    "it must print a JWT, a token of Amazon MSK, or JSON with access_token and expires_in (in seconds)"
)


class TokenError(CloudEventsKafkaError):
    """A command printed no valid token; the message omits the command's output and arguments.

    Examples:
        >>> from cloudevents_kafka.clients.oauth import TokenCommand, TokenError
        >>> try:
        ...     TokenCommand("false").token()
        ... except TokenError as error:
        ...     print(error)
        the token command 'false' failed: exit code 1; run it by hand
    """


class Token(msgspec.Struct, frozen=True):
    """A bearer token; ``expires`` is in seconds since the epoch, and ``principal`` is the user in the token.

    Examples:
        >>> from cloudevents_kafka.clients.oauth import Token
        >>> Token("abc", expires=1795430000.0, principal="shop")  # the value is not shown
        Token(expires=1795430000.0, principal='shop')
    """

    value: str
    expires: float
    principal: str = ""

    @property
    def is_jwt(self) -> bool:
        """Whether the token is a JWT; clients that fetch tokens from a token endpoint accept only a JWT."""
        return bool(_claims(self.value))

    def __repr__(self) -> str:
        """Return a text that does not contain the token's value, because tracebacks may show this text."""
        return f"Token(expires={self.expires!r}, principal={self.principal!r})"


def read_token(output: bytes) -> Token:
    """Return the token that a command has printed.

    Raises `TokenError` if the output contains no token, if the token's expiry is unknown, or if the token has
    expired.
    """
    text = output.decode("utf-8", "replace").strip()
    fields = _json_object(text)
    value = next((fields[name] for name in _NAMES if name in fields), None) if fields else text
    if not isinstance(value, str) or not _BEARER.fullmatch(value):
        raise TokenError(f"it printed {pluralize(len(output), 'byte')} without a token; {_FORMS}")
    claims = _claims(value)
    expires = _expiry(fields) or _number(claims.get("exp")) or _signed_until(value)
    if expires is None:
        raise TokenError(f"it printed a token, but not its expiry time; {_FORMS}")
    expires = max(0.0, min(expires, _LAST_SECOND))
    if expires <= time.time():
        until = datetime.fromtimestamp(expires, UTC).isoformat(timespec="seconds")
        raise TokenError(f"it printed a token that expired at {until}; check the clock, or log in again")
    subject = claims.get("sub")
    return Token(value, expires, subject if isinstance(subject, str) else "")


def _expiry(fields: Mapping[str, Any]) -> float | None:
    seconds = _number(fields.get("expires_in"))
    return _number(fields.get("expires_on")) if seconds is None else time.time() + seconds


def _claims(value: str) -> dict[str, Any]:
    """Return the unverified claims of a JWT, or an empty dict for other tokens.

    The broker checks the signature of the token.
    """
    parts = _JWT.fullmatch(value)
    return _json_object(_base64url(parts[1])) if parts else {}


def _signed_until(value: str) -> float | None:
    """Return the expiry time of a token that is a signed AWS URL, or None for other tokens."""
    try:
        query = parse_qs(urlsplit(_base64url(value).decode()).query)
        signed = datetime.strptime(query["X-Amz-Date"][0], _SIGNED_AT).replace(tzinfo=UTC)
        seconds = _number(query["X-Amz-Expires"][0])
    except (ValueError, KeyError):
        return None
    return None if seconds is None else signed.timestamp() + seconds


def _json_object(text: str | bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _base64url(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
    except ValueError:
        return b""


def _number(value: object) -> float | None:
    """Return a number of seconds as a float, even if it was sent as text; return None for other values."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
