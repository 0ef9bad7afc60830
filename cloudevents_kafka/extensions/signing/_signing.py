"""Signed events: who made one, and that nobody changed it (extension verifiability).

`sign` puts digests of an event, signed with a key of the user's, into its ``dssematerial``;
`verify` holds a received event against them. A signature covers the core attributes, the
exact bytes of the data, and the extensions that were named; of a time the second, in UTC. It
does not tell an absent attribute from an empty one, nor that an event was left out or sent
twice. White space around JSON data does not survive the JSON format, nor then its signature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from cloudevents_kafka.attributes.types import AttributeValue, is_name, is_string
from cloudevents_kafka.clauses import SECTIONS
from cloudevents_kafka.errors import CloudEventsKafkaError, message_without_data, preview
from cloudevents_kafka.event import Event, select_attributes, with_content_type
from cloudevents_kafka.extensions.signing._digest import (
    DSSE_MATERIAL,
    PAYLOAD_TYPE,
    Material,
    canonical_bytes,
    check_signed_names,
    core_digest,
    digest_event,
    extension_digest,
    read_material,
    untyped_extensions,
)
from cloudevents_kafka.extensions.signing._dsse import (
    Envelope,
    MalformedEnvelope,
    Signer,
    Verifier,
    read_envelope,
    sign_envelope,
)

Behaviour = Literal["strict", "passthrough", "core-only"]
"""Which extensions to give: the verified; those, and the rest apart from them; none."""

Scope = Literal["core and extensions", "core", "core, extensions skipped", "nothing"]
"""What was verified. Extensions are skipped where nobody made the type of a signed one known.

