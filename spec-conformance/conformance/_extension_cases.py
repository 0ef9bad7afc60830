"""Cases of extensions: moments, sequences, relations, sizes and signatures.

Signatures in the vectors are ECDSA with P-256 and SHA-256, r and s of 32 bytes each, as in
the test data of the document; a key is an uncompressed point (SEC 1, 2.3.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from cloudevents_kafka.attributes.timestamps import to_datetime
from cloudevents_kafka.binding import ContentMode, from_record, to_record
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions import (
    DuplicateTracker,
    SequenceTracker,
    fetch_data,
    is_expired,
    is_past_sunset,
    signing,
    size_problem,
    store_data,
)
from cloudevents_kafka.extensions.dsse import (
    DSSE_MATERIAL,
    PAYLOAD_TYPE,
    Material,
    pre_authentication_encoding,
    read_envelope,
    read_material,
)
from conformance._case import (
    MODES_AND_FORMATS,
    CaseFailed,
    Format,
    kind,
    require,
    require_equal,
)
from conformance._compare import check_attributes
from conformance.notation import (
    Bytes,
    Data,
    EventNotation,
    RecordNotation,
    Scalar,
    as_event,
    as_record,
)

_INTEGER_SIZE: Final = 32


@kind("moment", accepts=lambda case: not case.over)
def check_moment(
    event: EventNotation, attribute: Literal["expirytime", "deprecationsunset"], now: str, *, over: bool
) -> None:
    """Check whether a moment of an event is over at a time."""
    is_over = is_expired if attribute == "expirytime" else is_past_sunset
    found = is_over(as_event(event), to_datetime(now))
    require_equal(found, over, f"whether {attribute} is over at {now}")


def _in_order(case: Any) -> bool:
    return {*case.orders} <= {"unnumbered", "first", "next", *(["same"] if case.attribute else [])}


@kind("sequence", accepts=_in_order)
def check_sequence(
    events: list[EventNotation],
    orders: list[Literal["unnumbered", "first", "next", "gap", "later", "same", "earlier"]],
    attribute: Literal["bamtxid"] | None = None,
    missing: int = 0,
) -> None:
    """Check how each event, in the order of reading, follows the earlier events of its source."""
    tracker = SequenceTracker(attribute=attribute or "sequence")
    steps = [tracker.observe(as_event(event)) for event in events]
    require_equal([step.order for step in steps], orders, "the order of the events")
    require_equal(sum(step.missing for step in steps), missing, "the number of missing events")


@kind("relation", accepts=lambda case: case.holds)
def check_relation(
    events: tuple[EventNotation, EventNotation], relation: Literal["duplicate", "effect"], *, holds: bool
) -> None:
    """Check, in each mode and format, whether the second event is related to the first."""
    for mode, format in MODES_AND_FORMATS:
        first, second = (
            from_record(to_record(as_event(event), mode=mode, format=format)) for event in events
        )
        tracker = DuplicateTracker()
        is_duplicate = not tracker.observe(first) and tracker.observe(second)
        is_related = is_duplicate if relation == "duplicate" else second.get("causationid") == first.id
        require_equal(is_related, holds, f"after {format or mode}, whether {second} is {relation} of {first}")


class Encoding(Struct, forbid_unknown_fields=True):
    """A mode and a format in which an event is written."""

    mode: ContentMode
    format: Format | None = None


@kind("size", accepts=lambda case: not case.too_large, one_of=("encodings",))
def check_size(
    event: EventNotation, encodings: list[Encoding], *, too_large: bool, referred: bool | None = None
) -> None:
    """Check whether an encoding of an event is too large, and whether the data is stored elsewhere."""
    sent = as_event(event)
    records = [to_record(sent, mode=one.mode, format=one.format) for one in encodings]
    found = any(size_problem(record) is not None for record in records)
    require_equal(found, too_large, "whether an encoding is too large")
    if referred is not None:
        require_equal(_has_dataref(sent), referred, "whether the data is stored elsewhere")


def _has_dataref(event: Event) -> bool:
    """Return whether the data of an event is stored elsewhere, after fetching it back."""
    stored: list[bytes] = []

    def store(data: bytes) -> str:
        stored.append(data)
        return "/stored"

    sent = store_data(event, store)
    fetched = fetch_data(sent, lambda _: stored.pop())
    require_equal(fetched.payload, event.payload, "the fetched data")
    return "dataref" in sent and sent.payload is None


@kind("sign", accepts=lambda case: not case.refused, one_of=("core", "refused"))
def check_sign(
    event: EventNotation,
    extensions: list[str],
    core: Bytes | None = None,
    ext: Bytes | None = None,
    *,
    refused: bool = False,
) -> None:
    """Sign an event with the expected digests, or refuse it."""
    messages: list[bytes] = []

    def key(message: bytes) -> bytes:
        messages.append(message)
        return b"signature"

    try:
        signed = signing.sign(as_event(event), key, keyid="k", extensions=extensions)
    except signing.SigningError as error:
        require(refused, f"must be signed: {error}")
        return
    require(not refused, f"must be refused, but was signed as {signed}")
    material = _signed_material(signed, messages)
    require_equal(material.core, core, "the digest of core attributes and data")
    require_equal(None if material.ext is UNSET else material.ext, ext, "the digest of extensions")
    require_equal(list(material.names), extensions, "the names of the extensions")


def _signed_material(signed: Event, messages: list[bytes]) -> Material:
    """Return the material of a signed event after comparing its envelope with the signed messages."""
    content = signed[DSSE_MATERIAL]
    envelope = read_envelope(content if isinstance(content, bytes) else b"")
    require_equal(envelope.payload_type, PAYLOAD_TYPE, "the payloadType")
    message = pre_authentication_encoding(PAYLOAD_TYPE, envelope.payload)
    require_equal([message], messages, "the signed message")
    signatures = [(one.keyid, one.sig) for one in envelope.signatures]
    require_equal(signatures, [("k", b"signature")], "the signatures")
    return read_material(envelope.payload)


@kind("verify", accepts=lambda case: case.verified is not None)
def check_verify(
    record: RecordNotation,
    keys: dict[str, Bytes],
    verified: Literal["core and extensions", "core", "core, extensions skipped", "nothing"] | None,
    behaviour: Literal["strict", "passthrough", "core-only"] = "strict",
    *,
    required: bool = True,
    attributes: dict[str, Scalar] | None = None,
    unverified: tuple[str, ...] = (),
) -> None:
    """Verify a record of a signed event, which returns the verified part of it, or discard it."""
    event = from_record(as_record(record))
    verifiers = {keyid: _verifier(point) for keyid, point in keys.items()}
    try:
        result = signing.verify(event, verifiers, behaviour=behaviour, required=required)
    except signing.VerificationError as error:
        require(verified is None, f"must be verified: {error}")
        return
    require_equal(result.verified, verified, "the verified part")
    if attributes is None:
        raise CaseFailed("a case with a verified part must have attributes")
    check_attributes(result.event, attributes)
    require_equal(result.event.payload, event.payload, "the data")
    require_equal(set(result.unverified), set(unverified), "the unverified extensions")


def _verifier(point: bytes) -> Callable[[bytes, bytes], bool]:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, utils
        from cryptography.hazmat.primitives.hashes import SHA256
    except ImportError as error:
        raise CaseFailed(
            f"cryptography must be installed to signing.verify signatures: pip install cryptography ({error})"
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


@kind("forward", accepts=lambda case: case.signed)
def check_forward(
    record: RecordNotation,
    *,
    signed: bool,
    changes: dict[str, str | None] | None = None,
    data: Data | UnsetType = UNSET,
) -> None:
    """Change a record of a signed event, whose signature is kept only if the change does not affect it."""
    received, changes = from_record(as_record(record)), changes or {}
    new_data = {} if isinstance(data, UnsetType) else {"data": data.value}
    changed = signing.drop_stale_signature(received.replace(**new_data, **changes), received)
    signature = received[DSSE_MATERIAL] if signed else None
    require_equal(changed.get(DSSE_MATERIAL), signature, "the signature")
    expected = set(received.replace(**changes)) - {DSSE_MATERIAL}
    require_equal(set(changed) - {DSSE_MATERIAL}, expected, "the other attributes")
