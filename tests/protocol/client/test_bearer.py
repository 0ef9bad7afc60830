"""SASL OAUTHBEARER: the messages of RFC 7628, and its tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.protocol.client._sasl import authenticate
from cloudevents_kafka.protocol.client._settings import ConnectionSettings, OAuthBearer
from cloudevents_kafka.protocol.client._socket import AuthenticationFailed
from tests.support.cases import each

TOKEN = "eyJhbGciOiJub25lIn0.e30.c2ln"


def sent_messages(sasl, *answers):
    """Return the messages of a client whose broker answers so; an answer may be an error."""
    sent, left = [], iter(answers)

    def exchange(message):
        sent.append(message)
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    try:
        authenticate(sasl, exchange)
    except AuthenticationFailed as error:
        return sent, str(error)
    return sent, None


def test_the_token_and_its_extensions():
    """One message has the token and the extensions, each ended by a byte 1, and the empty answer ends it."""
    sasl = OAuthBearer(TOKEN, {"logicalCluster": "lkc-1", "identityPoolId": "pool 2"})
    message = b"n,,\1auth=Bearer %s\1logicalCluster=lkc-1\1identityPoolId=pool 2\1\1" % TOKEN.encode()
    assert sent_messages(sasl, b"") == ([message], None)
    assert sent_messages(OAuthBearer(TOKEN), b"")[0] == [b"n,,\1auth=Bearer %s\1\1" % TOKEN.encode()]


@each("last", [b"", AuthenticationFailed("closed")])
@each(
    ("answer", "words"),
    [
        (b'{"status": "invalid_token", "scope": "kafka"}', "status invalid_token, scope kafka"),
        (b"no\x1b[31m \xff", "no\\x1b[31m \N{REPLACEMENT CHARACTER}"),
        (b"[" * 100_000, "[" * 300),
    ],
)
def test_a_refusal(answer, words, last):
    """The client ends a refused exchange by a byte 1; the error has the broker's reason."""
    sent, error = sent_messages(OAuthBearer(TOKEN), answer, last)
    assert sent[1:] == [b"\1"]
    assert error == f"OAUTHBEARER: the broker refuses the token: {words}"


@given(st.binary(min_size=1, max_size=60))
def test_any_answer_is_a_refusal(answer):
    """Each answer that is not empty is a refusal, without the token in the error."""
    _, error = sent_messages(OAuthBearer(TOKEN), answer, b"")
    assert error is not None
    assert TOKEN not in error


def test_a_function_is_called_at_each_login():
    """A token may be shorter than a session, so each login asks for one."""
    tokens = iter(["one", "two"])
    sasl = OAuthBearer(lambda: next(tokens))
    messages = [sent_messages(sasl, b"")[0] for _ in range(2)]
    assert messages == [[b"n,,\1auth=Bearer one\1\1"], [b"n,,\1auth=Bearer two\1\1"]]
    assert "there is no token: " in sent_messages(sasl, b"")[1]


@pytest.mark.parametrize("token", ["", "s3cret two", "s3cret\1host=x", "s3cr\xe9t", "s3cret\n"])
def test_a_text_that_cannot_be_a_token(connect, start, token):
    """A token that would end the message early is refused before anything is sent, and not shown."""
    with pytest.raises(ValueError, match="the token must have letters") as caught:
        connect(start(), sasl=OAuthBearer(token))
    assert "s3cr" not in str(caught.value)
    sent, error = sent_messages(OAuthBearer(lambda: token))
    assert sent == []
    assert "s3cr" not in error


@pytest.mark.parametrize("extension", [("auth", "x"), ("", "x"), ("a-b", "x"), ("a", "x\1"), ("a", "\xe9")])
def test_wrong_extensions(connect, start, extension):
    """The name of an extension has letters only, its value visible ASCII (KIP-342)."""
    with pytest.raises(ValueError, match="must have a name of letters, and a value of ASCII"):
        connect(start(), sasl=OAuthBearer(TOKEN, dict([extension])))


def test_tokens_are_not_shown():
    """repr, str and format, also of containers, leave the token out."""
    sasl = OAuthBearer(TOKEN, {"logicalCluster": "lkc-1"})
    for text in (repr(sasl), str(sasl), f"{sasl}", repr(ConnectionSettings(sasl=sasl)), repr([sasl])):
        assert TOKEN not in text
