"""URIs and URI-references (RFC 3986) that may also contain the non-ASCII characters of IRIs (RFC 3987)."""

from __future__ import annotations

import re
from typing import Final

# RFC 3986 and non-ASCII letters. The delimiters that replace %s are not allowed in a part of a URI. Two
# hexadecimal digits follow a % (RFC 3986 2.1).
_CHARACTER: Final = r'[^\s\x00-\x20\x7f-\x9f<>"{}|\\^`%%?#\[\]%s]++|%%[0-9A-Fa-f]{2}'
_PATH: Final = _CHARACTER % ""
_QUERY: Final = _PATH.replace("?", "", 1)
_HOST: Final = _CHARACTER % ":@/"
_USER_INFO: Final = _CHARACTER % "@/"
_URI_REFERENCE: Final = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*+:|(?![^/?#]*:))"  # a scheme, or a first segment "without any colon"
    rf"(?://(?:(?>(?:{_USER_INFO})*)@)?"
    rf"(?:\[(?:[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+|(?P<address>[0-9A-Fa-f:.]+))\]|(?>(?:{_HOST})*))"
    r"(?::[0-9]*+)?(?=[/?#]|\Z)|(?!//))"
    rf"(?>(?:{_PATH})*)(?:\?(?>(?:{_QUERY})*))?(?:#(?>(?:{_QUERY})*))?"
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)


def is_uri_reference(text: str) -> bool:
    """Return whether a text is a URI-reference (RFC 3986 4.1)."""
    parts = _URI_REFERENCE.fullmatch(text)
    return parts is not None and (parts["address"] is None or _is_ipv6(parts["address"]))


def _is_ipv6(text: str) -> bool:
    import ipaddress  # rarely needed, and slow to import

    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def is_uri(text: str) -> bool:
    """Return whether a text is a URI with a scheme; a fragment is allowed (T-10)."""
    return _SCHEME.match(text) is not None and is_uri_reference(text)
