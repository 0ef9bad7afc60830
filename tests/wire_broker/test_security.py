"""Logins by PLAIN and SCRAM, and TLS."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ssl
import struct

import pytest

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.connection import (
    ApiVersionsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.support.wire import Wire, metadata, only, self_signed
from tests.support.wire_broker import WireBroker

USERS = {"ann": "secret", "a,b=c": "p"}


@pytest.fixture
def broker():
    with WireBroker("4.3", users=USERS) as broker:
        yield broker


@pytest.fixture
def wire(broker):
    with Wire(broker.nodes[0]) as wire:
        yield wire


class Scram:
    """The client's half of RFC 5802, written for these tests alone."""

    def __init__(self, hash, user, password):
        self.hash, self.password = hash, password
        self.bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r=nonce"

    def first(self):
        return b"n,," + self.bare.encode()

    def final(self, challenge):
        nonce, salt, iterations = (field[2:] for field in challenge.decode().split(","))
        salted = hashlib.pbkdf2_hmac(
            self.hash, self.password.encode(), base64.b64decode(salt), int(iterations)
        )
        bare = f"c=biws,r={nonce}"
        signed = f"{self.bare},{challenge.decode()},{bare}".encode()
        key = hmac.digest(salted, b"Client Key", self.hash)
        signature = hmac.digest(hashlib.new(self.hash, key).digest(), signed, self.hash)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        self.verifier = hmac.digest(hmac.digest(salted, b"Server Key", self.hash), signed, self.hash)
        return f"{bare},p={proof}".encode()


def authenticate(wire, data, version=1):
    return wire.ask(SaslAuthenticateRequest(auth_bytes=data), version)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_plain_accepts_the_right_password(broker, wire, version):
    """Before the login only ApiVersions is answered; after it, every request."""
    software = {"client_software_name": "t", "client_software_version": "1"}
    assert wire.ask(ApiVersionsRequest(**software), 3).error_code == ErrorCode.NONE
    got = wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert (got.error_code, got.mechanisms) == (ErrorCode.NONE, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    assert authenticate(wire, b"\0ann\0secret", version).error_code == ErrorCode.NONE
    assert wire.ask(metadata(), 1) is not None
    assert authenticate(wire, b"\0ann\0secret", version).error_code == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize("hash", ["sha256", "sha512"])
@pytest.mark.parametrize("user", list(USERS))
def test_scram_proves_both_sides(wire, hash, user):
    """The broker checks the client's proof, and returns its signature."""
    client = Scram(hash, user, USERS[user])
    wire.ask(SaslHandshakeRequest(mechanism=f"SCRAM-SHA-{hash[3:]}"), 1)
    challenge = authenticate(wire, client.first()).auth_bytes
    got = authenticate(wire, client.final(challenge))
    assert got.error_code == ErrorCode.NONE
    assert got.auth_bytes == b"v=" + base64.b64encode(client.verifier)
    assert wire.ask(metadata(), 1) is not None


@pytest.mark.parametrize(
    ("mechanism", "messages"),
    [
        ("PLAIN", [b"\0ann\0wrong"]),
        ("PLAIN", [b"\0bob\0secret"]),
        ("PLAIN", [b"\xff"]),
        ("SCRAM-SHA-256", [b"\xff"]),
        ("SCRAM-SHA-256", [b"p=tls-unique,,n=ann,r=x"]),
        ("SCRAM-SHA-256", [b"n,,m=x,n=ann,r=x"]),
        ("SCRAM-SHA-256", [b"n,,n=ann,r=x", b"c=biws,r=other,p=AAAA"]),
        ("SCRAM-SHA-256", [b"n,,n=ann,r=x", b"\xff"]),
    ],
)
def test_wrong_credentials_are_refused(broker, wire, mechanism, messages):
    """The error is 58 with a reason, and the connection is closed."""
    wire.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
    *fine, last = messages
    for message in fine:
        assert authenticate(wire, message).error_code == ErrorCode.NONE
    got = authenticate(wire, last)
    assert got.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert got.error_message
    assert wire.is_closed()


@pytest.mark.parametrize("hash", ["sha256", "sha512"])
def test_a_wrong_proof_is_refused(wire, hash):
    """SCRAM with another password fails at its last message."""
    client = Scram(hash, "ann", "wrong")
    wire.ask(SaslHandshakeRequest(mechanism=f"SCRAM-SHA-{hash[3:]}"), 1)
    challenge = authenticate(wire, client.first()).auth_bytes
    assert authenticate(wire, client.final(challenge)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_logins_are_in_order(broker, wire):
    """An unknown mechanism or none is an error; other requests before the login close the connection."""
    assert (
        wire.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1).error_code
        == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    )
    assert authenticate(wire, b"").error_code == ErrorCode.ILLEGAL_SASL_STATE
    with Wire(broker.nodes[0]) as other:
        other.send(metadata(), 1)
        assert other.is_closed()
    assert "must come after the login" in only(broker.connection_errors)
    with WireBroker("4.3") as open_, Wire(open_.nodes[0]) as other:
        assert (
            other.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
        )


def _bare(wire, message):
    wire.socket.sendall(struct.pack(">i", len(message)) + message)
    return wire.frame()


def test_after_handshake_0_the_messages_are_raw(broker):
    """Messages have only a size, as before KIP-152; a failure closes the connection."""
    with Wire(broker.nodes[0]) as wire:
        wire.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 0)
        client = Scram("sha256", "ann", "secret")
        assert _bare(wire, client.final(_bare(wire, client.first()))).startswith(b"v=")
        assert wire.ask(metadata(), 1) is not None
    with Wire(broker.nodes[0]) as wire:
        wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        assert _bare(wire, b"\0ann\0secret") == b""
        assert wire.ask(metadata(), 1) is not None
    with Wire(broker.nodes[0]) as wire:
        wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        assert _bare(wire, b"\0ann\0wrong") is None
    assert "login failed: unknown user or wrong password: 'ann'" in only(broker.connection_errors)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return a self-signed certificate of 127.0.0.1, and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))


def test_tls_is_required_if_set(certificate):
    """Requests are answered over TLS, and a client without TLS is disconnected."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    client = ssl.create_default_context(cafile=str(certificate[0]))
    with WireBroker("4.3", tls=server, users=USERS) as broker:
        with Wire(broker.nodes[0], tls=client) as wire:
            wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            assert authenticate(wire, b"\0ann\0secret").error_code == ErrorCode.NONE
            assert only(wire.ask(metadata("t"), 1).topics).error_code == ErrorCode.NONE
        with Wire(broker.nodes[0]) as wire:
            wire.send(metadata(), 1)
            while wire.read(1) is not None:  # TLS says why, in its own words
                pass
        with Wire(broker.nodes[0], tls=client) as wire:
            broker.close_connections()
            assert wire.is_closed()
