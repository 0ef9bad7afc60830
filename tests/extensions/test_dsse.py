"""DSSE envelopes: the signed bytes, the parser, and the choice of signatures."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.extensions.dsse import (
    Base64,
    MalformedEnvelope,
    Signature,
    pre_authentication_encoding,
    read_envelope,
    sign_envelope,
)
from tests.support import strategies as make
from tests.support.cases import each

BODY = {"payloadType": "t", "payload": "aGk=", "signatures": [{"keyid": "k", "sig": "c2ln"}]}


def written(**changes: Any) -> bytes:
    return json.dumps({**BODY, **changes}).encode()


def test_the_signed_message() -> None:
    """Type and payload are signed, each after its length in bytes, as in the document's example."""
    message = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
    assert message == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert pre_authentication_encoding("é", b"\xff") == b"DSSEv1 2 \xc3\xa9 1 \xff"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.binary(), st.text(min_size=1, max_size=5))
@make.examples(50)
def test_a_signed_payload_is_read(payload_type: str, payload: bytes, keyid: str) -> None:
    """An envelope that was signed is read, and its key is found."""
    keyid = keyid.encode("utf-8", "replace").decode()
    envelope = read_envelope(sign_envelope(payload_type, payload, keyid, lambda message: message[::-1]))
    assert (envelope.payload_type, envelope.payload) == (payload_type, payload)
    assert envelope.signed_by({keyid: lambda message, signature: signature == message[::-1]}) == keyid


@each(
    "content",
    [
        *(json.dumps({k: v for k, v in BODY.items() if k != name}).encode() for name in BODY),
        *(written(**{name: None}) for name in BODY),
        written(payload="aGk"),
        written(payload="aG k="),
        written(payload="aGk=="),
        written(payload="é"),
        written(signatures=[{"keyid": "k"}]),
        written(signatures=[{"sig": "!"}]),
        written(payloadType="\ud800"),
        written()[:-1],
        b"\xff" + written(),
        written(more="x").replace(b"x", b"\xff"),
        written(signatures=BODY["signatures"] * 65),
        b"",
        b"null",
        written()[:-1] + b', "more": ' + b"[" * 100_000,
    ],
)
def test_malformed_envelopes(content: bytes) -> None:
    """Other JSON, other bytes, and wrong base64 are refused with a reason."""
    with pytest.raises(MalformedEnvelope, match=r".{5}"):
        read_envelope(content)


@given(st.one_of(st.binary(max_size=30), make.mutated(written())))
@make.examples(300)
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """Any bytes are an envelope or a MalformedEnvelope."""
    try:
        envelope = read_envelope(content)
    except MalformedEnvelope:
        return
    assert envelope.signed_by({}) is None


def test_either_alphabet_of_base64_is_read() -> None:
    """Standard and URL-safe base64 are both read."""
    payload = bytes(range(256))
    for text in (base64.b64encode(payload), base64.urlsafe_b64encode(payload)):
        assert read_envelope(written(payload=text.decode())).payload == payload


def test_several_signatures_are_read() -> None:
    """An envelope may have several signatures."""
    assert len(read_envelope(written(signatures=BODY["signatures"] * 64)).signatures) == 64


@each("wrong", [5, None, "text", [1, 2]])
def test_a_signature_is_bytes(wrong: Any) -> None:
    """A signature must be bytes: bytes(5) would be 5 zeros."""
    with pytest.raises(TypeError, match=f"must be bytes, got {type(wrong).__name__}"):
        sign_envelope("t", b"", "k", lambda _: wrong)
    assert read_envelope(sign_envelope("t", b"", "k", bytearray)).signatures[0].sig == b"DSSEv1 1 t 0 "


def test_an_unset_keyid_is_an_empty_one() -> None:
    """A missing keyid is read as an empty one."""
    assert read_envelope(written(signatures=[{"sig": ""}])).signatures == (Signature(Base64(b"")),)


def test_only_true_verifies_a_signature() -> None:
    """Only True verifies a signature; errors of a verifier are raised."""
    envelope = read_envelope(written())
    answers: list[Any] = [None, 0, 1, "yes", False]
    for answer in answers:
        assert envelope.signed_by({"k": lambda *_, answer=answer: answer}) is None
    assert envelope.signed_by({"k": lambda *_: True}) == "k"

    def down(message: bytes, signature: bytes) -> bool:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        envelope.signed_by({"k": down})
