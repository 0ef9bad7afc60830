"""Signed events: the coverage of a signature, trusted keys, and the verified parts of an event."""

from __future__ import annotations

import base64
import json
import pickle
from typing import Any

import pytest
from conformance import MODES_AND_FORMATS, Dataset
from conformance.notation import as_record
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import AttributeType, Event, Record, from_record, register_extension, to_record
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.extensions._content_type import with_content_type
from cloudevents_kafka.extensions.dsse import (
    PAYLOAD_TYPE,
    core_digest,
    extension_digest,
    sign_envelope,
    untyped_extensions,
)
from cloudevents_kafka.extensions.signing import (
    SigningError,
    VerificationError,
    drop_stale_signature,
    sign,
    verify,
)
from cloudevents_kafka.registry import temporarily
from tests.support import strategies as make
from tests.support.cases import each

PRIVATE = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
ORDER = Event(
    id="1",
    source="/shop",
    type="com.example.order",
    time="2026-01-01T12:00:00.5Z",
    datacontenttype="application/json",
    data=b'{"total": 1.10}',
    partitionkey="c-4",
    expirytime="2027-01-01T00:00:00Z",
)
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def holds(message: bytes, signature: bytes) -> bool:
    try:
        PRIVATE.public_key().verify(signature, message)
    except InvalidSignature:
        return False
    return True


KEYS = {"k": holds}


def signed(event: Event = ORDER, *extensions: str) -> Event:
    return sign(event, PRIVATE.sign, keyid="k", extensions=extensions)


@pytest.mark.usefixtures("registry")
def test_the_signature_of_the_document() -> None:
    """The event of the document, signed with its key, has its dssematerial (case 5)."""
    number = 97358161215184420915383655311931858321456579547487070936769975997791359926199
    private = ec.derive_private_key(number, ec.SECP256R1())

    def key(message: bytes) -> bytes:
        r, s = utils.decode_dss_signature(
            private.sign(message, ec.ECDSA(SHA256(), deterministic_signing=True))
        )
        return r.to_bytes(32) + s.to_bytes(32)

    event = Event(
        id="1",
        source="example/uri",
        type="example.type.binary",
        datacontenttype="application/octet-stream",
        data=base64.b64decode("8J+koQ=="),
    )
    case = next(case for _, case in Dataset().all_cases if case.id == "X-46/1")
    assert sign(event, key, keyid="testkey") == from_record(as_record(case.record))


@each(("mode", "form"), MODES_AND_FORMATS)
def test_a_signature_is_valid_after_every_format(mode: Any, form: str | None) -> None:
    """A signature is valid after any content mode and format."""
    record = to_record(signed(ORDER, "partitionkey", "expirytime"), mode=mode, format=form)
    result = verify(from_record(record), KEYS)
    assert (result.verified, result.keyid) == ("core and extensions", "k")
    assert result.event == ORDER
    assert not result.unverified


@each("data", [{"a": 1}, "text", b"\xff", None])
@each(("mode", "form"), MODES_AND_FORMATS)
def test_a_content_type_that_formats_add_is_signed(mode: Any, form: str | None, data: object) -> None:
    """Data without a content type is verified after any mode and format, also those that add one."""
    event = Event(id="1", source="/s", type="t", data=data)
    again = from_record(to_record(signed(event), mode=mode, format=form))
    assert verify(again, KEYS).event.data == data


@given(make.events())
@make.examples(60)
def test_signed_events_are_verified(event: Event) -> None:
    """Any event can be signed and verified, and no other event has its signature."""
    names = [
        name for name in event.extensions if name != "dssematerial" and not untyped_extensions(event, [name])
    ]
    made = sign(event, PRIVATE.sign, keyid="k", extensions=names)
    result = verify(made, KEYS)
    assert result.event.kind is made.kind
    expected = with_content_type(event)
    assert result.event == expected.replace(**{n: None for n in event.extensions if n not in names})
    with pytest.raises(VerificationError):
        verify(made.replace(id=f"{event.id}x"), KEYS)
    with pytest.raises(VerificationError):
        verify(made.replace(data=(event.payload or b"") + b" "), KEYS)


@given(st.one_of(st.binary(max_size=40), make.mutated(bytes(signed()["dssematerial"]))))  # type: ignore[arg-type]  # it is a Binary
@make.examples(300)
def test_any_bytes_are_verified_or_refused(content: bytes) -> None:
    """Any dssematerial is verified, or raises VerificationError."""
    try:
        result = verify(ORDER.replace(dssematerial=content), {**KEYS, "": holds})
    except VerificationError:
        return
    assert result.event == ORDER.replace(partitionkey=None, expirytime=None)


