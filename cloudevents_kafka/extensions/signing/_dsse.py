"""DSSE envelopes: a payload, its type, and signatures over both (DSSE 1.0.2, protocol and envelope).

Users provide the keys: one function signs a message, another checks a signature. The exact bytes
of the payload are signed, not the envelope's JSON, so the JSON may be written in another way.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Annotated, Final

import msgspec

Signer = Callable[[bytes], bytes]
"""Return the signature of a message."""

Verifier = Callable[[bytes, bytes], bool]
"""Return True if a signature is valid for a message: ``verifier(message, signature)``."""

_URL_SAFE: Final = str.maketrans("-_", "+/")
_MAX_SIGNATURES: Final = 64  # their number is untrusted input, and each check reads the whole message


class MalformedEnvelope(ValueError):
    """The bytes are not a DSSE envelope."""


class Signature(msgspec.Struct, frozen=True):
    """One signature; ``keyid`` is a hint at its key, empty if there is none."""

    keyid: str
    sig: bytes


class Envelope(msgspec.Struct, frozen=True):
    """A payload, its type and its signatures."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]

    def signed_by(self, keys: Mapping[str, Verifier]) -> str | None:
        """Return the id of the first signature that its key verifies, or None.

        Signatures of other keys are ignored. Raises what a verifier raises.
        """
        message = pre_authentication_encoding(self.payload_type, self.payload)
        for signature in self.signatures:
            verifier = keys.get(signature.keyid)
            if verifier is not None and verifier(message, signature.sig) is True:
                return signature.keyid
        return None


class _WireSignature(msgspec.Struct):
    sig: str
    keyid: str = ""


class _WireEnvelope(msgspec.Struct, rename="camel"):
    payload_type: str
    payload: str
    signatures: Annotated[tuple[_WireSignature, ...], msgspec.Meta(max_length=_MAX_SIGNATURES)]


_read: Final = msgspec.json.Decoder(_WireEnvelope).decode


def read_envelope(content: bytes) -> Envelope:
    """Return the envelope in JSON text (DSSE envelope, Standard JSON envelope, Parsing rules).

    Raises `MalformedEnvelope`, also for more than 64 signatures.
    """
    try:
        wire = _read(content.decode())  # given bytes, msgspec does not check the UTF-8 of unknown fields
        signatures = tuple(Signature(each.keyid, _from_base64(each.sig)) for each in wire.signatures)
        return Envelope(wire.payload_type, _from_base64(wire.payload), signatures)
    except UnicodeDecodeError as error:  # its message quotes a received byte
        raise MalformedEnvelope(f"byte {error.start} is not UTF-8") from None
    except (ValueError, RecursionError) as error:  # of msgspec and base64
        raise MalformedEnvelope(str(error)) from None


def sign_envelope(payload_type: str, payload: bytes, keyid: str, signer: Signer) -> bytes:
    """Return an envelope with one signature as JSON text.

    Raises what ``signer`` raises, and `TypeError` if it does not return bytes.
    """
    signature = signer(pre_authentication_encoding(payload_type, payload))
    if not isinstance(signature, bytes | bytearray | memoryview):
        raise TypeError(f"a signature must be bytes, got {type(signature).__name__}")
    return msgspec.json.encode(
        {
            "payloadType": payload_type,
            "payload": payload,  # msgspec writes bytes as base64
            "signatures": [{"keyid": keyid, "sig": signature}],
        }
    )


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """Return the message to sign: the type and the payload, each after its length (DSSE protocol, PAE)."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _from_base64(text: str) -> bytes:
    """Return the bytes of base64 in either alphabet (DSSE envelope: receivers must accept both)."""
    return base64.b64decode(text.translate(_URL_SAFE), validate=True)
