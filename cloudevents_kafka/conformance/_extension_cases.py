"""Cases of extensions: moments, sequences, relations, sizes and signatures.

Signatures in the vectors are ECDSA with P-256 and SHA-256, r and s of 32 bytes each, as in
the test data of the document; a key is an uncompressed point (SEC 1, 2.3.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, Literal

from msgspec import UNSET, Struct, UnsetType, field

from cloudevents_kafka.attributes.timestamps import to_datetime
from cloudevents_kafka.binding import ContentMode, from_record, to_record
from cloudevents_kafka.conformance._case import (
    MODES_AND_FORMATS,
    Case,
    CaseFailed,
    Format,
    require,
    require_equal,
)
from cloudevents_kafka.conformance._compare import check_attributes
from cloudevents_kafka.conformance.notation import (
    Bytes,
    Data,
    EventNotation,
    RecordNotation,
    Scalar,
    as_event,
    as_record,
)
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions import (
    DuplicateTracker,
    SequenceTracker,
    fetch_data,
    is_expired,
    is_past_sunset,
    size_problem,
    store_data,
)
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

_INTEGER_SIZE: Final = 32


class MomentCase(Case, tag="moment"):
    """An event with a moment, and the time at which to check it."""

    event: EventNotation
    attribute: Literal["expirytime", "deprecationsunset"]
    now: str
    over: bool

    def _check(self) -> None:
        is_over = is_expired if self.attribute == "expirytime" else is_past_sunset
        over = is_over(as_event(self.event), to_datetime(self.now))
        require_equal(over, self.over, f"whether {self.attribute} is over at {self.now}")


class SequenceCase(Case, tag="sequence"):
    """Events in the order in which they are read."""

    events: list[EventNotation]
    orders: list[Literal["unnumbered", "first", "next", "gap", "later", "same", "earlier"]]
    attribute: Literal["bamtxid"] | None = None
    missing: int = 0

    @property
    def accepts(self) -> bool:
        """Whether the events are in order."""
        return {*self.orders} <= {"unnumbered", "first", "next", *(["same"] if self.attribute else [])}

    def _check(self) -> None:
        """Check how each event follows the earlier events of its source."""
        tracker = SequenceTracker(attribute=self.attribute or "sequence")
        steps = [tracker.observe(as_event(event)) for event in self.events]
        require_equal([step.order for step in steps], self.orders, "the order of the events")
        require_equal(sum(step.missing for step in steps), self.missing, "the number of missing events")


class RelationCase(Case, tag="relation"):
    """Two events that are related or not."""

    events: tuple[EventNotation, EventNotation]
    relation: Literal["duplicate", "effect"]
    holds: bool

    def _check(self) -> None:
        """Check, in each mode and format, whether the second event is related to the first."""
        is_related = _is_duplicate if self.relation == "duplicate" else _is_effect
        events = [as_event(event) for event in self.events]
        for mode, format in MODES_AND_FORMATS:
            first, second = (from_record(to_record(event, mode=mode, format=format)) for event in events)
            what = f"after {format or mode}, whether {second} is {self.relation} of {first}"
            require_equal(is_related(first, second), self.holds, what)


def _is_duplicate(one: Event, other: Event) -> bool:
    tracker = DuplicateTracker()
    return not tracker.observe(one) and tracker.observe(other)


def _is_effect(cause: Event, event: Event) -> bool:
    return event.get("causationid") == cause.id


class Encoding(Struct, forbid_unknown_fields=True):
    """A mode and a format in which an event is written."""

    mode: ContentMode
    format: Format | None = None


class SizeCase(Case, tag="size"):
    """An event whose encodings are small enough or not."""

    one_of: ClassVar = ("encodings",)
    event: EventNotation
    encodings: list[Encoding]
    too_large: bool
    referred: bool | None = None

    def _check(self) -> None:
        """Check whether an encoding is too large, and whether the data is stored elsewhere."""
        event = as_event(self.event)
        records = [to_record(event, mode=one.mode, format=one.format) for one in self.encodings]
        too_large = any(size_problem(record) is not None for record in records)
        require_equal(too_large, self.too_large, "whether an encoding is too large")
        if self.referred is not None:
            require_equal(_has_dataref(event), self.referred, "whether the data is stored elsewhere")


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


class SignCase(Case, tag="sign"):
    """An event to sign."""

    one_of: ClassVar = ("core", "refused")
    event: EventNotation
    extensions: list[str]
    core: Bytes | None = None
    ext: Bytes | None = None
    refused: bool = False

    def _check(self) -> None:
        """Sign the event with the expected digests, or refuse it."""
        messages = []

        def key(message: bytes) -> bytes:
            messages.append(message)
            return b"signature"

        try:
            signed = sign(as_event(self.event), key, keyid="k", extensions=self.extensions)
        except SigningError as error:
            require(self.refused, f"must be signed: {error}")
            return
        require(not self.refused, f"must be refused, but was signed as {signed}")
        content = signed[DSSE_MATERIAL]
        envelope = read_envelope(content if isinstance(content, bytes) else b"")
        require_equal(envelope.payload_type, PAYLOAD_TYPE, "the payloadType")
        message = pre_authentication_encoding(PAYLOAD_TYPE, envelope.payload)
        require_equal([message], messages, "the signed message")
        signatures = [(one.keyid, one.sig) for one in envelope.signatures]
        require_equal(signatures, [("k", b"signature")], "the signatures")
        material = read_material(envelope.payload)
        require_equal(material.core, self.core, "the digest of core attributes and data")
        require_equal(None if material.ext is UNSET else material.ext, self.ext, "the digest of extensions")
        require_equal(list(material.names), self.extensions, "the names of the extensions")


class VerifyCase(Case, tag="verify"):
    """A record of a signed event to verify."""

    record: RecordNotation
    keys: dict[str, Bytes]
    verified: Literal["core and extensions", "core", "core, extensions skipped", "nothing"] | None
    behaviour: Literal["strict", "passthrough", "core-only"] = "strict"
    required: bool = True
    attributes: dict[str, Scalar] | None = None
    unverified: tuple[str, ...] = ()

    @property
    def accepts(self) -> bool:
        """Whether the event is kept."""
        return self.verified is not None

    def _check(self) -> None:
        """Verify the event, which returns the verified part of it, or discard it."""
        event = from_record(as_record(self.record))
        keys = {keyid: _verifier(point) for keyid, point in self.keys.items()}
        try:
            result = verify(event, keys, behaviour=self.behaviour, required=self.required)
        except VerificationError as error:
            require(self.verified is None, f"must be verified: {error}")
            return
        require_equal(result.verified, self.verified, "the verified part")
        if self.attributes is None:
            raise CaseFailed("a case with a verified part must have attributes")
        check_attributes(result.event, self.attributes)
        require_equal(result.event.payload, event.payload, "the data")
        require_equal(set(result.unverified), set(self.unverified), "the unverified extensions")


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


class ForwardCase(Case, tag="forward"):
    """A record of a signed event to change and forward."""

    record: RecordNotation
    signed: bool
    changes: dict[str, str | None] = field(default_factory=dict)
    data: Data | UnsetType = UNSET

    def _check(self) -> None:
        """Check that the signature is kept if the change does not affect it, and only then."""
        received = from_record(as_record(self.record))
        data = {} if isinstance(self.data, UnsetType) else {"data": self.data.value}
        changed = drop_stale_signature(received.replace(**data, **self.changes), received)
        signature = received[DSSE_MATERIAL] if self.signed else None
        require_equal(changed.get(DSSE_MATERIAL), signature, "the signature")
        expected = set(received.replace(**self.changes)) - {DSSE_MATERIAL}
        require_equal(set(changed) - {DSSE_MATERIAL}, expected, "the other attributes")
