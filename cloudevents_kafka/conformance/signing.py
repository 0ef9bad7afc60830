"""Cases of signed events: what is signed, what is verified, and what may go on.

Signatures in the vectors are ECDSA over P-256 and SHA-256, r and s of 32 bytes each, as
in the test data of the document; a key is a point, uncompressed (SEC 1, 2.3.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from cloudevents_kafka.binding import from_record
from cloudevents_kafka.conformance.assertions import Unmet, judge_attribute, need, same
from cloudevents_kafka.conformance.dataset import Case
from cloudevents_kafka.conformance.notation import as_bytes, as_data, as_event, as_record, as_value
from cloudevents_kafka.extensions.signing import (
    DSSE_MATERIAL,
    PAYLOAD_TYPE,
    SigningError,
    VerificationError,
    drop_stale_signature,
    pre_authentication_encoding,
    read_envelope,
    read_material,
    sign,
    verify,
)

_WORD: Final = 32


def run_verify(case: Case) -> None:
    """Verify a record's event: told what was verified and given just that, or discarded."""
    event = from_record(as_record(case["record"]))
    keys = {keyid: _check_of(bytes.fromhex(point)) for keyid, point in case["keys"].items()}
    try:
        result = verify(
            event, keys, behaviour=case.get("behaviour", "strict"), required=case.get("required", True)
        )
    except VerificationError as error:
        need(case["verified"] is None, f"must be verified: {error}")
        return
    same(result.verified, case["verified"], "what is verified")
    same(sorted(result.event), sorted(case["attributes"]), "the attributes given")
    for name, value in case["attributes"].items():
        judge_attribute(result.event, name, value)
    same(result.event.payload, event.payload, "the data")
    same(set(result.unverified), set(case.get("unverified", [])), "the extensions that are not verified")


def run_sign(case: Case) -> None:
    """Sign an event: with these digests, in an envelope of this kind, or not at all."""
    messages = []

    def key(message: bytes) -> bytes:
        messages.append(message)
        return b"signature"

    try:
        signed = sign(as_event(case["event"]), key, keyid="k", extensions=case["extensions"])
    except SigningError as error:
        need(case.get("refused"), f"must be signed: {error}")
        return
    need(not case.get("refused"), f"must be refused, but was signed: {signed}")
    content = signed[DSSE_MATERIAL]
    envelope = read_envelope(content if isinstance(content, bytes) else b"")
    same(envelope.payload_type, PAYLOAD_TYPE, "the payloadType")
    same([pre_authentication_encoding(PAYLOAD_TYPE, envelope.payload)], messages, "what was signed")
    same([(one.keyid, one.sig) for one in envelope.signatures], [("k", b"signature")], "the signatures")
    material = read_material(envelope.payload)
    same(material.core, as_bytes(case["core"]), "the digest of core attributes and data")
    extensions = None if material.ext is msgspec.UNSET else material.ext
    same(extensions, as_bytes(case.get("ext")), "the digest of extensions")
    same(list(material.names), case["extensions"], "the names of the extensions")


def run_forward(case: Case) -> None:
    """Change a signed event: its signature stays where nothing that it covers was changed."""
    received = from_record(as_record(case["record"]))
    changes = {name: as_value(value) for name, value in case.get("changes", {}).items()}
    data = {"data": as_data(case["data"])} if "data" in case else {}
    changed = drop_stale_signature(received.replace(**data, **changes), received)
    same(changed.get(DSSE_MATERIAL), received[DSSE_MATERIAL] if case["signed"] else None, "the signature")
    same(
        set(changed) - {DSSE_MATERIAL},
        set(received.replace(**changes)) - {DSSE_MATERIAL},
        "the other attributes",
    )


def _check_of(point: bytes) -> Callable[[bytes, bytes], bool]:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, utils
        from cryptography.hazmat.primitives.hashes import SHA256
    except ImportError as error:
        raise Unmet(f"to check signatures needs a package: pip install cryptography ({error})") from None
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)

    def check(message: bytes, signature: bytes) -> bool:
        if len(signature) != 2 * _WORD:
            return False
        r, s = (int.from_bytes(half) for half in (signature[:_WORD], signature[_WORD:]))
        try:
            key.verify(utils.encode_dss_signature(r, s), message, ec.ECDSA(SHA256()))
        except InvalidSignature:
            return False
        return True

    return check
