"""SASL: the client sends a handshake (KIP-43), and then the messages of a mechanism.

The messages of the mechanism are sent without headers, or in SaslAuthenticate requests (KIP-152). The
mechanisms are PLAIN, SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628, KIP-255).

SCRAM is used without channel binding. Brokers of Apache Kafka hash passwords as UTF-8; other brokers follow
RFC 5802, and apply SASLprep first. If SASLprep changes a user or password, the client tries the original
text, and then the prepared text.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from cloudevents_kafka.primitives.visible import escape
from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._saslprep import saslprep
from cloudevents_kafka.protocol.client._settings import OAuthBearer, Plain, Sasl, Scram, check_token
from cloudevents_kafka.protocol.client._socket import AuthenticationFailed
from cloudevents_kafka.protocol.errors import BrokerError, Disconnected
from cloudevents_kafka.protocol.messages.connection import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

SCRAM_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash function of each SCRAM mechanism, by the mechanism's name."""

_MIN_ITERATIONS: Final = 4096  # RFC 5802 5.1: "at least 4096"
_MAX_ITERATIONS: Final = 1_000_000  # the count is untrusted input: more iterations take minutes
# RFC 5802 7: "printable = %x21-2B / %x2D-7E", "posit-number = %x31-39 *DIGIT", "attr-val = ALPHA "=" value"
_NONCE: Final = re.compile(r"[!-+\--~]+")
_COUNT: Final = re.compile(r"[1-9][0-9]{0,6}")
_EXTENSION: Final = re.compile(r"(?![aceimnprsv])[A-Za-z]=[^\0\ud800-\udfff]+")

_MECHANISMS: Final = {Plain: "PLAIN", OAuthBearer: "OAUTHBEARER"}
_MAX_REASON: Final = 300  # characters of a broker's answer that an error shows

Exchange: TypeAlias = Callable[[bytes], bytes]
"""A function that sends one message of a mechanism, and returns the broker's answer."""


def forms(sasl: Sasl) -> list[Sasl]:
    """Return the credentials that the client tries in turn.

    The original credentials are first. For SCRAM, the credentials after SASLprep are tried next, if SASLprep
    has changed the credentials.
    """
    if not isinstance(sasl, Scram):
        return [sasl]
    user, password = saslprep(sasl.user), saslprep(sasl.password)
    prepared = sasl._replace(user=user or sasl.user, password=password or sasl.password)
    return [sasl] if prepared == sasl else [sasl, prepared]


def log_in(connection: Connection, sasl: Sasl, deadline: Deadline) -> None:
    """Log in now, and again before the session ends (KIP-368).

    Raises `AuthenticationFailed` if the broker refuses the login.
    """
    mechanism = sasl.mechanism if isinstance(sasl, Scram) else _MECHANISMS[type(sasl)]
    response: SaslHandshakeResponse = connection.request(SaslHandshakeRequest(mechanism=mechanism), deadline)
    if response.error_code:
        offered = ", ".join(response.mechanisms) or "none"
        raise BrokerError(
            response.error_code, f"{connection.address}: {mechanism}", hint=f"it offers {offered}"
        )
    # After SaslHandshake 0 the messages are not requests (KIP-152).
    exchange = _exchange_raw if connection.version(SaslHandshakeRequest) == 0 else _exchange_request
    authenticate(sasl, partial(exchange, connection, deadline))
    connection.renew_session(lambda deadline: log_in(connection, sasl, deadline))


def authenticate(sasl: Sasl, exchange: Exchange) -> None:
    """Exchange the messages of a mechanism; raise `AuthenticationFailed` if the broker's answer is wrong."""
    if isinstance(sasl, Plain):
        exchange(b"\0".join([b"", sasl.user.encode(), sasl.password.encode()]))
    elif isinstance(sasl, OAuthBearer):
        exchange_bearer(sasl, exchange)
    else:
        exchange_scram(sasl, secrets.token_urlsafe(24), exchange)


def _exchange_raw(connection: Connection, deadline: Deadline, message: bytes) -> bytes:
    connection.write(frames.add_size(message), deadline)
    try:
        return connection.read(deadline)
    except Disconnected as error:
        raise AuthenticationFailed(f"{connection.address}: refused; {error}") from error


def _exchange_request(connection: Connection, deadline: Deadline, message: bytes) -> bytes:
    request = SaslAuthenticateRequest(auth_bytes=message)
    response: SaslAuthenticateResponse = connection.request(request, deadline, secret=True)
    if response.error_code:
        reason = response.error_message or BrokerError(response.error_code).meaning
        raise AuthenticationFailed(f"{connection.address}: {_shown(reason)}")
    connection.session_lifetime = response.session_lifetime_ms / 1000
    return response.auth_bytes


