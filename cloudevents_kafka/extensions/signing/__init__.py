"""Signed events: the extension verifiability.

`signing` signs and verifies; `digest` says what is signed, `dsse` how a signature travels.
"""

from cloudevents_kafka.extensions.signing.errors import SigningError, VerificationError
from cloudevents_kafka.extensions.signing.signing import Verification, forwardable, sign, verify

__all__ = ["SigningError", "Verification", "VerificationError", "forwardable", "sign", "verify"]