def test_the_error_names_the_event() -> None:
    """The error has the event, and its message names the event, the reason and what to do."""
    event = signed().replace(subject="other")
    with pytest.raises(VerificationError) as caught:
        verify(event, KEYS)
    assert caught.value.event is event
    assert str(caught.value) == (
        "event '1' of '/shop' is not verified: its core attributes or data have changed since it was signed; "
        "discard it (X-46, extension verifiability)"
    )
    again = pickle.loads(pickle.dumps(caught.value))  # our own bytes
    assert str(again) == str(caught.value)


CORE_DIGEST = base64.b64encode(core_digest(ORDER))
NO_NAMES = extension_digest(ORDER, [])


@each(
    "material",
    [
        *(
            b'{"more": ' + b"[" * 100_000,
            b"\xff",
            b'{"core": "\\ud800"}',
            b'{"core": null}',
            b'{"core": "x"}',
            b"",
        ),
        b'{"core": "%b", "more": "\xff"}' % CORE_DIGEST,
        b'{"core": "%b", "ext": "%b", "signedextattrs": []}' % (CORE_DIGEST, base64.b64encode(NO_NAMES)),
        *(
            b'{"core": "%b", "ext": "%b", "signedextattrs": ["exta"]}' % (CORE_DIGEST, base64.b64encode(ext))
            for ext in (NO_NAMES[:-1], NO_NAMES + b"\0")
        ),
        b'{"core": "%b", "ext": null, "signedextattrs": null}' % CORE_DIGEST,
    ],
)
def test_any_signed_payload_is_read_or_refused(material: bytes) -> None:
    """A malformed payload of a trusted key is refused, also if only its extensions are malformed."""
    event = ORDER.replace(dssematerial=sign_envelope(PAYLOAD_TYPE, material, "k", PRIVATE.sign))
    with pytest.raises(VerificationError):
        verify(event, KEYS, behaviour="core-only")


def test_attributes_of_another_type_are_refused() -> None:
    """An attribute of another type cannot be signed or verified, and the error names it."""
    required = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    signature = signed(Event(**required, expirytime="2026-01-01T00:00:00Z"), "expirytime").text(
        "dssematerial"
    )
    for more, why in [
        ({"expirytime": "soon", "dssematerial": signature}, "'soon'"),
        ({"sampledrate": "x", "dssematerial": signature}, "expirytime have changed"),
        ({"dssematerial": "!"}, "must be a DSSE envelope"),
    ]:
        headers = [(f"ce_{name}", str(value).encode()) for name, value in {**required, **more}.items()]
        event = from_record(Record(headers=headers), lenient=True)
        with pytest.raises(VerificationError, match=why):
            verify(event, KEYS)
        if "soon" in why:
            with pytest.raises(SigningError, match=why):
                signed(event, "expirytime")


def test_a_policy_decides_which_events_must_be_signed() -> None:
    """`required` decides about an unsigned event; by default it is refused."""
    with pytest.raises(VerificationError, match="must be signed"):
        verify(ORDER, KEYS)

    def of_the_shop(event: Event) -> bool:
        return event.source == "/shop"

    with pytest.raises(VerificationError, match="must be signed"):
        verify(ORDER, KEYS, required=of_the_shop)
    elsewhere = ORDER.replace(source="/elsewhere")
    result = verify(elsewhere, KEYS, required=of_the_shop)
    assert (result.event, result.verified, result.keyid) == (elsewhere, "nothing", None)
    silent: Any = {}.get
    with pytest.raises(VerificationError, match="must be signed"):
        verify(ORDER, KEYS, required=silent)


def test_unsigned_extensions_are_not_returned() -> None:
    """An unsigned extension is removed, or returned separately."""
    event = signed(ORDER, "expirytime").replace(partitionkey="put in on the way")
    assert "partitionkey" not in verify(event, KEYS).event
    apart = verify(event, KEYS, behaviour="passthrough")
    assert "partitionkey" not in apart.event
    assert apart.unverified["partitionkey"] == "put in on the way"
    assert set(verify(event, KEYS, behaviour="core-only").event) <= set(CORE)


def test_an_extension_is_returned_without_a_required_one() -> None:
    """A verified extension is kept, even if it requires another that was not signed."""
    traced = ORDER.replace(traceparent=TRACE, tracestate="a=1")
    assert "tracestate" in verify(signed(traced, "tracestate"), KEYS).event


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("kind", "value", "changed"),
    [
        (AttributeType.STRING, "true", True),
        (AttributeType.STRING, "5", 5),
        (AttributeType.STRING, "x", b"x"),
        (AttributeType.BOOLEAN, True, b"true"),
    ],
)
def test_values_must_have_the_registered_type(kind: AttributeType, value: Any, changed: Any) -> None:
    """Values of different types with the same bytes are refused unless the type is the registered one."""
    with temporarily():
        register_extension("heard", kind)
        signature = signed(ORDER.replace(heard=value), "heard")["dssematerial"]
    other = ORDER.replace(heard=changed, dssematerial=signature)
    result = verify(other, KEYS)
    assert result.verified == "core, extensions skipped"
    assert "heard" not in result.event
    register_extension("heard", kind)
    with pytest.raises(VerificationError, match=f"heard must have the type {kind.value}"):
        verify(other, KEYS)


