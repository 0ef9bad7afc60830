"""The server's half of SCRAM (RFC 5802), and PLAIN (RFC 4616), for a handful of users."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final, Protocol

ITERATIONS: Final = 4096
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS: Final = ("PLAIN", *_HASHES)


class Denied(Exception):
    """The user is unknown, the password wrong, or the message is none."""


class Exchange(Protocol):
    """One login: ``user`` is set when it has succeeded."""

    user: str | None

    def answer(self, message: bytes) -> bytes:
        """Answer the client's next message; `Denied`."""
        ...


def exchange(mechanism: str, users: Mapping[str, str]) -> Exchange:
    """Begin a login by one of `MECHANISMS`."""
    return Plain(users) if mechanism == "PLAIN" else Scram(_HASHES[mechanism], users)


class Plain:
    """One message: identity, user and password, with zero bytes between."""

    def __init__(self, users: Mapping[str, str]) -> None:
        """Keep the passwords by user."""
        self.user: str | None = None
        self._users: Final = users

    def answer(self, message: bytes) -> bytes:
        """Check the password; `Denied`."""
        parts = message.split(b"\0")
        if len(parts) != 3:
            raise Denied("PLAIN is identity, user and password")
        user, password = (part.decode(errors="replace") for part in parts[1:])
        if user not in self._users or not _same(self._users[user].encode(), password.encode()):
            raise Denied(f"unknown user or wrong password: {user!r}")
        self.user = user
        return b""


class Scram:
    """Two messages: who, and the proof of knowing the password."""

    def __init__(self, hash: str, users: Mapping[str, str]) -> None:
        """Keep the passwords by user."""
        self.user: str | None = None
        self._hash: Final = hash
        self._users: Final = users
        self._name = ""
        self._salt: Final = secrets.token_bytes(16)
        self._said = b""  # client-first-message-bare and server-first-message, as they are signed
        self._nonce = ""

    def answer(self, message: bytes) -> bytes:
        """Answer the first message by a challenge, the second by the server's own proof; `Denied`."""
        text = message.decode(errors="replace")
        return self._final(text) if self._nonce else self._first(text)

    def _first(self, text: str) -> bytes:
        header, _, bare = text.partition(",,")
        fields = _fields(bare)
        if header not in {"n", "y"} or "r" not in fields or "n" not in fields:
            raise Denied("this is no first message of SCRAM without channel binding")
        self._name = fields["n"].replace("=2C", ",").replace("=3D", "=")
        self._nonce = fields["r"] + secrets.token_urlsafe(18)
        salt = base64.b64encode(self._salt).decode()
        challenge = f"r={self._nonce},s={salt},i={ITERATIONS}"
        self._said = f"{bare},{challenge}".encode()
        return challenge.encode()

    def _final(self, text: str) -> bytes:
        bare, _, proof = text.rpartition(",p=")
        password = self._users.get(self._name)
        if password is None or _fields(bare).get("r") != self._nonce:
            raise Denied(f"unknown user or wrong nonce: {self._name!r}")
        salted = hashlib.pbkdf2_hmac(self._hash, password.encode(), self._salt, ITERATIONS)
        signed = self._said + b"," + bare.encode()
        key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, key).digest(), signed)
        expected = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        if not _same(base64.b64encode(expected), proof.encode()):
            raise Denied(f"wrong password: {self._name!r}")
        self.user = self._name
        verifier = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return b"v=" + base64.b64encode(verifier)

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _fields(text: str) -> dict[str, str]:
    return {field[:1]: field[2:] for field in text.split(",") if field[1:2] == "="}


def _same(one: bytes, other: bytes) -> bool:
    return hmac.compare_digest(one, other)
