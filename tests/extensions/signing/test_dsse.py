"""DSSE envelopes: what is signed, what is read, and whose signature counts."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import strategies as make
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.extensions.signing import dsse

BODY = {"payloadType": "t", "payload": "aGk=", "signatures": [{"keyid": "k", "sig": "c2ln"}]}


def written(**changes: Any) -> bytes:
    return json.dumps({**BODY, **changes}).encode()


def test_what_is_signed() -> None:
    """Type and payload are signed, each behind its length in bytes; the example is the document's own."""
    message = dsse.pre_authentication("http://example.com/HelloWorld", b"hello world")
    assert message == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert dsse.pre_authentication("é", b"\xff") == b"DSSEv1 2 \xc3\xa9 1 \xff"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.binary(), st.text(min_size=1, max_size=5))
@make.examples(50)
def test_a_sealed_payload_is_read_back(payload_type: str, payload: bytes, keyid: str) -> None:
    """An envelope is read as it was sealed, and the key that signed it is found."""
    keyid = keyid.encode("utf-8", "replace").decode()
    envelope = dsse.read(dsse.seal(payload_type, payload, keyid, lambda message: message[::-1]))
    assert (envelope.payload_type, envelope.payload) == (payload_type, payload)
    assert envelope.signed_by({keyid: lambda message, signature: signature == message[::-1]}) == keyid


@pytest.mark.parametrize(
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
def test_no_envelope(content: bytes) -> None:
    """What lacks a field, is no JSON or UTF-8, or has bad base64 is refused, with a reason."""
    with pytest.raises(dsse.Malformed, match=r".{5}"):
        dsse.read(content)


@given(st.one_of(st.binary(max_size=30), make.mutated(written())))
@make.examples(300)
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """For any bytes there is an envelope or one error."""
    try:
        envelope = dsse.read(content)
    except dsse.Malformed:
        return
    assert envelope.signed_by({}) is None


def test_either_alphabet_of_base64_is_read() -> None:
    """Standard and URL-safe base64 are one."""
    payload = bytes(range(256))
    for text in (base64.b64encode(payload), base64.urlsafe_b64encode(payload)):
        assert dsse.read(written(payload=text.decode())).payload == payload


def test_several_signatures_are_read() -> None:
    """An envelope has as many signatures as anybody needs."""
    assert len(dsse.read(written(signatures=BODY["signatures"] * 64)).signatures) == 64


@pytest.mark.parametrize("wrong", [5, None, "text", [1, 2]])
def test_a_signature_is_bytes(wrong: Any) -> None:
    """What a key gives is written as it is, so it has to be bytes; a number would become so many zeros."""
    with pytest.raises(TypeError, match=f"must be bytes, not {type(wrong).__name__}"):
        dsse.seal("t", b"", "k", lambda _: wrong)
    assert dsse.read(dsse.seal("t", b"", "k", bytearray)).signatures[0].sig == b"DSSEv1 1 t 0 "


def test_an_unset_keyid_is_an_empty_one() -> None:
    """A signature without a keyid is one with an empty keyid."""
    assert dsse.read(written(signatures=[{"sig": ""}])).signatures == (dsse.Signature("", b""),)


def test_only_true_is_a_signature_that_holds() -> None:
    """A check that returns nothing, or anything but True, has not said yes; one that raises is heard."""
    envelope = dsse.read(written())
    answers: list[Any] = [None, 0, 1, "yes", False]
    for answer in answers:
        assert envelope.signed_by({"k": lambda *_, answer=answer: answer}) is None
    assert envelope.signed_by({"k": lambda *_: True}) == "k"

    def down(message: bytes, signature: bytes) -> bool:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        envelope.signed_by({"k": down})
