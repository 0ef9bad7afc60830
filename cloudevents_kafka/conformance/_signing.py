"""Cases of signed events: signing, verifying and forwarding.

Signatures in the vectors are ECDSA with P-256 and SHA-256, r and s of 32 bytes each, as in
the test data of the document; a key is an uncompressed point (SEC 1, 2.3.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from cloudevents_kafka.binding import from_record
from cloudevents_kafka.conformance._assertions import CaseFailed, check_attribute, require, require_equal
from cloudevents_kafka.conformance._vectors import ForwardCase, SignCase, VerifyCase
from cloudevents_kafka.conformance.notation import as_bytes, as_data, as_event, as_record, as_value
from cloudevents_kafka.extensions.signing import (
    DSSE_MATERIAL,
    PAYLOAD_TYPE,
    Material,
    SigningError,
    VerificationError,
    drop_stale_signature,
    pre_authentication_encoding,
    read_envelope,
    read_material,
    sign,
    verify,
)

_INTEGER_SIZE: Final = 32


def run_verify(case: VerifyCase) -> None:
    """Verify a record's event, which returns the verified part of it, or discard it."""
    event = from_record(as_record(case.record))
    keys = {keyid: _verifier(bytes.fromhex(point)) for keyid, point in case.keys.items()}
    try:
        result = verify(event, keys, behaviour=case.behaviour, required=case.required)
    except VerificationError as error:
        require(case.verified is None, f"must be verified: {error}")
        return
    require_equal(result.verified, case.verified, "the verified part")
    if case.attributes is None:
        raise CaseFailed("a case with a verified part must have attributes")
    require_equal(sorted(result.event), sorted(case.attributes), "the attributes")
    for name, value in case.attributes.items():
        check_attribute(result.event, name, value)
    require_equal(result.event.payload, event.payload, "the data")
    require_equal(set(result.unverified), set(case.unverified), "the unverified extensions")


def run_sign(case: SignCase) -> None:
    """Sign an event with the expected digests, or refuse it."""
    messages = []

    def key(message: bytes) -> bytes:
        messages.append(message)
        return b"signature"

    try:
        signed = sign(as_event(case.event), key, keyid="k", extensions=case.extensions)
    except SigningError as error:
        require(case.refused, f"must be signed: {error}")
        return
    require(not case.refused, f"must be refused, but was signed as {signed}")
    content = signed[DSSE_MATERIAL]
    envelope = read_envelope(content if isinstance(content, bytes) else b"")
    require_equal(envelope.payload_type, PAYLOAD_TYPE, "the payloadType")
    require_equal(
        [pre_authentication_encoding(PAYLOAD_TYPE, envelope.payload)], messages, "the signed message"
    )
    signatures = [(one.keyid, one.sig) for one in envelope.signatures]
    require_equal(signatures, [("k", b"signature")], "the signatures")
    _check_digests(read_material(envelope.payload), case)


def _check_digests(material: Material, case: SignCase) -> None:
    require_equal(material.core, as_bytes(case.core), "the digest of core attributes and data")
    extensions = None if material.ext is msgspec.UNSET else material.ext
    require_equal(extensions, as_bytes(case.ext), "the digest of extensions")
    require_equal(list(material.names), case.extensions, "the names of the extensions")


def run_forward(case: ForwardCase) -> None:
    """Change a signed event; its signature must be kept if the change does not affect it."""
    received = from_record(as_record(case.record))
    changes = {name: as_value(value) for name, value in case.changes.items()}
    data = {} if isinstance(case.data, msgspec.UnsetType) else {"data": as_data(case.data)}
    changed = drop_stale_signature(received.replace(**data, **changes), received)
    require_equal(
        changed.get(DSSE_MATERIAL), received[DSSE_MATERIAL] if case.signed else None, "the signature"
    )
    expected = set(received.replace(**changes)) - {DSSE_MATERIAL}
    require_equal(set(changed) - {DSSE_MATERIAL}, expected, "the other attributes")


def _verifier(point: bytes) -> Callable[[bytes, bytes], bool]:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, utils
        from cryptography.hazmat.primitives.hashes import SHA256
    except ImportError as error:
        raise CaseFailed(
            f"cryptography must be installed to verify signatures: pip install cryptography ({error})"
        ) from None
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)

    def check(message: bytes, signature: bytes) -> bool:
        if len(signature) != 2 * _INTEGER_SIZE:
            return False
        r, s = (int.from_bytes(half) for half in (signature[:_INTEGER_SIZE], signature[_INTEGER_SIZE:]))
        try:
            key.verify(utils.encode_dss_signature(r, s), message, ec.ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True

    return check
