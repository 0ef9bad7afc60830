"""Masking takes time that is linear in the text, for each text."""

from __future__ import annotations

import random
import re
import time

import pytest

from cloudevents_kafka.primitives import redaction
from cloudevents_kafka.primitives.redaction import (
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

PATTERNS = {name: found for name, found in vars(redaction).items() if isinstance(found, re.Pattern)}
# What the expressions match; each prefix of them is repeated.
MATCHES = [
    "http://me:hunter2@h:9092/x?a=b#c",
    "a.b-c_d@ = x\n",
    'password\\\\": "x"',
    "token%22%3Dx;",
    "--password x ",
    "Authorization: Bearer abc",
    "Basic aGk= ",
    "eyJhbGci.eyJzdWIi.x",
    "-----BEGIN RSA PRIVATE KEY-----\nx-----END",
    'a = "b\\"c" ',
    "[::1]:9092,",
    "~a/b.pem",
    "~-a~-",
    "1.5",
    "access.key",
    "keystore.ke",
    " ",
    "\n",
    "aA",
    "a-",
    "-.",
    '="\\',
]
UNITS = sorted({text[:end] for text in MATCHES for end in range(1, len(text) + 1)})
TEXTS = {
    "mask_text": mask_text,
    "mask_urls": mask_urls,
    "mask_url": mask_url,
    "mask_credentials": mask_credentials,
    "mask_assignments": mask_assignments,
    "mask_name": mask_name,
    "mask_setting": lambda text: [
        mask_setting(name, text) for name in ("bootstrap.servers", "ssl.ca.location")
    ],
    "mask_settings": lambda text: mask_settings(text, {"sasl.password": "hunter2", "x": text[:10_000]}),
}


def work(function, text):
    """Return the processor time of a call in seconds, the least of two."""
    times = []
    for _ in range(2):
        began = time.process_time()
        function(text)
        times.append(time.process_time() - began)
    return min(times)


def is_linear(function, unit, size):
    """Return whether four times the text takes at most six times the work, in one of five tries.

    Other processes slow down some tries; work that grows with the square is sixteen times as much in each.
    """
    short, long = (unit * (length // len(unit) + 1) for length in (size // 4, size))
    return any(work(function, long) < 6 * work(function, short) + 0.03 for _ in range(5))


def search(pattern):
    return lambda text: (sum(1 for _ in pattern.finditer(text)), pattern.fullmatch(text))


def noise(seed):
    letters = random.Random(seed)
    return "".join(letters.choices("aZ09 .:/@?#=\"'\\-_%<>\n[]eyJpasword", k=997))


@each("name", PATTERNS)
def test_each_expression_is_linear(name):
    """Each expression searches repetitions of each prefix of what one of them matches in linear time."""
    for unit in (*UNITS[::14], *map(noise, range(2))):
        assert is_linear(search(PATTERNS[name]), unit, 1 << 16), unit


@pytest.mark.release
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", PATTERNS)
def test_each_expression_is_linear_in_a_megabyte(name):
    """The same with all prefixes, and with 1 MB."""
    for unit in (*UNITS, *map(noise, range(20))):
        assert is_linear(search(PATTERNS[name]), unit, 1_000_000), unit


@each("name", TEXTS)
def test_each_function_is_linear(name):
    """Each function masks such texts in linear time."""
    for unit in (*UNITS[::7], *map(noise, range(3))):
        assert is_linear(TEXTS[name], unit, 1 << 18), unit


@pytest.mark.release
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", TEXTS)
def test_each_function_is_linear_for_all_texts(name):
    """The same with all prefixes, and with 1 MB."""
    for unit in (*UNITS, *map(noise, range(20))):
        assert is_linear(TEXTS[name], unit, 1_000_000), unit


@pytest.mark.release
def test_a_quadratic_expression_is_found():
    """The measurement finds an expression whose work grows with the square of the text."""
    assert not is_linear(search(re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")), "a", 3 << 12)


@each("function", [mask_text, mask_urls, mask_credentials, mask_assignments])
def test_a_long_text_is_cut(function):
    """A text is shown to a bound."""
    assert len(function("a b " * 250_000)) < 16_400
    assert function("a" * 1_000_000) == " …"