A form may tell a type, but no signature covers that: "true" could have become true on the way.
"""

_BEHAVIOURS: Final = ("strict", "passthrough", "core-only")


class SigningError(CloudEventsKafkaError):
    """The event cannot be signed as asked (extension verifiability)."""


class VerificationError(CloudEventsKafkaError):
    """``event`` is not what a trusted key signed, or nothing shows that it is: it must be discarded."""

    def __init__(self, reason: str, event: Event) -> None:
        super().__init__(reason, event)
        self.reason = reason
        self.event = event

    def __str__(self) -> str:
        which = f"event {preview(self.event.id)} of {preview(self.event.source)}"
        return f"{which} is not verified: {self.reason}; discard it (X-46, {SECTIONS['X-46']})"


class Verification(msgspec.Struct, frozen=True):
    """What may be trusted of an event, and why.

    ``event`` has the verified attributes and data and nothing else; where ``verified`` is
    "nothing" it is the unsigned event as it came. ``unverified`` are the other extensions,
    which "passthrough" alone gives.
    """

    event: Event
    verified: Scope
    keyid: str | None = None
    unverified: Mapping[str, AttributeValue | datetime] = {}


def sign(event: Event, key: Signer, *, keyid: str, extensions: Sequence[str] = ()) -> Event:
    """Give the event with a signature over it, in place of one that it has.

    ``key`` makes the signature of a message; ``keyid`` tells receivers which key it is.
    ``extensions`` are covered too: each has a type that is known (by `register_extension`,
    or as the value is no text), or is absent. JSON data without a content type gets the one
    it implies, as most forms have to tell it and it is covered. Raises `SigningError`, what
    ``key`` raises, and `TypeError` where it gives no bytes.
    """
    if not isinstance(keyid, str) or not keyid or not is_string(keyid) or isinstance(extensions, str):
        raise SigningError("a signature needs a keyid, a text, and a list of names as extensions")
    names = tuple(extensions)
    if wrong := [name for name in names if not (isinstance(name, str) and is_name(name))]:
        raise SigningError(
            f"{preview(wrong[0])} cannot name an extension: lower-case a-z and 0-9, and not data"
        )
    if unknown := [name for name in untyped_extensions(event, names) if isinstance(event[name], str)]:
        raise SigningError(
            f"the types of {', '.join(unknown)} are not known, so they must not be signed "
            "(X-44, extension verifiability); make them known with register_extension"
        )
    try:
        event = with_content_type(event).replace(**{DSSE_MATERIAL: None})
        check_signed_names(names)
        material = digest_event(event, names)
    except ValueError as error:
        raise SigningError(
            f"the event cannot be signed: {message_without_data(error)} (X-44, extension verifiability)"
        ) from None
    return event.replace(
        **{DSSE_MATERIAL: sign_envelope(PAYLOAD_TYPE, msgspec.json.encode(material), keyid, key)}
    )


def verify(
    event: Event,
    keys: Mapping[str, Verifier],
    *,
    behaviour: Behaviour = "strict",
    required: bool | Callable[[Event], bool] = True,
) -> Verification:
    """Verify an event; where `VerificationError` is raised, it is to be discarded.

    ``keys`` are those that may sign such an event (of its source or type, say): by id, what
    checks a signature, ``check(message, signature)``. An unsigned event is an error unless
    ``required`` is False, as anybody on the way can take a signature off. What a check raises is
    raised: a key service that is down tells nothing of an event. `ValueError` for a
    ``behaviour`` that is none.
    """
    if behaviour not in _BEHAVIOURS:
        raise ValueError(f"behaviour must be one of {', '.join(_BEHAVIOURS)}, not {preview(behaviour)}")
    content = event.get(DSSE_MATERIAL)
    if content in (None, b""):
        if (required(event) if callable(required) else required) is not False:
            raise VerificationError("it must be signed and has no dssematerial", event)
        return Verification(event, "nothing")
    envelope = _opened(content, event)
    keyid = envelope.signed_by(keys)
    if keyid is None:
        raise VerificationError("its signature is of no key that may sign it", event)
    try:
        material = read_material(envelope.payload)
        scope = _compared(event, material, behaviour)
    except ValueError as error:
        raise VerificationError(message_without_data(error), event) from None
    return _result(event, material, scope, keyid, behaviour)


def drop_stale_signature(event: Event, received: Event) -> Event:
    """Give an event that was made of a received one as it may go on.

    That is without ``dssematerial`` where what it covers has changed, so that nobody takes
    the event for a signed one: `sign` it with a key of your own, or send it unsigned.
    """
    seal = event.get(DSSE_MATERIAL)
    if seal is None or seal != received.get(DSSE_MATERIAL) or _is_untouched(event, received):
        return event
    return select_attributes(event, event.attributes.keys() - {DSSE_MATERIAL})


def _opened(content: object, event: Event) -> Envelope:
    try:
        envelope = read_envelope(content if isinstance(content, bytes) else b"")
    except MalformedEnvelope as error:
        raise VerificationError(f"its dssematerial is no DSSE envelope: {error}", event) from None
    if envelope.payload_type != PAYLOAD_TYPE:
        raise VerificationError(
            f"its payloadType must be {PAYLOAD_TYPE}, not {preview(envelope.payload_type)}", event
        )
    return envelope


def _compared(event: Event, material: Material, behaviour: Behaviour) -> Scope:
    """Hold the digests against the event's own; raises `ValueError` where they differ."""
    if material.core != core_digest(event):
        raise ValueError("its core attributes or data are not those that were signed")
    if material.ext is msgspec.UNSET or behaviour == "core-only":
        return "core"
    if untyped_extensions(event, material.names):
        return "core, extensions skipped"
    if material.ext != extension_digest(event, material.names):
        raise ValueError(f"its extensions {', '.join(material.names)} are not those that were signed")
    return "core and extensions"


def _result(event: Event, material: Material, scope: Scope, keyid: str, behaviour: Behaviour) -> Verification:
    trusted = material.names if scope == "core and extensions" else ()
    others = event.extensions.keys() - set(trusted)
    unverified = {name: event.extensions[name] for name in others} if behaviour == "passthrough" else {}
    return Verification(select_attributes(event, event.attributes.keys() - others), scope, keyid, unverified)


def _is_untouched(event: Event, received: Event) -> bool:
    try:
        names = read_material(_opened(event.get(DSSE_MATERIAL), event).payload).names
        return core_digest(event) == core_digest(received) and all(
            canonical_bytes(event, name) == canonical_bytes(received, name) for name in names
        )
    except (ValueError, VerificationError):  # nobody can tell what it covers
        return event == received
