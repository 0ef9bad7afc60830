"""Signs and verifies events (extension verifiability).

The function `sign` writes digests of an event to the event's ``dssematerial``, and signs these digests with
the user's key. The function `verify` compares a received event with its signed digests. A signature covers
the core attributes, the exact bytes of the data, and the named extensions. Times are signed in UTC, without
fractions of a second. A signature does not distinguish an absent attribute from an empty attribute. It also
does not show whether an event was omitted or sent twice. The JSON format removes white space around JSON
data; after that, a signature of this data is invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, get_args

import msgspec

from cloudevents_kafka.attributes.python_values import check_values
from cloudevents_kafka.attributes.types import AttributeValue, is_name, is_string
from cloudevents_kafka.errors import CloudEventsKafkaError, InvalidEvent
from cloudevents_kafka.event import Event, raw_parts, select_attributes
from cloudevents_kafka.extensions import dsse
from cloudevents_kafka.extensions._content_type import with_content_type
from cloudevents_kafka.primitives.clauses import sections
from cloudevents_kafka.primitives.preview import message_without_data, preview

__all__ = ["SigningError", "Verification", "VerificationError", "drop_stale_signature", "sign", "verify"]


Behaviour = Literal["strict", "passthrough", "core-only"]
"""Which extensions `verify` returns.

For "strict", these are the verified extensions. For "passthrough", the result also contains the unverified
extensions, separately. For "core-only", no extensions are returned.
"""

Scope = Literal["core and extensions", "core", "core, extensions skipped", "nothing"]
"""The parts of an event that are verified.

