"""How a connection is made safe: TLS by the standard library, SASL PLAIN and SCRAM (RFC 5802)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import ssl
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TypeAlias

from cloudevents_kafka.protocol.errors import ClientError

_MOST_ITERATIONS: Final = 1_000_000  # a hostile server's number would cost minutes
_LEAST_ITERATIONS: Final = 4096  # RFC 5802 5.1


class AuthenticationFailed(ClientError):
    """The broker refused the credentials, or could not prove that it knows them, or who it is."""


class Plain(NamedTuple):
    """SASL PLAIN: user and password as they are, so for use over TLS."""

    user: str
    password: str

    def __repr__(self) -> str:
        """Keep the password out."""
        return f"Plain(user={self.user!r})"


class Scram(NamedTuple):
    """SASL SCRAM: neither side shows the password, and each proves that it knows it."""

    user: str
    password: str
    mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-256"

    def __repr__(self) -> str:
        """Keep the password out."""
        return f"Scram(user={self.user!r}, mechanism={self.mechanism!r})"


Sasl: TypeAlias = Plain | Scram


class Security(NamedTuple):
    """What a connection needs: a TLS context, credentials, both or nothing."""

    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None


def mechanism_of(sasl: Sasl) -> str:
    """Return the name that the broker knows a mechanism by."""
    return "PLAIN" if isinstance(sasl, Plain) else sasl.mechanism


def authenticate(sasl: Sasl, exchange: Callable[[bytes], bytes]) -> None:
    """Go through a mechanism; ``exchange`` sends one message and gives the broker's answer.

    `AuthenticationFailed` where the broker's answers do not hold.
    """
    if isinstance(sasl, Plain):
        exchange(b"\0".join([b"", sasl.user.encode(), sasl.password.encode()]))
        return
    conversation = Conversation(sasl, secrets.token_urlsafe(24))
    final = conversation.final(exchange(conversation.first()))
    conversation.verify(exchange(final))


class Conversation:
    """One SCRAM exchange, RFC 5802 3 and 5, without channel binding."""

    def __init__(self, sasl: Scram, nonce: str) -> None:
        """Take the client's nonce, which must never be used twice."""
        self._digest: Final = "sha256" if sasl.mechanism == "SCRAM-SHA-256" else "sha512"
        user = sasl.user.replace("=", "=3D").replace(",", "=2C")
        self._bare: Final = f"n={user},r={nonce}"
        self._nonce: Final = nonce
        self._password: Final = sasl.password.encode()
        self._signature = b""

    def first(self) -> bytes:
        """Return the client's first message."""
        return f"n,,{self._bare}".encode()

    def final(self, answer: bytes) -> bytes:
        """Return the client's second message, its proof."""
        fields = _fields(answer)
        nonce, salt, iterations = fields.get("r", ""), _base64(fields.get("s", "")), fields.get("i", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationFailed("SCRAM: the broker's nonce does not go on from the client's")
        if not (iterations.isascii() and iterations.isdecimal() and len(iterations) < 8):
            raise AuthenticationFailed("SCRAM: the broker gives no count of iterations")
        count = int(iterations)
        if not _LEAST_ITERATIONS <= count <= _MOST_ITERATIONS:
            raise AuthenticationFailed(
                f"SCRAM: {count:,} iterations; {_LEAST_ITERATIONS:,} to {_MOST_ITERATIONS:,} are taken"
            )
        salted = hashlib.pbkdf2_hmac(self._digest, self._password, salt, count)
        client_key = self._hmac(salted, b"Client Key")
        without_proof = f"c=biws,r={nonce}"  # biws is "n,,": no channel binding
        said = b",".join([self._bare.encode(), answer, without_proof.encode()])
        signature = self._hmac(hashlib.new(self._digest, client_key).digest(), said)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), said)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, answer: bytes) -> None:
        """Check that the broker knows the password too."""
        fields = _fields(answer)
        if "e" in fields:
            raise AuthenticationFailed(f"SCRAM: the broker refuses: {fields['e']}")
        if not hmac.compare_digest(_base64(fields.get("v", "")), self._signature):
            raise AuthenticationFailed("SCRAM: the broker cannot prove that it knows the password")

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.new(key, data, self._digest).digest()


def _fields(message: bytes) -> dict[str, str]:
    text = message.decode("utf-8", "replace")
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise AuthenticationFailed("SCRAM: the broker's answer is not base64") from None