@pytest.mark.usefixtures("registry")
def test_types_of_extensions_must_be_known() -> None:
    """A text of unknown type is not signed, and signed extensions of unknown type are skipped."""
    event = ORDER.replace(heard="2026-01-01T12:00:00.25+01:00")
    with pytest.raises(SigningError, match=r"must have a known type, got heard.*register_extension"):
        signed(event, "heard", "partitionkey")
    received = to_record(signed(event.replace(heard=None, counted=5), "counted"))
    assert verify(from_record(received), KEYS).verified == "core, extensions skipped"
    register_extension("counted", AttributeType.INTEGER)
    assert verify(from_record(received), KEYS).verified == "core and extensions"
    register_extension("heard", AttributeType.TIMESTAMP)
    made = signed(event, "heard").replace(heard="2026-01-01T11:00:00Z")
    assert verify(made, KEYS).verified == "core and extensions"


def test_the_reader_of_data_stays() -> None:
    """A verified event keeps the data reader of the received one."""
    received = signed().read_with(lambda event: len(event.payload or b""))
    assert verify(received, KEYS).event.data == len(ORDER.payload or b"")


def test_a_signature_is_replaced() -> None:
    """Signing again replaces the signature."""
    again = sign(signed(), PRIVATE.sign, keyid="other")
    assert verify(again, {"other": holds}).keyid == "other"
    with pytest.raises(VerificationError, match="a signature of a trusted key"):
        verify(again, KEYS)


def test_a_changed_event_is_forwarded_without_its_signature() -> None:
    """A changed event loses its signature, an unchanged one keeps it."""
    received = signed(ORDER, "partitionkey")
    assert drop_stale_signature(received, received) is received
    changed = received.replace(partitionkey="c-5", subject="other")
    assert "dssematerial" not in drop_stale_signature(changed, received)
    broken = received.replace(dssematerial=b"?")
    assert drop_stale_signature(broken, broken) is broken
    assert "dssematerial" not in drop_stale_signature(broken.replace(partitionkey="c-5"), broken)
    resigned = sign(changed, PRIVATE.sign, keyid="mine")
    assert drop_stale_signature(resigned, received) is resigned
    assert drop_stale_signature(ORDER, received) is ORDER
    assert drop_stale_signature(elsewhere := ORDER.replace(source="/elsewhere"), ORDER) is elsewhere


@each(
    "wrong",
    [
        *({"keyid": keyid} for keyid in ("", None, "\ud800")),
        *({"extensions": names} for names in ("exta", b"exta", ["partitionKey"], ["data"], [""], [1], [[]])),
        {"extensions": ["\ud800"]},
    ],
)
def test_wrong_arguments_are_refused(wrong: Any) -> None:
    """Keyid must be a text, and extensions a list of valid names."""
    with pytest.raises(SigningError, match=r"keyid must be|an extension name must have"):
        sign(ORDER, PRIVATE.sign, **{"keyid": "k", **wrong})


def test_a_broken_event_is_not_signed() -> None:
    """An invalid event is refused before the key is called."""
    needing = verify(signed(ORDER.replace(traceparent=TRACE, tracestate="a=1"), "tracestate"), KEYS).event
    messages = []
    with pytest.raises(SigningError, match="traceparent: is required with tracestate"):
        sign(needing, messages.append, keyid="k")  # type: ignore[arg-type,func-returns-value]  # it is not called
    assert not messages


def test_extensions_may_be_an_iterator() -> None:
    """The names of extensions may be an iterator."""
    names: Any = (name for name in ["expirytime", "partitionkey"])
    made = sign(ORDER, PRIVATE.sign, keyid="k", extensions=names)
    assert verify(made, KEYS).event == ORDER


def test_an_unknown_behaviour_is_refused() -> None:
    """A misspelled behaviour is refused."""
    wrong: Any = "lax"
    with pytest.raises(ValueError, match="strict, passthrough, core-only, got 'lax'"):
        verify(signed(), KEYS, behaviour=wrong)


def test_errors_of_keys_are_raised() -> None:
    """Errors of keys and verifiers are raised."""

    def down(*_: bytes) -> Any:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        sign(ORDER, down, keyid="k")
    with pytest.raises(TimeoutError):
        verify(signed(), {"k": down})


def test_the_members_of_the_material() -> None:
    """The object has `core` only, or all three members if extensions are signed."""

    def names(event: Event) -> list[str]:
        envelope = json.loads(bytes(event["dssematerial"]))  # type: ignore[arg-type]  # it is a Binary
        return list(json.loads(base64.b64decode(envelope["payload"])))

    assert names(signed()) == ["core"]
    assert names(signed(ORDER, "partitionkey")) == ["core", "ext", "signedextattrs"]