def exchange_bearer(sasl: OAuthBearer, exchange: Exchange) -> None:
    """Send the token and its extensions; raise `AuthenticationFailed` if the broker refuses them."""
    pairs = {"auth": f"Bearer {_token(sasl)}", **sasl.extensions}
    fields = [f"{name}={value}" for name, value in pairs.items()]
    answer = exchange("\1".join(["n,,", *fields, "\1"]).encode())
    if answer:
        # RFC 7628 3.2.3: the client ends the failed exchange, then the broker answers with an error.
        with suppress(AuthenticationFailed):
            exchange(b"\1")
        raise AuthenticationFailed(f"OAUTHBEARER: the broker refuses the token: {_refusal(answer)}")


def _token(sasl: OAuthBearer) -> str:
    if isinstance(sasl.token, str):
        return sasl.token
    try:
        token = sasl.token()
        check_token(token)
    except Exception as error:
        raise AuthenticationFailed(f"OAUTHBEARER: there is no token: {error}") from error
    return token


def _refusal(answer: bytes) -> str:
    """Return a broker's refusal as text; a refusal is JSON such as ``{"status": "invalid_token"}``."""
    text = answer.decode("utf-8", "replace")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        fields = None
    if isinstance(fields, dict):
        text = ", ".join(f"{name} {value}" for name, value in fields.items())
    return _shown(text)


def _shown(text: str) -> str:
    """Return a broker's text with unsafe characters escaped, cut to `_MAX_REASON` characters."""
    return escape(text)[:_MAX_REASON]


class ScramKeys:
    """Keys that are derived from a password; with the keys, each side proves that it knows the password."""

    def __init__(self, hash: str, password: str, salt: bytes, iterations: int) -> None:
        """Derive the keys from the password; this takes longer for more ``iterations``."""
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


def exchange_scram(sasl: Scram, nonce: str, exchange: Exchange) -> None:
    """Exchange the SCRAM messages; a ``nonce`` must never be used twice."""
    user = sasl.user.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}"
    server_first = exchange(f"n,,{first}".encode())
    full_nonce, salt, iterations = _values(server_first, "rsi")
    if not _NONCE.fullmatch(full_nonce) or not full_nonce.startswith(nonce) or full_nonce == nonce:
        raise AuthenticationFailed("SCRAM: the broker's nonce must extend the client's nonce")
    if not salt:
        raise AuthenticationFailed("SCRAM: the broker's salt is missing")
    keys = ScramKeys(SCRAM_HASHES[sasl.mechanism], sasl.password, _base64(salt), _iterations(iterations))
    without_proof = f"c=biws,r={full_nonce}"  # biws is base64 of "n,,": no channel binding
    auth_message = b",".join([first.encode(), server_first, without_proof.encode()])
    proof = base64.b64encode(keys.client_proof(auth_message)).decode()
    (signature,) = _values(exchange(f"{without_proof},p={proof}".encode()), "v")
    if not hmac.compare_digest(_base64(signature), keys.server_signature(auth_message)):
        raise AuthenticationFailed("SCRAM: the broker cannot prove that it knows the password")


def _iterations(text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise AuthenticationFailed("SCRAM: the broker's iteration count is missing or malformed")
    count = int(text)
    if not _MIN_ITERATIONS <= count <= _MAX_ITERATIONS:
        raise AuthenticationFailed(
            f"SCRAM: the iteration count must be {_MIN_ITERATIONS:,} to {_MAX_ITERATIONS:,}, got {count:,}"
        )
    return count


def _values(message: bytes, names: str) -> list[str]:
    """Return the values of a message's first attributes; the value of a missing attribute is "".

    ``names`` are the names of the first attributes, in the order of the message.

    Raises `AuthenticationFailed` if the broker refuses the login, or requires an extension. Other attributes
    are ignored.
    """
    parts = message.decode("utf-8", "surrogateescape").split(",")
    if parts[0].startswith("e="):
        raise AuthenticationFailed(f"SCRAM: the broker refuses: {_shown(parts[0][2:])}")
    # RFC 5802 5.1: "Its presence in a client or a server message MUST cause authentication failure"
    if any(part.startswith("m=") for part in parts):
        raise AuthenticationFailed(
            "SCRAM: the broker requires a mandatory extension (m=), which the client does not support"
        )
    heads = [*parts[: len(names)], *[""] * (len(names) - len(parts))]
    values = [
        part[2:] if part.startswith(f"{name}=") else "" for name, part in zip(names, heads, strict=True)
    ]
    if all(values) and not all(map(_EXTENSION.fullmatch, parts[len(names) :])):
        raise AuthenticationFailed(
            "SCRAM: an extension must be name=value with a name that SCRAM does not use"
        )
    return values


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise AuthenticationFailed("SCRAM: the broker's answer must be base64") from None
