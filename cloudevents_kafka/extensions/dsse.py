"""The signature of an event: a DSSE envelope, whose payload is a JSON object with digests of the event.

A DSSE 1.0.2 signature (protocol and envelope) covers the exact bytes of a payload, and the type of the
payload. In the signature of an event, the payload is a JSON object of digests (extension verifiability). Each
digest is the SHA-256 of several concatenated digests, one for each value. An absent value has the same digest
as an empty value.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Final

import msgspec

from cloudevents_kafka.attributes.extension_types import find_extension, type_of
from cloudevents_kafka.attributes.timestamps import to_utc_seconds
from cloudevents_kafka.attributes.types import CORE, TYPES, AttributeType, canonical_text
from cloudevents_kafka.event import Event, raw_parts
from cloudevents_kafka.primitives.preview import preview

Signer = Callable[[bytes], bytes]
"""A function that returns the signature of a message."""

Verifier = Callable[[bytes, bytes], bool]
"""A function that returns True if a signature is valid for a message: ``verifier(message, signature)``."""

DSSE_MATERIAL: Final = "dssematerial"
"""The attribute that contains the signature; the signature does not cover this attribute."""

PAYLOAD_TYPE: Final = "https://cloudevents.io/verifiability/dsse/v0.1"
# the order in which the digests of the core attributes are concatenated
_SIGNED_ORDER: Final = ("id", "source", "specversion", *CORE[3:])
_URL_SAFE: Final = str.maketrans("-_", "+/")
_MAX_SIGNATURES: Final = 64  # the number is untrusted input, and each check reads the whole message
_Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_Names = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class MalformedEnvelope(ValueError):
    """The bytes are not a DSSE envelope."""


class Base64(bytes):
    """Bytes that are base64 text in the JSON of an envelope; both base64 alphabets are accepted."""


class Signature(msgspec.Struct, frozen=True):
    """One signature of an envelope; ``keyid`` names the key, as an unverified hint, or is empty."""

    sig: Base64
    keyid: str = ""


class Envelope(msgspec.Struct, frozen=True, rename="camel"):
    """An envelope: the payload, its type and its signatures."""

    payload_type: str
    payload: Base64
    signatures: Annotated[tuple[Signature, ...], msgspec.Meta(max_length=_MAX_SIGNATURES)]

    def signed_by(self, keys: Mapping[str, Verifier]) -> str | None:
        """Return the id of the first key for which a signature of the envelope is valid, or None.

        Signatures of unknown keys are ignored. Exceptions of a verifier are raised unchanged.
        """
        message = pre_authentication_encoding(self.payload_type, self.payload)
        for signature in self.signatures:
            verifier = keys.get(signature.keyid)
            if verifier is not None and verifier(message, signature.sig) is True:
                return signature.keyid
        return None


class Material(msgspec.Struct, frozen=True, omit_defaults=True):
    """The digest of an event's core attributes and data, and the digest of its extensions ``names``."""

    core: _Digest
    ext: _Digest | msgspec.UnsetType = msgspec.UNSET
    signedextattrs: _Names | msgspec.UnsetType = msgspec.UNSET

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the extensions that a signature covers, in the order in which they were digested."""
        return () if self.signedextattrs is msgspec.UNSET else self.signedextattrs


def _from_base64(_: type, text: Any) -> Base64:
    """Return the bytes of base64 in either alphabet (DSSE envelope: receivers must accept both alphabets)."""
    if not isinstance(text, str):
        raise TypeError(f"base64 must be a string, got {type(text).__name__}")
    return Base64(base64.b64decode(text.translate(_URL_SAFE), validate=True))


_decode_envelope: Final = msgspec.json.Decoder(Envelope, dec_hook=_from_base64).decode
_decode_material: Final = msgspec.json.Decoder(Material).decode


def read_envelope(content: bytes) -> Envelope:
    """Return the envelope in JSON text (DSSE envelope, Standard JSON envelope, Parsing rules).

    Raises `MalformedEnvelope` if the text is malformed or contains more than 64 signatures.
    """
    try:
        return _decode_envelope(content.decode())  # in bytes, msgspec does not check the UTF-8 of all fields
    except UnicodeDecodeError as error:  # its message quotes a received byte
        raise MalformedEnvelope(f"byte {error.start} is not UTF-8") from None
    except (ValueError, RecursionError) as error:  # of msgspec and base64
        raise MalformedEnvelope(str(error)) from None


def sign_envelope(payload_type: str, payload: bytes, keyid: str, signer: Signer) -> bytes:
    """Return a JSON envelope with one signature. Raises `TypeError` if the signature is not bytes."""
    signature = signer(pre_authentication_encoding(payload_type, payload))
    if not isinstance(signature, bytes | bytearray | memoryview):
        raise TypeError(f"a signature must be bytes, got {type(signature).__name__}")
    signatures = [{"keyid": keyid, "sig": signature}]  # msgspec writes bytes as base64
    return msgspec.json.encode({"payloadType": payload_type, "payload": payload, "signatures": signatures})


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """Return the message to sign: the type and the payload, each after its length (DSSE protocol, PAE)."""
    encoded_type = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(encoded_type), encoded_type, len(payload), payload)


def digest_event(event: Event, names: Sequence[str]) -> Material:
    """Return the digests of an event and its extensions ``names``. Raises what `canonical_bytes` raises."""
    core = core_digest(event)
    return Material(core, extension_digest(event, names), tuple(names)) if names else Material(core)


def read_material(payload: bytes) -> Material:
    """Return the digests in a JSON object. Raises `ValueError` if the object is not a valid payload."""
    try:
        material = _decode_material(payload.decode())  # as in `read_envelope`
    except RecursionError:
        raise ValueError("the digests must be a JSON object") from None
    if (material.ext is msgspec.UNSET) is not (material.signedextattrs is msgspec.UNSET):
        raise ValueError("ext and signedextattrs must be present together or not at all")
    check_signed_names(material.names)
    return material


def check_signed_names(names: Sequence[str]) -> None:
    """Raise `ValueError` if a name occurs twice, or is a core attribute or ``dssematerial`` (X-43)."""
    if len(set(names)) < len(names):
        raise ValueError("signedextattrs must not name an attribute twice")
    for name in names:
        if name in CORE or name == DSSE_MATERIAL:
            raise ValueError(f"signedextattrs must not name {name}")


def core_digest(event: Event) -> bytes:
    """Return the digest of the core attributes and the exact bytes of the data."""
    return _digest([*(canonical_bytes(event, name) for name in _SIGNED_ORDER), event.payload or b""])


def extension_digest(event: Event, names: Sequence[str]) -> bytes:
    """Return the digest of extension attributes in the order of ``names``."""
    return _digest(canonical_bytes(event, name) for name in names)


def untyped_extensions(event: Event, names: Sequence[str]) -> list[str]:
    """Return the names of the event's extensions that are neither documented nor registered."""
    return [name for name in names if name in event and find_extension(name) is None]


def canonical_bytes(event: Event, name: str) -> bytes:
    """Return the digested bytes of an attribute, as its type requires (X-44, Canonical Value Serialization).

    Raises `ValueError` if the value has another type than the attribute; lenient reading allows such values.
    """
    value = raw_parts(event)[0].get(name)
    if value is None:
        return b""
    attribute_type = type_of(name)
    if find_extension(name) is not None and type(value) is not TYPES[attribute_type].python:
        raise ValueError(f"{name} must have the type {attribute_type.value}, got {preview(value)}")
    if isinstance(value, bytes):
        return value
    text = canonical_text(value)
    return (to_utc_seconds(text) if attribute_type is AttributeType.TIMESTAMP else text).encode()


def _digest(values: Iterable[bytes]) -> bytes:
    return sha256(b"".join(sha256(value).digest() for value in values)).digest()
