"""Media types: parameters, JSON, charset, and the prefix of event formats."""

from __future__ import annotations

import encodings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.attributes.media_type import media_type, python_codec
from tests.support.cases import each


@each(
    "text",
    [
        "application/json",
        "Application/JSON; charset=utf-8",
        "text/json",
        "application/vnd.a_b+json",
        "IMAGE/X+JSON",
        "application/json ; charset=utf-8",
        "application/cloudevents+json",
    ],
)
def test_json_types(text: str) -> None:
    """A subtype that is json or ends in +json is JSON, in any case and with any parameters."""
    assert media_type(text).is_json
    assert media_type(text).valid


@each(
    "text",
    [
        "application/json-seq",
        "application/jsonx",
        "text/plain; x=json",
        "text/plain; x=a/json",
        "json",
        "",
        "/json",
        "application/x+jsons",
        "application/+json2",
    ],
)
def test_other_types(text: str) -> None:
    """Other subtypes are not JSON."""
    assert not media_type(text).is_json


@each(
    ("text", "valid"),
    [
        ("text/plain", True),
        ("text/plain; charset=utf-8", True),
        ("text/plain;charset=utf-8;a=b", True),
        ("text/plain \t;\ta=b \t", True),
        ('text/plain; a="b; c=d"', True),
        ('text/plain; a="\\"\\\\"', True),
        ('text/plain; a="é"', True),
        ("a/b;c=d ", True),
        ("text/html;charset={gbk}", True),
        ("a/b;{x}=a}b", True),
        *(
            (f"a/b;c=d{sign}e", sign in "!#$%&'*+-.^_`{|}~0")
            for sign in "!#$%&'*+-.^_`{|}~0()<>@,:/[]?= \x7fé"
        ),
        ("", False),
        ("xyz", False),
        ("/", False),
        ("text/", False),
        ("/plain", False),
        (" text/plain", False),
        ("text /plain", False),
        ("text/plain; charset", False),
        ("text/plain; charset=", False),
        ("text/plain; charset = utf-8", False),
        ("text/plain;", False),
        ("text/plain; a=b;", False),
        ('text/plain; a="b', False),
        ('text/plain; a="\n"', False),
        ("text/plain\n", False),
        ("téxt/plain", False),
        ("text/plain, text/xml", False),
        ("text/plain foo", False),
    ],
)
def test_validity(text: str, valid: bool) -> None:  # noqa: FBT001 - a column
    """A media type is type/subtype and well-formed parameters, of tokens (RFC 2045 5.1)."""
    assert media_type(text).valid is valid


@each(
    ("text", "charset", "utf8"),
    [
        ("text/plain", None, True),
        ("text/plain; charset=utf-8", "utf-8", True),
        ("text/plain; Charset=UTF-8", "UTF-8", True),
        ('text/plain; charset="utf-8"', "utf-8", True),
        ('text/plain; charset="ut\\f-8"', "utf-8", True),
        ("text/plain; charset=US-ASCII", "US-ASCII", True),
        ("text/plain; charset=latin-1", "latin-1", False),
        ("text/plain; charset=utf-16; charset=utf-8", "utf-16", False),
        ('text/plain; a="; charset=latin-1"', None, True),
    ],
)
def test_charset(text: str, charset: str | None, utf8: bool) -> None:  # noqa: FBT001 - a column
    """The charset is the first parameter of that name, in any case."""
    assert media_type(text).charset == charset
    assert media_type(text).utf8 is utf8


@each(
    "charset",
    [
        *("base64", "rot13", "hex", "zlib", "none-such", "x" * 500, "aliases", "mbcs", "__init__"),
        *("idna", "punycode", "unicode_escape", "raw-unicode-escape", "undefined"),
    ],
)
def test_codecs_that_are_not_charsets(charset: str) -> None:
    """A codec of Python that is not a charset is refused."""
    with pytest.raises(LookupError):
        python_codec(media_type(f"text/plain; charset={charset}"))


@each(
    ("charset", "codec"),
    [
        ("UTF-16", "utf_16"),
        ("iso-8859-1", "latin_1"),
        ("Latin-1", "latin_1"),
        ("windows-1252", "cp1252"),
        ("Shift_JIS", "shift_jis"),
        ("KOI8-U", "koi8_u"),
        ("gb18030", "gb18030"),
        ("csHPRoman8", "hp_roman8"),
        ("cp1006", "cp1006"),
    ],
)
def test_names_of_charsets(charset: str, codec: str) -> None:
    """The registered names of a charset are known in any case, and text can be encoded in it."""
    assert python_codec(media_type(f"text/plain; charset={charset}")) == codec
    assert "x".encode(codec)


def test_unknown_charsets_are_not_looked_up() -> None:
    """Unknown names do not reach codecs.lookup(), which caches them forever."""
    before = set(encodings._cache)
    for number in range(50):
        with pytest.raises(LookupError):
            python_codec(media_type(f"text/plain; charset=unknown{number}"))
        python_codec(media_type(f"text/plain; charset=utf{'-' * number}16"))
    assert set(encodings._cache) <= before | {"utf_16"}


@each(
    ("text", "cloudevents", "batch", "name"),
    [
        ("application/cloudevents+json", True, False, "json"),
        ("Application/CloudEvents+JSON; charset=UTF-8", True, False, "json"),
        ("application/cloudevents+avro", True, False, "avro"),
        ("application/cloudevents+x.y-z", True, False, "x.y-z"),
        ("application/cloudevents", True, False, None),
        ("application/cloudeventsfoo", True, False, None),
        ("application/cloudevents+json foo", True, False, None),
        ("application/cloudevents+", True, False, None),
        ("application/cloudevents-batch+json", True, True, None),
        ("APPLICATION/CLOUDEVENTS-BATCH", True, True, None),
        (" application/cloudevents+json", False, False, "json"),
        ("application/cloudevent", False, False, None),
        ("text/plain; a=application/cloudevents+json", False, False, None),
    ],
)
def test_prefix(text: str, cloudevents: bool, batch: bool, name: str | None) -> None:  # noqa: FBT001 - columns
    """The prefix is compared as text, in any case; the format is the suffix of the whole essence."""
    media = media_type(text)
    assert (media.cloudevents, media.batch) == (cloudevents, batch)
    if cloudevents:
        assert media.format == name


@given(
    st.one_of(
        st.text(max_size=20), st.from_regex(r'[a-z]+/[a-z+]+(; ?[a-z]+=("[^"]*"|[a-z]*))*', fullmatch=True)
    )
)
def test_parsing_is_total_and_deterministic(text: str) -> None:
    """Any text is parsed, with the same result from the cache."""
    assert media_type(text) == media_type(str(text))


def test_the_cache_is_bounded() -> None:
    """Many content types do not stay in memory."""
    memory = media_type.__self__  # type: ignore[attr-defined]  # a bound method of a dict
    for number in range(10_000):
        media_type(f"text/x{number}")
    media_type("text/" + "x" * 10**6)
    assert len(memory) <= 4096
    assert max(map(len, memory)) <= 256
