"""TLS, PLAIN and SCRAM."""

from __future__ import annotations

import base64
import io
import ssl
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._sasl import ScramKeys, authenticate, exchange_scram
from cloudevents_kafka.protocol.client._saslprep import saslprep
from cloudevents_kafka.protocol.client._settings import ConnectionSettings, Plain, Scram
from cloudevents_kafka.protocol.client._socket import AuthenticationFailed
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, ClientError, ProtocolError
from tests.support.cases import each
from tests.support.wire import eventually, self_signed
from tests.support.wire_broker import RELEASES, faults

PASSWORD = "pencil-secret"  # for a broker of this process
USERS = {"ann": PASSWORD, "a,b=c": PASSWORD}
MECHANISMS = [Plain, Scram, lambda user, password: Scram(user, password, "SCRAM-SHA-512")]
IDS = ["PLAIN", "256", "512"]
SASL_AUTHENTICATE, HANDSHAKE, METADATA = 36, 17, 3

SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


NONCE = "rOprNGfwEbeRWgbNEkqO"


def sent_messages(*answers, user="user", password="pencil", nonce=NONCE):
    """Return the messages of a client whose broker answers so."""
    sent, left = [], iter(answers)

    def exchange(message):
        sent.append(message)
        return next(left)

    exchange_scram(Scram(user, password), nonce, exchange)
    return sent


def test_the_example_of_rfc_7677():
    """The messages equal those of RFC 7677 section 3, with SHA-256."""
    first, final = sent_messages(SERVER_FIRST, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert first == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )


@each(
    ("hash", "password", "signature"),
    [
        ("sha256", "\u2168", "FIgQxlEPk9TRZ+iEiZd53Y00IZBcAWduvCewhLymZys="),
        ("sha256", "a\u00a0b", "p7WFRZEfDKoMFEfuOWSVxuHojHDA7bAR043NR8sBRRs="),
        (
            "sha512",
            "\u2168",
            "63SIoaaJpFjwsGiZ/OWVF4qkNisHqxGHQLGGsnAPbSWb9+t0Bu/Ef7zwyJ0/x87VOwi+7HMkbQrgQYtFkxuwRA==",
        ),
    ],
)
def test_passwords_are_hashed_as_they_are(hash, password, signature):
    """Signatures of Kafka 4.3.1's ScramFormatter for passwords that SASLprep would change."""
    keys = ScramKeys(hash, password, base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    assert base64.b64encode(keys.server_signature(b"message")).decode() == signature


@each(
    ("text", "prepared"),
    [
        # RFC 4013 3
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("\u0007", None),
        ("\u06271", None),
        # others
        ("a\u00a0b\u3000c", "a b c"),
        ("\u0627\u0628", "\u0627\u0628"),
        ("\u0627a\u0628", None),
        ("\ue000", None),
        ("\ud800", None),
        ("", ""),
    ],
)
def test_saslprep(text, prepared):
    """The examples of RFC 4013, spaces, directions and prohibited characters."""
    assert saslprep(text) == prepared


@given(st.text())
def test_prepared_text_stays(text):
    """SASLprep changes nothing that it has prepared."""
    prepared = saslprep(text)
    assert prepared is None or saslprep(prepared) == prepared


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("stored", "attempts"), [("\u2168\u00a0", 1), ("IX ", 2)], ids=["apache", "rfc"])
def test_both_kinds_of_brokers_log_in(start, connect, mechanism, stored, attempts):
    """A password is tried as it is, as Apache stores it, then prepared, as brokers that follow the RFC do."""
    broker = start(users={"ann": stored})
    client = connect(broker, sasl=Scram("ann", "\u2168\u00a0", mechanism))
    assert client.metadata().brokers
    assert len(broker.calls(HANDSHAKE)) == attempts


def session(lifetime):
    """Answer logins with a session lifetime in ms."""

    def fault(_call, answer):
        response = answer()
        response.session_lifetime_ms = lifetime
        return response

    return fault


def end_session(client):
    """Let the time of the client's only session be over; return the seconds after which it is renewed."""
    (connection,) = client._cluster._connections.values()
    renewal, log_in = connection._session
    connection._session = Deadline(0), log_in
    return renewal.seconds


@pytest.mark.parametrize("make", MECHANISMS, ids=IDS)
def test_sessions_are_renewed(start, connect, make):
    """Before a session ends the client logs in again on the same connection (KIP-368)."""
    broker = start(users=USERS)
    broker.faults.add(session(60_000), api=SASL_AUTHENTICATE, times=None)
    client = connect(broker, sasl=make("ann", PASSWORD))
    client.metadata()
    client.metadata()
    assert len(broker.calls(HANDSHAKE)) == 1
    assert 51 <= end_session(client) <= 57
    client.metadata()
    first, again = broker.calls(HANDSHAKE)
    assert first.connection == again.connection == broker.calls(METADATA)[-1].connection


