"""URIs and URI-references: RFC 3986, and characters beyond ASCII as IRIs have them."""

from __future__ import annotations

import re
from typing import Final

# RFC 3986 without its ban on non-ASCII letters (as IRIs have them). A sign of any part of it is none
# of the delimiters that it leaves out, and a % stands only before two hexadecimal digits.
_SIGN: Final = r'[^\s\x00-\x20\x7f-\x9f<>"{}|\\^`%%?#\[\]%s]++|%%[0-9A-Fa-f]{2}'
_OF_PATH: Final = _SIGN % ""
_OF_QUERY: Final = _OF_PATH.replace("?", "", 1)
_OF_HOST: Final = _SIGN % ":@/"
_OF_USER: Final = _SIGN % "@/"
_URI_REFERENCE: Final = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*+:|(?![^/?#]*:))"  # a scheme, or no colon in the first segment
    rf"(?://(?:(?:{_OF_USER})*+@)?"
    rf"(?:\[(?:[vV][0-9A-Fa-f]+\.[A-Za-z0-9._~!$&'()*+,;=:-]+|(?P<address>[0-9A-Fa-f:.]+))\]|(?:{_OF_HOST})*+)"
    r"(?::[0-9]*+)?(?=[/?#]|\Z)|(?!//))"
    rf"(?:{_OF_PATH})*+(?:\?(?:{_OF_QUERY})*+)?(?:#(?:{_OF_QUERY})*+)?"
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)


def is_uri_reference(text: str) -> bool:
    """Tell whether the text is a URI-reference of RFC 3986 (4.1), non-ASCII allowed."""
    parts = _URI_REFERENCE.fullmatch(text)
    return parts is not None and (parts["address"] is None or _is_ipv6(parts["address"]))


def _is_ipv6(text: str) -> bool:
    import ipaddress  # a rare guest, and slow to load

    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def is_uri(text: str) -> bool:
    """Tell whether the text is a URI with a scheme; a fragment is allowed."""
    return _SCHEME.match(text) is not None and is_uri_reference(text)
