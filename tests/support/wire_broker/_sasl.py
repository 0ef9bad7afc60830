"""Logins: PLAIN (RFC 4616) and the server's half of SCRAM (RFC 5802), for a few users."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Final, cast

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.client import SCRAM_HASHES, ScramKeys
from cloudevents_kafka.protocol.error_codes import ErrorCode
from tests.support.wire_broker._errors import ApiError

_ITERATIONS: Final = 4096
_BEFORE_LOGIN: Final = {ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE}


_Exchange = Generator[bytes, bytes, tuple[str, bytes]]
"""A mechanism: receives messages, yields answers, and returns the user and the last answer."""


class LoginFailed(ApiError):
    """The user is unknown, the password is wrong, or the message is malformed."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=reason)
        self.args = (reason,)


class Login:
    """The login of one connection; without users every request is allowed."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users: Final = users
        self._exchange: _Exchange | None = None
        self.user: str | None = None
        """The user, once the login has succeeded."""
        self.raw = False
        """Whether the next frame is a message of the mechanism, as after SaslHandshake 0."""

    @property
    def mechanisms(self) -> list[str]:
        """The mechanisms on offer."""
        return list(_MECHANISMS) if self._users else []

    def allows(self, key: int) -> bool:
        """Return whether a request of this API key is allowed now."""
        return not self._users or self.user is not None or key in _BEFORE_LOGIN

    def begin(self, mechanism: str, *, raw: bool) -> None:
        """Choose a mechanism; raise `ApiError` if it is not on offer."""
        if mechanism not in self.mechanisms:
            raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
        self._exchange = _MECHANISMS[mechanism](self._users)
        next(self._exchange)
        self.user, self.raw = None, raw

    def answer(self, message: bytes) -> bytes:
        """Return the answer to a message; raise `LoginFailed`, or `ApiError` if no message is expected."""
        if self._exchange is None:
            reason = "no mechanism is chosen, or the login is done"
            raise ApiError(ErrorCode.ILLEGAL_SASL_STATE, error_message=reason)
        try:
            return self._exchange.send(message)
        except StopIteration as end:
            self._exchange, self.raw = None, False
            self.user, answer = cast("tuple[str, bytes]", end.value)
            return answer


def _plain(users: Mapping[str, str]) -> _Exchange:
    """Log in by one message: identity, user and password, separated by NUL."""
    parts = (yield b"").split(b"\0")  # RFC 4616: "message = [authzid] UTF8NUL authcid UTF8NUL passwd"
    if len(parts) != 3:
        raise LoginFailed("a PLAIN message must be identity, user and password")
    user, password = (part.decode(errors="replace") for part in parts[1:])
    expected = users.get(user)
    if expected is None or not hmac.compare_digest(expected.encode(), password.encode()):
        raise LoginFailed(f"unknown user or wrong password: {user!r}")
    return user, b""


def _scram(hash: str, users: Mapping[str, str]) -> _Exchange:
    """Log in by two messages: the user's name, then the proof that the client knows the password."""
    header, _, bare = (yield b"").decode(errors="replace").partition(",,")
    fields = _fields(bare)
    # RFC 5802 5.1: m= "in a client or a server message MUST cause authentication failure"
    if header not in {"n", "y"} or "r" not in fields or "n" not in fields or "m" in fields:
        raise LoginFailed("the first message must be SCRAM without channel binding and without m=")
    # RFC 5802 5.1: "',' or '=' in usernames are sent as '=2C' and '=3D'"
    user = fields["n"].replace("=2C", ",").replace("=3D", "=")
    nonce, salt = fields["r"] + secrets.token_urlsafe(18), secrets.token_bytes(16)
    challenge = f"r={nonce},s={base64.b64encode(salt).decode()},i={_ITERATIONS}"
    without_proof, _, proof = (yield challenge.encode()).decode(errors="replace").rpartition(",p=")
    password = users.get(user)
    if password is None or _fields(without_proof).get("r") != nonce:
        raise LoginFailed(f"unknown user or wrong nonce: {user!r}")
    keys = ScramKeys(hash, password, salt, _ITERATIONS)
    auth_message = f"{bare},{challenge},{without_proof}".encode()
    if not hmac.compare_digest(base64.b64encode(keys.client_proof(auth_message)), proof.encode()):
        raise LoginFailed(f"wrong password: {user!r}")
    return user, b"v=" + base64.b64encode(keys.server_signature(auth_message))


def _fields(text: str) -> dict[str, str]:
    return {field[:1]: field[2:] for field in text.split(",") if field[1:2] == "="}


_MECHANISMS: Final[dict[str, Callable[[Mapping[str, str]], _Exchange]]] = {
    "PLAIN": _plain,
    **{name: partial(_scram, hash) for name, hash in SCRAM_HASHES.items()},
}