def test_a_session_that_cannot_be_renewed(start, connect):
    """A password that was changed meanwhile is an error of the next request."""
    users = dict(USERS)
    broker = start(users=users)
    broker.faults.add(session(60_000), api=SASL_AUTHENTICATE)
    client = connect(broker, sasl=Plain("ann", PASSWORD))
    client.metadata()
    users["ann"] = "another"
    end_session(client)
    with pytest.raises(AuthenticationFailed):
        client.metadata()


def test_names_are_escaped():
    """Equals signs and commas in a user's name are escaped (RFC 5802 5.1)."""
    sent = []
    with pytest.raises(AuthenticationFailed):
        exchange_scram(Scram("a,b=c", "p"), "x", lambda message: sent.append(message) or b"")
    assert sent == [b"n,,n=a=2Cb=3Dc,r=x"]


@each(
    ("answer", "text"),
    [
        (b"", "nonce"),
        (b"\xff\xfe", "nonce"),
        (b"r=other,s=QUJD,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=QUJD,i=4096", "nonce"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=\xc3\xa4,i=4096", "base64"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=QUJD", "iteration count is missing"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=QUJD,i=-4096", "iteration count is missing"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=QUJD,i=" + b"9" * 5000, "iteration count is missing"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=QUJD,i=\xd9\xa4\xd9\xa0\xd9\xa9\xd9\xa6", "iteration count is missing"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=QUJD,i=4095", "4,096 to 1,000,000, got 4,095"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=QUJD,i=9999999", "got 9,999,999"),
    ],
)
def test_a_hostile_first_answer_is_refused(answer, text):
    """Wrong nonces, a malformed salt, and iteration counts out of bounds raise at once."""
    began = time.process_time()
    with pytest.raises(AuthenticationFailed, match=text):
        sent_messages(answer)
    assert time.process_time() - began < 1


@each(
    ("answer", "text"),
    [
        (b"", "cannot prove"),
        (b"v=", "cannot prove"),
        (b"v=QUJD", "cannot prove"),
        (b"v=*", "base64"),
        (b"e=unknown-user", "refuses: unknown-user"),
        (b"e=other-error,v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "refuses: other-error"),
    ],
)
def test_a_broker_must_prove_itself(answer, text):
    """Without the right signature the broker does not know the password."""
    with pytest.raises(AuthenticationFailed, match=text):
        sent_messages(SERVER_FIRST, answer)


FIRST = SERVER_FIRST.decode()
R, S, COUNT = FIRST.split(",")
FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@each(
    ("answer", "text"),
    [
        (f"m=x,{FIRST}", "mandatory extension"),
        (f"{FIRST},m=x", "mandatory extension"),
        ("m=x", "mandatory extension"),
        (f"{S},{R},{COUNT}", "nonce"),
        (f"x=1,{FIRST}", "nonce"),
        (f"{R},{COUNT},{S}", "salt is missing"),
        (f"{R},x=1,{S},{COUNT}", "salt is missing"),
        (f"{R},s=,{COUNT}", "salt is missing"),
        (f"{R},{COUNT}", "salt is missing"),
        (f"{R},{S},x=1,{COUNT}", "iteration count is missing"),
        (f"{R},{S},i=04096", "iteration count is missing"),
        (f"{R},{S},i=+4096", "iteration count is missing"),
        (f"{FIRST},{COUNT}", "extension"),
        (f"{FIRST},r=other", "extension"),
        (f"{FIRST},x", "extension"),
        (f"{FIRST},x=", "extension"),
        (f"{FIRST},xy=1", "extension"),
        (f"{FIRST},", "extension"),
        (f"{FIRST},x=\0", "extension"),
        (f"{FIRST},x=\udcff", "extension"),
        (f"{R}\x7f,{S},{COUNT}", "nonce"),
        (f"{R}\u00e4,{S},{COUNT}", "nonce"),
        ("e=unknown-user", "refuses: unknown-user"),
    ],
)
def test_the_first_answer_has_the_form_of_the_rfc(answer, text):
    """``m=``, another order, and attributes that are missing, repeated or malformed fail (RFC 5802 7)."""
    with pytest.raises(AuthenticationFailed, match=text):
        sent_messages(answer.encode(errors="surrogateescape"), FINAL.encode())


@each(
    ("answer", "text"),
    [
        (f"m=x,{FINAL}", "mandatory extension"),
        (f"{FINAL},m=x", "mandatory extension"),
        (f"x=1,{FINAL}", "cannot prove"),
        (f"{FINAL},e=other-error", "extension"),
        (f"{FINAL},{FINAL}", "extension"),
        (f"{FINAL},x", "extension"),
        ("e=", "refuses"),
    ],
)
def test_the_last_answer_has_the_form_of_the_rfc(answer, text):
    """``v=`` or ``e=`` comes first and once, and ``m=`` fails (RFC 5802 5.1, 7)."""
    with pytest.raises(AuthenticationFailed, match=text):
        sent_messages(SERVER_FIRST, answer.encode())


def test_unknown_extensions_are_ignored():
    """Optional extensions after the attributes change nothing (RFC 5802 5.1)."""
    keys = ScramKeys("sha256", "pencil", base64.b64decode(S[2:]), 4096)
    first = f"{FIRST},x=1,Y=a=b \u00e4"
    signed = f"n=user,r={NONCE},{first},c=biws,{R}".encode()
    final = base64.b64encode(keys.server_signature(signed)).decode()
    assert len(sent_messages(first.encode(), f"v={final},z=1".encode())) == 2


def test_a_refusal_is_shown_in_bounds():
    """The text of a broker's refusal is cut, and characters that a terminal obeys or hides are codes."""
    with pytest.raises(AuthenticationFailed) as caught:
        sent_messages(SERVER_FIRST, "e=\x1b[2J\u3164\ufe0f".encode() + b"a" * 1_000_000)
    assert len(str(caught.value)) < 400
    assert "\\x1b[2J\\u3164\\ufe0faaa" in str(caught.value)


def test_a_long_reason_of_a_broker_is_cut(start, connect):
    """The error message of SaslAuthenticate is shown in bounds, too."""

    def fault(_call, answer):
        response = answer()
        response.error_code, response.error_message = 58, "\x1b" + "a" * 30_000
        return response

    broker = start(users=USERS)
    broker.faults.add(fault, api=SASL_AUTHENTICATE)
    with pytest.raises(AuthenticationFailed) as caught:
        connect(broker, sasl=Plain("ann", PASSWORD)).metadata()
    assert len(str(caught.value)) < 400
    assert "\x1b" not in str(caught.value)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_random_answers_fail(first, second):
    """Every other answer raises `AuthenticationFailed`."""
    for prefix in (b"", b"r=n,s=QUJD,i=4096,"):
        with pytest.raises(AuthenticationFailed):
            sent_messages(prefix + first, second, user="u", password="p", nonce="n")


def test_nonces_are_never_used_twice():
    """Each exchange has another nonce."""
    seen = []

    def exchange(message):
        seen.append(message)
        raise AuthenticationFailed("enough")

    for _ in range(3):
        with pytest.raises(AuthenticationFailed):
            authenticate(Scram("u", "p"), exchange)
    assert len(set(seen)) == 3


@each("make", MECHANISMS, ids=IDS)
def test_passwords_are_not_shown(make):
    """repr, str and format, also of containers, leave the password out."""
    sasl = make("ann", PASSWORD)
    for text in (repr(sasl), str(sasl), f"{sasl}", repr(ConnectionSettings(sasl=sasl)), repr([sasl])):
        assert "ann" in text
        assert PASSWORD not in text


@pytest.mark.parametrize("release", [name for name in RELEASES if not name.startswith(("0.8", "0.9"))])
@pytest.mark.parametrize("make", MECHANISMS, ids=IDS)
@pytest.mark.parametrize("user", USERS)
def test_a_login_succeeds_and_is_not_traced(start, connect, release, make, user):
    """Raw messages (0.10) and requests both log in, and the capture has no password or proof."""
    broker, capture = start(release, users=USERS), io.StringIO()
    client = connect(broker, sasl=make(user, PASSWORD), trace=capture)
    assert client.partitions("t") == [0]
    assert capture.getvalue()
    for secret in (PASSWORD.encode(), base64.b64encode(PASSWORD.encode()), b"c=biws"):
        assert secret.hex() not in capture.getvalue()


@pytest.mark.parametrize("release", ["0.10", "1.1", "4.3"])
@pytest.mark.parametrize("make", MECHANISMS, ids=IDS)
@pytest.mark.parametrize(("user", "password"), [("ann", "wrong-one"), ("nobody", "wrong-one")])
def test_a_wrong_password_is_not_retried(start, connect, release, make, user, password):
    """One attempt, so that the user is not locked out; the error has the broker, not the password."""
    broker = start(release, users=USERS, brokers=2)
    client = connect(broker, sasl=make(user, password))
    with pytest.raises(AuthenticationFailed, match=r"127\.0\.0\.1:\d+") as caught:
        client.metadata(["t"])
    assert len(broker.calls(HANDSHAKE)) == 1
    error = caught.value
    while error is not None:
        assert password not in str(error)
        error = error.__cause__


def test_other_failed_logins(start, connect):
    """A missing mechanism, a closed connection, and a broker that requires a login."""
    broker = start(users=USERS)
    broker.faults.add(faults.error(ErrorCode.UNSUPPORTED_SASL_MECHANISM), api=HANDSHAKE)
    with pytest.raises(BrokerError, match=r"PLAIN: UNSUPPORTED_SASL_MECHANISM.*it offers "):
        connect(broker, sasl=Plain("ann", PASSWORD)).metadata()
    broker.faults.add(faults.drop_before(), api=SASL_AUTHENTICATE)
    assert connect(broker, sasl=Plain("ann", PASSWORD)).metadata().brokers
    with pytest.raises(ProtocolError):
        connect(broker, timeout=0.5).metadata()


@pytest.mark.parametrize("make", MECHANISMS, ids=IDS)
@pytest.mark.parametrize(("user", "password"), [("a\ud800", "p"), ("a", "p\ud800"), ("a\0b", "p"), ("", "p")])
def test_invalid_credentials_are_refused(start, connect, make, user, password):
    """Surrogates, NUL, and an empty user raise ValueError in the constructor."""
    with pytest.raises(ValueError, match=r"user|password"):
        connect(start(users=USERS), sasl=make(user, password)).metadata()


@pytest.mark.parametrize("make", MECHANISMS, ids=IDS)
def test_a_producer_with_a_wrong_password_reports_it(start, connect, make):
    """The callbacks are called at once with the reason."""
    client = connect(start(users=USERS), sasl=make("ann", "wrong-one"))
    errors = []
    began = time.monotonic()
    with client.producer() as producer:
        producer.produce("t", b"v", on_delivery=lambda error, _message: errors.append(error))
    assert time.monotonic() - began < 4.5
    assert [type(error) for error in errors] == [AuthenticationFailed]


# --- TLS ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return a self-signed certificate of 127.0.0.1, and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def server_tls(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.mark.parametrize("make", MECHANISMS, ids=IDS)
def test_records_over_tls(start, connect, certificate, server_tls, make):
    """Producing and reading over TLS with a login, also with large responses."""
    broker = start(tls=server_tls, users=USERS)
    trusted = ssl.create_default_context(cafile=str(certificate[0]))
    client = connect(broker, tls=trusted, sasl=make("ann", PASSWORD))
    with client.producer(batch_bytes=500_000) as producer:
        for n in range(30):
            producer.produce("t", b"%d" % n * 30_000)
    with client.consumer(group="g", reset="earliest") as consumer:
        consumer.subscribe(["t"])
        got = [consumer.poll(5).offset() for _ in range(30)]
    assert got == list(range(30))


def test_records_without_acks_over_tls(start, connect, certificate, server_tls):
    """Session tickets are not the end of a connection; one that the broker has closed is replaced."""
    broker = start(tls=server_tls)
    broker.create_topic("t")
    with connect(broker, tls=ssl.create_default_context(cafile=str(certificate[0]))).producer(
        acks=0
    ) as producer:
        for turn in range(1, 9):
            producer.produce("t", b"v", partition=0)
            assert producer.flush(5) == 0
            assert eventually(lambda turn=turn: len(broker.records("t")) == turn)
            if turn == 4:
                connections = {call.connection for call in broker.calls(0)}
                (connection,) = producer._cluster._connections.values()
                broker.close_connections()
                assert connection.readable(5)
    assert len(connections) == 1
    assert len({call.connection for call in broker.calls(0)}) == 2


def test_an_untrusted_certificate_is_not_retried(start, connect, server_tls):
    """`AuthenticationFailed` is raised at once."""
    broker = start(tls=server_tls)
    began = time.monotonic()
    with pytest.raises(AuthenticationFailed, match="certificate"):
        connect(broker, tls=True).metadata()
    assert time.monotonic() - began < 4.5


def test_tls_on_one_side_only(start, connect, server_tls):
    """Both combinations fail within the timeout, and without TLS the error has a hint."""
    with pytest.raises(ClientError, match="TLS"):
        connect(start(tls=server_tls), timeout=0.5).metadata()
    began = time.monotonic()
    with pytest.raises(ClientError):
        connect(start(), tls=True, timeout=0.5).metadata()
    assert time.monotonic() - began < 4.5
