"""URIs and URI-references."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.attributes._uri import is_uri, is_uri_reference
from tests.support.cases import each
from tests.support.strategies import examples


@each(
    ("text", "uri", "reference"),
    [
        ("https://cloudevents.io", True, True),
        ("mailto:a@b", True, True),
        ("urn:uuid:1", True, True),
        ("https://a.example/x#y", True, True),
        ("https://é.example/ü", True, True),
        ("a+b.c-d:", True, True),
        ("#fragment", False, True),
        ("//authority/path", False, True),
        ("/p", False, True),
        ("1-555-123-4567", False, True),
        ("1a:b", False, False),
        ("./1a:b", False, True),
        (":a", False, False),
        ("a:", True, True),
        ("a:b:c", True, True),
        ("a/b:c", False, True),
        ("?a:b", False, True),
        ("#a?b/c", False, True),
        ("a#b#c", False, False),
        ("x:#a#b", False, False),
        ("a?b?c", False, True),
        ("http://u:p@h:80/p", True, True),
        ("http://h:/p", True, True),
        ("http://h:port/", False, False),
        ("http://h:80:80/", False, False),
        ("http://a@b@c", False, False),
        ("//:80", False, True),
        ("////", False, True),
        ("http://[::1]:80/p", True, True),
        ("http://[2001:db8::192.0.2.1]", True, True),
        ("http://[v1.a:b]", True, True),
        ("http://[V1.fe]", True, True),
        ("http://[VaF.fe]:80/p", True, True),
        ("http://[V1]", False, False),
        ("//[::1]#f", False, True),
        ("http://[::1", False, False),
        ("http://::1]", False, False),
        ("http://[::g]/", False, False),
        ("http://[1:2]/", False, False),
        ("http://[::1]x/", False, False),
        ("http://a[::1]/", False, False),
        ("[", False, False),
        ("a:[", False, False),
        ("a:]", False, False),
        ("/p?[1]", False, False),
        ("", False, True),
        ("a%20b", False, True),
        ("a b", False, False),
        ("a\u00a0b", False, False),
        ("a%2", False, False),
        ("a%zz", False, False),
        ("<x>", False, False),
        ("a|b", False, False),
        ("a\\b", False, False),
        ("a\n", False, False),
        ("http://a\n", False, False),
        ("é:b", False, False),
    ],
)
def test_uris(text: str, uri: bool, reference: bool) -> None:  # noqa: FBT001 - columns
    """A URI has a scheme; URIs and URI-references have no spaces, other delimiters or broken escapes."""
    assert (is_uri(text), is_uri_reference(text)) == (uri, reference)


def _uri_reference() -> re.Pattern[str]:
    """Return a pattern of RFC 3986, appendix A, rule by rule."""
    pct = "%[0-9A-Fa-f]{2}"
    unreserved, sub = "[A-Za-z0-9._~-]", "[!$&'()*+,;=]"
    pchar = f"(?:{unreserved}|{pct}|{sub}|[:@])"
    segment, segment_nz, segment_nz_nc = f"{pchar}*", f"{pchar}+", f"(?:{unreserved}|{pct}|{sub}|@)+"
    h16, octet = "[0-9A-Fa-f]{1,4}", "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9][0-9]|[0-9])"
    ls32 = f"(?:{h16}:{h16}|{octet}(?:\\.{octet}){{3}})"
    ipv6 = "|".join(
        [
            f"(?:{h16}:){{6}}{ls32}",
            f"::(?:{h16}:){{5}}{ls32}",
            *(f"(?:(?:{h16}:){{0,{n}}}{h16})?::(?:{h16}:){{{4 - n}}}{ls32}" for n in range(5)),
            f"(?:(?:{h16}:){{0,5}}{h16})?::{h16}",
            f"(?:(?:{h16}:){{0,6}}{h16})?::",
        ]
    )
    future = f"v[0-9A-Fa-f]+\\.(?:{unreserved}|{sub}|:)+"
    host = f"(?:\\[(?:{ipv6}|{future})\\]|(?:{unreserved}|{pct}|{sub})*)"
    authority = f"(?:(?:{unreserved}|{pct}|{sub}|:)*@)?{host}(?::[0-9]*)?"
    abempty, absolute = f"(?:/{segment})*", f"/(?:{segment_nz}(?:/{segment})*)?"
    hier = f"(?://{authority}{abempty}|{absolute}|{segment_nz}(?:/{segment})*|)"
    relative = f"(?://{authority}{abempty}|{absolute}|{segment_nz_nc}(?:/{segment})*|)"
    tail = f"(?:\\?(?:{pchar}|[/?])*)?(?:#(?:{pchar}|[/?])*)?"
    return re.compile(f"(?:[A-Za-z][A-Za-z0-9+.-]*:{hier}{tail}|{relative}{tail})")


_RFC_3986 = _uri_reference()
_PIECES = st.sampled_from(
    [
        *"a1:/?#[]@%.-+é ",
        "//",
        "://",
        "::",
        "%41",
        "http",
        "[::1]",
        "[v1.a]",
        "1:",
        "fe80",
        "1.2.3.4",
        ":80",
        "256",
    ]
)


@examples(2000)
@given(st.lists(_PIECES, max_size=12).map("".join))
def test_uri_references_by_the_grammar(text: str) -> None:
    """The URI-references are those of RFC 3986, appendix A, with non-ASCII letters as ASCII ones."""
    assert is_uri_reference(text) is (_RFC_3986.fullmatch(text.replace("é", "~")) is not None)
