"""Credentials for SASL, and the error for refused ones."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from cloudevents_kafka.protocol.errors import ClientError


class AuthenticationFailed(ClientError):
    """The broker refused the credentials, or failed to prove its identity."""


class Plain(NamedTuple):
    """SASL PLAIN, which sends user and password unencrypted: use TLS."""

    user: str
    password: str

    def __repr__(self) -> str:
        """Return the repr without the password."""
        return f"Plain(user={self.user!r})"


class Scram(NamedTuple):
    """SASL SCRAM: client and broker each prove that they know the password, without sending it."""

    user: str
    password: str
    mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-256"

    def __repr__(self) -> str:
        """Return the repr without the password."""
        return f"Scram(user={self.user!r}, mechanism={self.mechanism!r})"


Sasl: TypeAlias = Plain | Scram


def check_credentials(sasl: Sasl) -> None:
    """Raise ValueError, without the password in it, if a message cannot carry the credentials."""
    if not sasl.user or not _is_text(sasl.user):
        raise ValueError(f"the user must be non-empty text without NUL and surrogates, got {sasl.user!r}")
    if not _is_text(sasl.password):
        raise ValueError("the password must be text without NUL and surrogates")


def _is_text(text: str) -> bool:
    return "\0" not in text and text == text.encode(errors="replace").decode()
