"""Logins: PLAIN (RFC 4616) and the server's half of SCRAM (RFC 5802), for a few users."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Mapping
from typing import Final, Protocol

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.client import SCRAM_HASHES, ScramKeys
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.testing.wire_broker._errors import ApiError

_ITERATIONS: Final = 4096
_MECHANISMS: Final = ("PLAIN", *SCRAM_HASHES)
_BEFORE_LOGIN: Final = {ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE}


class LoginFailed(Exception):
    """The user is unknown, the password is wrong, or the message is malformed."""


class _Mechanism(Protocol):
    user: str | None
    """The user, once the login has succeeded."""

    def answer(self, message: bytes) -> bytes: ...


class Login:
    """The login of one connection; without users every request is allowed."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users: Final = users
        self._mechanism: _Mechanism | None = None
        self.raw = False
        """Whether the next frame is a message of the mechanism, as after SaslHandshake 0."""

    @property
    def user(self) -> str | None:
        """The logged-in user."""
        return None if self._mechanism is None else self._mechanism.user

    @property
    def mechanisms(self) -> list[str]:
        """The mechanisms on offer."""
        return list(_MECHANISMS) if self._users else []

    def allows(self, key: int) -> bool:
        """Return whether a request of this API key is allowed now."""
        return not self._users or self.user is not None or key in _BEFORE_LOGIN

    def begin(self, mechanism: str, *, raw: bool) -> None:
        """Choose a mechanism; `ApiError`."""
        if mechanism not in self.mechanisms:
            raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
        self._mechanism = (
            _Plain(self._users) if mechanism == "PLAIN" else _Scram(SCRAM_HASHES[mechanism], self._users)
        )
        self.raw = raw

    def answer(self, message: bytes) -> bytes:
        """Return the answer to a message of the mechanism; `LoginFailed`, `ApiError` out of turn."""
        if self._mechanism is None or self._mechanism.user is not None:
            raise ApiError(ErrorCode.ILLEGAL_SASL_STATE)
        answer = self._mechanism.answer(message)
        self.raw = self.raw and self._mechanism.user is None
        return answer


class _Plain:
    """One message: identity, user and password, separated by NUL."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self.user: str | None = None
        self._users: Final = users

    def answer(self, message: bytes) -> bytes:
        parts = message.split(b"\0")
        if len(parts) != 3:
            raise LoginFailed("PLAIN is identity, user and password")
        user, password = (part.decode(errors="replace") for part in parts[1:])
        expected = self._users.get(user)
        if expected is None or not hmac.compare_digest(expected.encode(), password.encode()):
            raise LoginFailed(f"unknown user or wrong password: {user!r}")
        self.user = user
        return b""


class _Scram:
    """Two messages: the user's name, then the proof that the client knows the password."""

    def __init__(self, hash: str, users: Mapping[str, str]) -> None:
        self.user: str | None = None
        self._hash: Final = hash
        self._users: Final = users
        self._name = ""
        self._salt: Final = secrets.token_bytes(16)
        self._first_messages = b""  # client-first-message-bare "," server-first-message
        self._nonce = ""

    def answer(self, message: bytes) -> bytes:
        text = message.decode(errors="replace")
        return self._check_proof(text) if self._nonce else self._challenge(text)

    def _challenge(self, text: str) -> bytes:
        header, _, bare = text.partition(",,")
        fields = _fields(bare)
        if header not in {"n", "y"} or "r" not in fields or "n" not in fields:
            raise LoginFailed("the first message must be SCRAM without channel binding")
        self._name = fields["n"].replace("=2C", ",").replace("=3D", "=")
        self._nonce = fields["r"] + secrets.token_urlsafe(18)
        salt = base64.b64encode(self._salt).decode()
        challenge = f"r={self._nonce},s={salt},i={_ITERATIONS}"
        self._first_messages = f"{bare},{challenge}".encode()
        return challenge.encode()

    def _check_proof(self, text: str) -> bytes:
        without_proof, _, proof = text.rpartition(",p=")
        password = self._users.get(self._name)
        if password is None or _fields(without_proof).get("r") != self._nonce:
            raise LoginFailed(f"unknown user or wrong nonce: {self._name!r}")
        keys = ScramKeys(self._hash, password, self._salt, _ITERATIONS)
        auth_message = self._first_messages + b"," + without_proof.encode()
        expected = base64.b64encode(keys.client_proof(auth_message))
        if not hmac.compare_digest(expected, proof.encode()):
            raise LoginFailed(f"wrong password: {self._name!r}")
        self.user = self._name
        return b"v=" + base64.b64encode(keys.server_signature(auth_message))


def _fields(text: str) -> dict[str, str]:
    return {field[:1]: field[2:] for field in text.split(",") if field[1:2] == "="}