Extensions are not verified if the type of a signed extension is neither documented nor registered. A value in
an event format may contain a type for the extension, but the signature does not cover this type: the text
"true" could have been changed to the Boolean true.
"""

_BEHAVIOURS: Final = get_args(Behaviour)


class SigningError(CloudEventsKafkaError):
    """The event cannot be signed (extension verifiability).

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions.signing import SigningError, sign
        >>> event = Event(id="1", source="/shop", type="order.placed", color="red")
        >>> try:
        ...     sign(event, lambda message: b"signed", keyid="shop-1", extensions=["color"])
        ... except SigningError as error:
        ...     print(str(error).partition(";")[2])
         call register_extension
    """


class VerificationError(CloudEventsKafkaError):
    """The event in the attribute ``event`` has no valid signature of a trusted key, so it must be discarded.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions.signing import VerificationError, verify
        >>> try:
        ...     verify(Event(id="1", source="/shop", type="order.placed"), {})
        ... except VerificationError as error:
        ...     print(error.event.id, "must be discarded")
        1 must be discarded
    """

    def __init__(self, reason: str, event: Event) -> None:
        super().__init__(reason, event)
        self.reason = reason
        self.event = event

    def __str__(self) -> str:
        which = f"event {preview(self.event.id)} of {preview(self.event.source)}"
        return f"{which} is not verified: {self.reason}; discard it (X-46, {sections()['X-46']})"


class Verification(msgspec.Struct, frozen=True):
    """The parts of an event that `verify` has verified.

    ``event`` contains only the verified attributes and data. If the received event is unsigned, ``event`` is
    the received event itself, and ``verified`` is "nothing". ``unverified`` contains the unsigned extensions
    if the behaviour is "passthrough".

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions.signing import verify
        >>> verify(Event(id="1", source="/shop", type="order.placed"), {}, required=False).verified
        'nothing'
    """

    event: Event
    verified: Scope
    keyid: str | None = None
    unverified: Mapping[str, AttributeValue | datetime] = {}


def sign(event: Event, key: dsse.Signer, *, keyid: str, extensions: Sequence[str] = ()) -> Event:
    """Return the event with a new signature, which replaces an existing signature.

    ``key`` is a function that returns the signature of a message; ``keyid`` is the id by which receivers find
    the key. The signature also covers the extensions in ``extensions``. If such an extension is neither
    documented nor registered, its value must not be a text. If JSON data has no content type,
    ``application/json`` is added: the signature covers the content type, and most event formats write it
    anyway. Raises `SigningError`, the exceptions of ``key``, and `TypeError` if ``key`` does not return
    bytes.

    Examples:
        >>> import hmac
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions.signing import sign
        >>> event = Event(id="1", source="/shop", type="order.placed", data=b"9.50")
        >>> signed = sign(event, lambda message: hmac.digest(b"secret", message, "sha256"), keyid="shop-1")
        >>> "dssematerial" in signed
        True
    """
    if not isinstance(keyid, str) or not keyid or not is_string(keyid) or isinstance(extensions, str):
        raise SigningError("keyid must be a text that is not empty, and extensions a list of names")
    names = tuple(extensions)
    if wrong := [name for name in names if not (isinstance(name, str) and is_name(name))]:
        raise SigningError(
            f"an extension name must have only a-z and 0-9 and not be 'data', got {preview(wrong[0])}"
        )
    # a String and a Timestamp with the same text have different signed bytes.
    if unknown := [name for name in dsse.untyped_extensions(event, names) if isinstance(event[name], str)]:
        raise SigningError(
            f"signed extensions must have a known type, got {', '.join(unknown)} "
            "(X-44, extension verifiability); call register_extension"
        )
    try:
        # Lenient reading accepts values that receivers refuse.
        if problems := check_values(dict(raw_parts(event)[0]))[1]:
            raise InvalidEvent(problems)
        event = with_content_type(event).replace(**{dsse.DSSE_MATERIAL: None})
        dsse.check_signed_names(names)
        material = dsse.digest_event(event, names)
    except ValueError as error:
        raise SigningError(
            f"the event cannot be signed: {message_without_data(error)} (X-44, extension verifiability)"
        ) from None
    content = dsse.sign_envelope(dsse.PAYLOAD_TYPE, msgspec.json.encode(material), keyid, key)
    return event.replace(**{dsse.DSSE_MATERIAL: content})


def verify(
    event: Event,
    keys: Mapping[str, dsse.Verifier],
    *,
    behaviour: Behaviour = "strict",
    required: bool | Callable[[Event], bool] = True,
) -> Verification:
    """Return the parts of an event that its signature verifies.

    ``keys`` maps the ids of keys to verifiers. Pass only keys whose owners may sign this kind of event. A
    verifier is a function that is called with a message and a signature, and returns whether the signature is
    valid. Any intermediary can remove a signature. By default, an unsigned event is therefore an error. Pass
    ``required=False``, or a function that returns False for certain events, to accept unsigned events. Raises
    `VerificationError` if the event must be discarded, and `ValueError` if ``behaviour`` is unknown.
    Exceptions of a verifier are raised unchanged: they do not mean that the event is wrong.

    Examples:
        >>> import hmac
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions.signing import sign, verify
        >>> def mac(message: bytes) -> bytes:
        ...     return hmac.digest(b"secret", message, "sha256")
        >>> received = sign(Event(id="1", source="/shop", type="order.placed"), mac, keyid="shop-1")
        >>> keys = {"shop-1": lambda message, signature: hmac.compare_digest(mac(message), signature)}
        >>> verify(received, keys).verified
        'core'
    """
    if behaviour not in _BEHAVIOURS:
        raise ValueError(f"behaviour must be one of {', '.join(_BEHAVIOURS)}, got {preview(behaviour)}")
    content = event.get(dsse.DSSE_MATERIAL)
    if content in (None, b""):
        if (required(event) if callable(required) else required) is not False:
            raise VerificationError("it must be signed, and dssematerial is missing", event)
        return Verification(event, "nothing")
    envelope = _read_signature(content, event)
    keyid = envelope.signed_by(keys)
    if keyid is None:  # each of these errors discards the event
        raise VerificationError("it must have a signature of a trusted key", event)
    try:
        material = dsse.read_material(envelope.payload)
        scope = _verify_digests(event, material, behaviour)
    except ValueError as error:
        raise VerificationError(message_without_data(error), event) from None
    verified = material.names if scope == "core and extensions" else ()
    unsigned = event.extensions.keys() - set(verified)
    # unsigned extensions are returned only on request
    unverified = {name: event.extensions[name] for name in unsigned} if behaviour == "passthrough" else {}
    return Verification(
        select_attributes(event, event.attributes.keys() - unsigned), scope, keyid, unverified
    )


def drop_stale_signature(event: Event, received: Event) -> Event:
    """Return an event that was made from a received event; remove its signature if it has become invalid.

    The signature is removed if the event's data, or an attribute that the signature covers, has changed.
    After the removal, `sign` the event with your key, or send it unsigned.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions.signing import drop_stale_signature, sign
        >>> event = Event(id="1", source="/shop", type="order.placed")
        >>> received = sign(event, lambda message: b"signed", keyid="shop-1")
        >>> "dssematerial" in drop_stale_signature(received.replace(type="paid"), received)
        False
    """
    signature = event.get(dsse.DSSE_MATERIAL)
    if signature is None or signature != received.get(dsse.DSSE_MATERIAL) or _is_unchanged(event, received):
        return event
    return select_attributes(event, event.attributes.keys() - {dsse.DSSE_MATERIAL})


def _read_signature(content: object, event: Event) -> dsse.Envelope:
    try:
        envelope = dsse.read_envelope(content if isinstance(content, bytes) else b"")
    except dsse.MalformedEnvelope as error:
        raise VerificationError(f"its dssematerial must be a DSSE envelope: {error}", event) from None
    if envelope.payload_type != dsse.PAYLOAD_TYPE:
        raise VerificationError(
            f"its payloadType must be {dsse.PAYLOAD_TYPE}, got {preview(envelope.payload_type)}", event
        )
    return envelope


def _verify_digests(event: Event, material: dsse.Material, behaviour: Behaviour) -> Scope:
    """Compare an event with its signed digests, and return which parts of the event match.

    Raises `ValueError` if a digest does not match.
    """
    if material.core != dsse.core_digest(event):
        raise ValueError("its core attributes or data have changed since it was signed")
    if material.ext is msgspec.UNSET or behaviour == "core-only":
        return "core"
    if dsse.untyped_extensions(event, material.names):
        return "core, extensions skipped"
    if material.ext != dsse.extension_digest(event, material.names):
        raise ValueError(f"its extensions {', '.join(material.names)} have changed since it was signed")
    return "core and extensions"


def _is_unchanged(event: Event, received: Event) -> bool:
    try:
        names = dsse.read_material(_read_signature(event.get(dsse.DSSE_MATERIAL), event).payload).names
        return dsse.core_digest(event) == dsse.core_digest(received) and all(
            dsse.canonical_bytes(event, name) == dsse.canonical_bytes(received, name) for name in names
        )
    except (ValueError, VerificationError):  # its coverage is unknown
        return event == received
