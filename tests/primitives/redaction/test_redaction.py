"""Secrets in URLs, texts and settings are masked; only known harmless settings are not."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.primitives.redaction import (
    MASK,
    is_secret_name,
    mask_assignments,
    mask_credentials,
    mask_name,
    mask_setting,
    mask_settings,
    mask_text,
    mask_url,
    mask_urls,
)
from tests.support.cases import each

HARMLESS = [
    ("bootstrap.servers", "a:9092, [::1]:9093,c"),
    ("bootstrap.servers", "SASL_SSL://a.example:9092"),
    ("kafka.security.protocol", "SASL_SSL"),
    ("sasl.username", "me"),
    ("sasl.mechanisms", "SCRAM-SHA-256"),
    ("ssl.key.location", "/etc/key.pem"),
    ("ssl.ca.location", "~/ca.crt"),
    ("sasl.oauthbearer.assertion.private.key.file", "key.pem"),
    ("sasl.oauthbearer.token.endpoint.url", "https://h/oauth/token"),
    ("client.id", "me and you"),
    ("acks", "-1"),
    ("debug", "broker, all"),
    ("linger.ms", "0.5"),
    ("enable.idempotence", "true"),
    ("partition.assignment.strategy", "range,roundrobin"),
    ("message.max.bytes", "1000"),
]
SECRET = [
    "sasl.password",
    "sasl.passwd",
    "sasl.pass",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl_key",
    "sasl.jaas.config",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.extensions",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "basic.auth.user.info",
    "SASL.PASSWORD",
    "kafka.sasl.jaas.config",
    "spark.hadoop.fs.azure.account.key.me",
    "x",
    "",
]


@each(
    ("name", "value", "text"),
    [
        *((name, value, value) for name, value in HARMLESS),
        ("bootstrap.servers", "a:1,me:hun,ter@2@b:2,c:3", f"{MASK}@b:2,c:3"),
        ("bootstrap.servers", "a:1,hunter#2,c:3", MASK),
        ("sasl.oauthbearer.token.endpoint.url", "https://h/t?secret=hunter2", f"https://h/t?{MASK}"),
        ("sasl.oauthbearer.token.endpoint.url", "https://me:hunt/er@2@h/t", f"https://{MASK}@h/t"),
    ],
)
def test_harmless_values(name, value, text):
    """A harmless value is not masked, except the credentials and queries of addresses and URLs."""
    assert mask_setting(name, value) == text


@each(("name", "value"), product(SECRET, ["hunter2", "1", "true", "/path"]))
def test_secret(name, value):
    """Unknown settings are masked, also if their values look harmless."""
    assert mask_setting(name, value) == MASK


@each(
    ("name", "value"),
    [
        ("acks", "hunter2"),
        ("sasl.mechanism", "hunter2"),
        ("linger.ms", "hunter2"),
        ("ssl.key.location", "-----BEGIN PRIVATE KEY-----\nhunter2"),
        ("ssl.key.location", "hunter2"),
        ("sasl.username", "me:hunter2"),
        ("sasl.username", "Endpoint=sb://h/;SharedAccessKey=hunter2"),
        ("sasl.oauthbearer.token.endpoint.url", "hunter2"),
        ("bootstrap.servers", "me:hunter2"),
        ("bootstrap.servers", "h:1/?token=hunter2"),
    ],
)
def test_wrong_shape(name, value):
    """A value of the wrong form is masked: it may be a misplaced secret."""
    assert mask_setting(name, value) == MASK


@each(
    ("name", "is_name"),
    [
        *((name, True) for name in ("sasl.passwd", "linger.ms", "acks", "log_level", "no.such")),
        ("spark.driver.extraJavaOptions", True),
        *((name, False) for name in ("aGVsbG8", "hunter2", "hunter2.two", "sasl.hunter 2", "")),
        (f"sasl.{'x' * 30}", False),
    ],
)
def test_names(name, is_name):
    """A name that resembles a setting's is not masked; a secret in the place of a name is."""
    assert mask_name(name) == (name if is_name else MASK)


KEY = "-----BEGIN PRIVATE KEY-----\nhunter2hunter2\n"


