"""Signed events: the extension verifiability.

Read `_dsse` first, the envelope in which a signature travels; then `_digest`, the signed
digests of an event; then `_signing`, which signs and verifies events.
"""

from cloudevents_kafka.extensions.signing._digest import DSSE_MATERIAL, PAYLOAD_TYPE, Material, read_material
from cloudevents_kafka.extensions.signing._dsse import (
    Envelope,
    MalformedEnvelope,
    Signer,
    Verifier,
    pre_authentication_encoding,
    read_envelope,
)
from cloudevents_kafka.extensions.signing._signing import (
    SigningError,
    Verification,
    VerificationError,
    drop_stale_signature,
    sign,
    verify,
)

__all__ = [
    "DSSE_MATERIAL",
    "PAYLOAD_TYPE",
    "Envelope",
    "MalformedEnvelope",
    "Material",
    "Signer",
    "SigningError",
    "Verification",
    "VerificationError",
    "Verifier",
    "drop_stale_signature",
    "pre_authentication_encoding",
    "read_envelope",
    "read_material",
    "sign",
    "verify",
]
