"""A token is read from what a command prints, with the time at which it expires."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.clients.oauth._token import TokenError, read_token
from tests.support.cases import each
from tests.support.oidc import SOON, unsigned_jwt


def signed_url(date: str, seconds: object) -> str:
    """Return a token of the form of Amazon MSK's."""
    url = f"https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect&X-Amz-Date={date}"
    return (
        urlsafe_b64encode(f"{url}&X-Amz-Expires={seconds}&X-Amz-Signature=abc".encode()).decode().rstrip("=")
    )


def test_a_jwt():
    """A JWT says by its claims when it expires, and who the user is."""
    token = read_token(f"{unsigned_jwt(exp=SOON, sub='shop')}\n".encode())
    assert (token.value, token.expires, token.principal) == (unsigned_jwt(exp=SOON, sub="shop"), SOON, "shop")
    assert token.is_jwt


def test_a_signed_url():
    """A token of Amazon MSK says by its query when it was signed, and for how long."""
    token = read_token(signed_url("20991231T235900Z", 900).encode())
    assert token.expires == 4_102_444_740 + 900
    assert not token.is_jwt


@each(
    "answer",
    [
        {"access_token": "opaque", "expires_in": 86_400, "token_type": "Bearer"},
        {"access_token": "opaque", "expires_in": "86400"},
        {"accessToken": "opaque", "expires_on": SOON},
        {"token": "opaque", "expires_on": str(SOON)},
    ],
)
def test_an_answer_in_json(answer):
    """JSON as of a token endpoint, and as of the command lines of clouds, has the token and its end."""
    token = read_token(json.dumps(answer, indent=1).encode())
    assert token.value == "opaque"
    assert abs(token.expires - SOON) < 3600  # the tests may have begun long ago


def test_an_answer_without_an_end():
    """The end is taken from the JWT if the answer has none; that of the answer is preferred."""
    assert read_token(json.dumps({"access_token": unsigned_jwt(exp=SOON)}).encode()).expires == SOON
    both = {"access_token": unsigned_jwt(exp=SOON), "expires_on": SOON - 60}
    assert read_token(json.dumps(both).encode()).expires == SOON - 60


@each(
    ("output", "words"),
    [
        (b"", "printed 0 bytes without a token; it must print a JWT"),
        (b"Please log in: hunter2", "without a token; it must print"),
        (b"hunter2\nhunter3", "without a token; it must print"),
        (b'{"error": "hunter2"}', "without a token; it must print"),
        (b'{"access_token": 7}', "without a token; it must print"),
        (b"\xff\xfe", "without a token; it must print"),
        (b"hunter2", "not its expiry time"),
        (unsigned_jwt(sub="hunter2").encode(), "not its expiry time"),
        (unsigned_jwt(exp="hunter2").encode(), "not its expiry time"),
        (unsigned_jwt(exp=1_700_000_000).encode(), "expired at 2023-11-14T22:13:20.00:00; check the clock"),
        (signed_url("20260101T000000Z", 900).encode(), "expired at 2026-01-01T00:15:00"),
        (signed_url("hunter2", 900).encode(), "not its expiry time"),
    ],
)
def test_no_token(output, words):
    """Other output is an error without the output in it."""
    with pytest.raises(TokenError, match=words) as caught:
        read_token(output)
    assert "hunter" not in str(caught.value)


NUMBERS = (b"-1e300", b"1e300", b"-99999999999999", b"9" * 400, b"-" + b"9" * 400, b"1e999", b"253402300800")
LONG = ("9" * 300, "9" * 5000)
CLAIMS = (b"[" * 100_000, b"\xff", *(b'{"exp":%s}' % number for number in NUMBERS))
HOSTILE = [
    *(b"[" * 200_000, b'{"a":' * 100_000, b'{"access_token":"a","expires_in":%s}' % (b"[" * 100_000)),
    *(b'{"access_token":"a","expires_%s":%s}' % (to, number) for to in (b"in", b"on") for number in NUMBERS),
    *(b"e30." + urlsafe_b64encode(claims).rstrip(b"=") + b".a" for claims in CLAIMS),
    *(
        signed_url("20260101T000000Z", sign + digits).encode()
        for sign in ("", "-")
        for digits in ("9" * 300, "9" * 5000)
    ),
]


@each("output", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_output(output):
    """JSON of any depth and numbers of any length are a token or a `TokenError`."""
    try:
        token = read_token(output)
    except TokenError:
        return
    datetime.fromtimestamp(token.expires, UTC)


@given(st.binary(max_size=80) | st.text(max_size=80).map(lambda text: text.encode("utf-8", "replace")))
def test_any_output(output):
    """Any output is a token or a `TokenError`."""
    for part in (output, b'{"access_token": "a", "expires_in": 1%s}' % output, b"e30." + output + b".a"):
        try:
            token = read_token(part)
        except TokenError:
            continue
        assert token.expires > 0


def test_a_token_is_not_shown():
    """Repr and str leave the token out."""
    token = read_token(unsigned_jwt(exp=SOON, sub="shop").encode())
    assert token.value not in f"{token} {token!r} {[token]}"
    assert "shop" in repr(token)
