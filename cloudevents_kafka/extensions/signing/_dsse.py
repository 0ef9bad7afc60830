"""DSSE envelopes: a payload, its type, and signatures over both (DSSE 1.0.2, protocol and envelope).

The keys are the user's: one function signs a message, another checks a signature. What is
signed is not JSON but the payload's exact bytes, so an envelope may be written anew.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Annotated, Final

import msgspec

Signer = Callable[[bytes], bytes]
"""Gives the signature of a message."""

Verifier = Callable[[bytes, bytes], bool]
"""Tells whether a message has a signature: ``check(message, signature)`` is True, or it has not."""

_URL_SAFE: Final = str.maketrans("-_", "+/")
_MOST: Final = 64  # signatures: each costs a check of the whole message, and a stranger may write many


class MalformedEnvelope(ValueError):
    """The bytes are no DSSE envelope; says why."""


class Signature(msgspec.Struct, frozen=True):
    """One signature, and a hint at whose it is: empty where there is none."""

    keyid: str
    sig: bytes


class Envelope(msgspec.Struct, frozen=True):
    """What was signed, what kind of thing it is, and by whom."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]

    def signed_by(self, keys: Mapping[str, Verifier]) -> str | None:
        """Return the id of the first of these keys whose signature it has; None where it has none.

        A key that is not given is passed over. Raises what a check raises.
        """
        message = pre_authentication_encoding(self.payload_type, self.payload)
        for signature in self.signatures:
            check = keys.get(signature.keyid)
            if check is not None and check(message, signature.sig) is True:
                return signature.keyid
        return None


class _WireSignature(msgspec.Struct):
    sig: str
    keyid: str = ""


class _WireEnvelope(msgspec.Struct, rename="camel"):
    payload_type: str
    payload: str
    signatures: Annotated[tuple[_WireSignature, ...], msgspec.Meta(max_length=_MOST)]


_read: Final = msgspec.json.Decoder(_WireEnvelope).decode


def read_envelope(content: bytes) -> Envelope:
    """Read an envelope (Standard JSON envelope, Parsing rules); raises `MalformedEnvelope`.

    It may have 64 signatures at most.
    """
    try:
        wire = _read(content.decode())  # of bytes msgspec would not look at the texts of unknown fields
        signatures = tuple(Signature(one.keyid, _from_base64(one.sig)) for one in wire.signatures)
        return Envelope(wire.payload_type, _from_base64(wire.payload), signatures)
    except UnicodeDecodeError as error:  # whose text has a byte of what was sent
        raise MalformedEnvelope(f"byte {error.start} is not UTF-8") from None
    except (ValueError, RecursionError) as error:  # msgspec's errors and base64's: all are ValueErrors
        raise MalformedEnvelope(str(error)) from None


def sign_envelope(payload_type: str, payload: bytes, keyid: str, sign: Signer) -> bytes:
    """Write an envelope with one signature; raises what ``sign`` raises, `TypeError` if it gives no bytes."""
    signature = sign(pre_authentication_encoding(payload_type, payload))
    if not isinstance(signature, bytes | bytearray | memoryview):
        raise TypeError(f"a signature must be bytes, not {type(signature).__name__}")
    return msgspec.json.encode(
        {
            "payloadType": payload_type,
            "payload": payload,  # msgspec writes bytes as base64
            "signatures": [{"keyid": keyid, "sig": signature}],
        }
    )


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """Return the message to be signed: type and payload, each behind its length (DSSE protocol, PAE)."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _from_base64(text: str) -> bytes:
    """Read base64 in either alphabet, as a receiver has to."""
    return base64.b64decode(text.translate(_URL_SAFE), validate=True)