@each(
    ("settings", "text"),
    [
        ({"sasl.passwd": "hunter2"}, "no such user: hunter2!"),
        ({"sasl.password": 'a\\b"hunter2'}, 'password="a\\\\b\\"hunter2";'),
        ({"kafka.ssl.keystore.key": KEY}, "bad key: hunter2hunter2"),
        ({"acks": "hunter2"}, 'Invalid value "hunter2"'),
        ({"bootstrap.servers": "me:hun/hunter2@h:1"}, "Failed to resolve 'hunter2@h:1'"),
        ({"sasl.oauthbearer.token.endpoint.url": "http://h/?a=b&s=hunter2"}, "refused: s is hunter2"),
        ({"hunter2": ""}, 'No such configuration property: "hunter2"'),
        ({}, "cannot reach http://me:hunter2@h/"),
    ],
)
def test_taken_out_of_text(settings, text):
    """A secret is masked in each form in which clients print it."""
    masked = mask_settings(text, settings)
    assert "hunter2" not in masked
    assert MASK in masked


_FORMS = ["http://me:{}@h/x", "http://h/x?token={}", "me:{}@h:9092", "a:1,SSL://me:{}@h:9092,b:2"]


@given(st.text(min_size=1) | st.text("/:@?#a,&= .-", min_size=1), st.sampled_from(_FORMS))
def test_any_password(password, form):
    """A password with any characters is masked whole, in a URL and in any setting with an address."""
    address = form.format(f"Qa7{password}Xv9")
    texts = [mask_url(address)] if form != _FORMS[-1] else []
    for name in ("bootstrap.servers", "sasl.oauthbearer.token.endpoint.url", "x.url", "ssl.ca.location"):
        texts += [mask_setting(name, address), mask_settings(f"bad '{address}' here", {name: address})]
    for text in texts:
        assert "Qa7" not in text
        assert "Xv9" not in text


def test_text_stays_readable():
    """Harmless values and common words in a text are not masked."""
    settings = {"acks": "all", "client.id": "me", "x.y": "true", "spark.driver.memory": "4g", "z": "9"}
    text = "all of me, 4g, true and 9"
    assert mask_settings(text, settings) == text


def test_assignments():
    """The text after the name of a secret and an equals sign is masked to the end of the line."""
    assert (
        mask_assignments("cannot read sasl.password=a b: no\nnext")
        == f"cannot read sasl.password={MASK}\nnext"
    )
    assert mask_assignments("cannot read a.b=c: no") == "cannot read a.b=c: no"


@each(
    ("name", "is_secret"),
    [
        *((name, True) for name in ("sasl.passwd", "fs.s3a.access.key", "ssl.key.pem")),
        *((name, False) for name in ("x.y", "acks")),
    ],
)
def test_names_of_secrets(name, is_secret):
    """Names of secrets are recognized."""
    assert is_secret_name(name) is is_secret


URLS = [
    ("http://me:hunter2@h/x", f"http://{MASK}@h/x"),
    ("http://me@h/x", f"http://{MASK}@h/x"),
    ("http://me:hun/ter@2@h:1/x", f"http://{MASK}@h:1/x"),
    ("http://h/x?client_secret=hunter2&a=b", f"http://h/x?{MASK}"),
    ("http://h/x#access_token=hunter2", f"http://h/x#{MASK}"),
    ("http://me:hunter?2@h/x", f"http://{MASK}"),
    ("me:hunter2@h:9092", f"{MASK}@h:9092"),
    ("me:hun/ter@2@h:9092", f"{MASK}@h:9092"),
    ("me:hun://ter2@h:9092", f"{MASK}@h:9092"),
    ("SASL_SSL://me:hunter2@h:9092: no route", f"SASL_SSL://{MASK}@h:9092: no route"),
    ("cannot reach 'http://me:hunter2@h/x' (refused)", f"cannot reach 'http://{MASK}@h/x' (refused)"),
    ("central (http://me:hunter2@h/x)", f"central (http://{MASK}@h/x)"),
]
PLAIN_TEXTS = ["h:9092", "http://h:80/x/y", "me@example.org", "why? at 10:30", "a:1,b:2", "", "jdbc:x://h/y"]


