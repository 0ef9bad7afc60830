"""Signed events: the extension verifiability.

Read `_envelope` first, the signed digests of an event and the envelope in which they travel; then
`_signing`, which signs and verifies events.
"""

from cloudevents_kafka.extensions.signing._envelope import (
    DSSE_MATERIAL,
    PAYLOAD_TYPE,
    Material,
    Signer,
    Verifier,
    pre_authentication_encoding,
    read_envelope,
    read_material,
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
