"""SCRAM (RFC 5802), without channel binding, for SHA-256 and SHA-512.

Passwords are hashed as UTF-8 without SASLprep, because Kafka's brokers store them so. Libraries
that follow the RFC apply SASLprep, and fail to log in with passwords that it changes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Final

from cloudevents_kafka.protocol.client._security import AuthenticationFailed, Scram

SCRAM_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash functions by the name of the mechanism."""

_MIN_ITERATIONS: Final = 4096  # RFC 5802 5.1: "at least 4096"
_MAX_ITERATIONS: Final = 1_000_000  # the count is untrusted input: more would take minutes


class ScramKeys:
    """The keys derived from a password, by which each side proves that it knows it."""

    def __init__(self, hash: str, password: str, salt: bytes, iterations: int) -> None:
        """Derive the keys; the time grows with ``iterations``."""
        self._hash: Final = hash
        salted = hashlib.pbkdf2_hmac(hash, password.encode(), salt, iterations)
        self._client_key: Final = self._hmac(salted, b"Client Key")
        self._server_key: Final = self._hmac(salted, b"Server Key")

    def client_proof(self, auth_message: bytes) -> bytes:
        """Return ClientProof: ClientKey XOR HMAC(H(ClientKey), AuthMessage)."""
        stored_key = hashlib.new(self._hash, self._client_key).digest()
        signature = self._hmac(stored_key, auth_message)
        return bytes(a ^ b for a, b in zip(self._client_key, signature, strict=True))

    def server_signature(self, auth_message: bytes) -> bytes:
        """Return ServerSignature: HMAC(ServerKey, AuthMessage)."""
        return self._hmac(self._server_key, auth_message)

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


class ScramClient:
    """The client's side of one exchange: `first`, then `final`, then `verify`."""

    def __init__(self, sasl: Scram, nonce: str) -> None:
        """Begin an exchange; a ``nonce`` must never be used twice."""
        self._hash: Final = SCRAM_HASHES[sasl.mechanism]
        user = sasl.user.replace("=", "=3D").replace(",", "=2C")
        self._first_bare: Final = f"n={user},r={nonce}"
        self._nonce: Final = nonce
        self._password: Final = sasl.password
        self._server_signature = b""

    def first(self) -> bytes:
        """Return the client-first-message."""
        return f"n,,{self._first_bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the client-final-message, with the proof; `AuthenticationFailed`."""
        fields = _fields(server_first)
        nonce, salt = fields.get("r", ""), _base64(fields.get("s", ""))
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationFailed("SCRAM: the broker's nonce must extend the client's nonce")
        keys = ScramKeys(self._hash, self._password, salt, _iterations(fields.get("i", "")))
        without_proof = f"c=biws,r={nonce}"  # biws is base64 of "n,,": no channel binding
        auth_message = b",".join([self._first_bare.encode(), server_first, without_proof.encode()])
        self._server_signature = keys.server_signature(auth_message)
        return f"{without_proof},p={base64.b64encode(keys.client_proof(auth_message)).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Raise `AuthenticationFailed` unless the broker proves that it knows the password."""
        fields = _fields(server_final)
        if "e" in fields:
            raise AuthenticationFailed(f"SCRAM: the broker refuses: {fields['e']}")
        if not hmac.compare_digest(_base64(fields.get("v", "")), self._server_signature):
            raise AuthenticationFailed("SCRAM: the broker cannot prove that it knows the password")


def _iterations(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 8):
        raise AuthenticationFailed("SCRAM: the broker's iteration count is missing or malformed")
    count = int(text)
    if not _MIN_ITERATIONS <= count <= _MAX_ITERATIONS:
        raise AuthenticationFailed(
            f"SCRAM: the iteration count must be {_MIN_ITERATIONS:,} to {_MAX_ITERATIONS:,}, got {count:,}"
        )
    return count


def _fields(message: bytes) -> dict[str, str]:
    text = message.decode("utf-8", "replace")
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise AuthenticationFailed("SCRAM: the broker's answer must be base64") from None