@each(("text", "masked"), [*URLS, *((text, text) for text in PLAIN_TEXTS)])
def test_urls(text, masked):
    """User, password and query are masked; scheme, host, port, path and other text are kept."""
    assert mask_urls(text) == masked


def test_logins_alone():
    """Credentials can be masked without queries, which may be data, as in an event's source."""
    assert (
        mask_credentials("http://h/?a=b and http://me:hunter2@h/?a")
        == f"http://h/?a=b and http://{MASK}@h/?{MASK}"
    )


PAGE = Path(__file__).parents[3] / "docs" / "security.md"
TABLE = PAGE.read_text(encoding="utf-8").partition("| text | shown |\n")[2].partition("\n\n")[0]
ROWS = re.findall(r"^\| `(.*)` \| `(.*)` \|$", TABLE, re.MULTILINE)
# In these a password has no white space and no quotes.
WORDS = ("refused: Bearer", "cannot resolve", "GET https://host/a?")


@pytest.mark.parametrize("password", ["PW", "P W", "P'W", 'P"W', "P=W:x", "P<W"])
@each(("text", "shown"), ROWS)
def test_the_promises_of_the_page(text, shown, password):
    """Each text of the table in the page about security is shown as it says, with each kind of password."""
    assert mask_text(text) == shown
    if text.startswith(WORDS):
        password = "PW"
    masked = mask_text(text.replace("PW", password.replace("P", "Qa7").replace("W", "Xv9")))
    assert "Qa7" not in masked
    assert "Xv9" not in masked


def test_the_page_has_promises():
    """The table is found."""
    assert len(ROWS) == 21


@each("text", [shown for _, shown in ROWS])
def test_masked_text_stays(text):
    """What is masked is not changed by another turn."""
    assert mask_text(text) == text


@each(
    "text",
    [
        "wrong password: check --user",
        "the broker refuses the token: expired",
        "sasl.mechanism=PLAIN password passed",
        "acks=all, linger.ms=5: ok",
        "Basic authentication failed",
        "https://host:8081 did not answer, mail me@example.org",
        "sasl.oauthbearer.token.command: open quote",
    ],
)
def test_prose_stays(text):
    """Texts without a secret are shown as they are."""
    assert mask_text(text) == text


def test_a_value_on_the_next_line():
    """A value may begin in the next line."""
    assert mask_text("password=\n  hunter2\nnext") == f"password=\n  {MASK}\nnext"


JAAS = 'org.example.Module required username="me" password="hun\\\\ter\\"2" x="y";'


@each("text", ['bad: hun\\ter"2!', 'bad: hun\\\\ter\\"2!', 'password="hun\\\\ter\\"2"'])
def test_a_password_of_jaas_stands_alone(text):
    """The password in a line of JAAS is masked without the rest of the line, escaped or not."""
    masked = mask_settings(text, {"sasl.jaas.config": JAAS})
    assert "hun" not in masked
    assert "ter" not in masked


CUT = [
    "x http://me:Qa7{}Xv9@host/ y",
    "x http://me:Qa7 {} Xv9@host/ y",
    "x password=Qa7{}Xv9 y",
    'x "password": "Qa7 {} Xv9" y',
    "x Bearer Qa7{}Xv9 y",
    "x me:Qa7{}Xv9@host:9092 y",
    "x -----BEGIN PRIVATE KEY-----\nQa7\n{}\nXv9\n-----END PRIVATE KEY----- y",
    "x known-secret y",
]


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=[pytest.mark.release] * (n % 4 > 0)) for n, form in enumerate(CUT)]
)
@each("before", range(1, 90, 3))
def test_a_secret_at_the_cut(form, before):
    """No part of a secret is shown where a text is cut."""
    text = "z " * ((16_384 - before) // 2) + form.format("aB1" * 20)
    for masked in (mask_text(text, ["known-secret"]), mask_settings(text, {"sasl.password": "known-secret"})):
        assert len(masked) < 16_500
        for part in ("Qa7", "aB1", "Xv9", "known", "secret"):
            assert part not in masked
