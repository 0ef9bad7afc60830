"""Mask passwords and tokens in URLs, also within other text.

A URL may have secrets before its last ``@``, since a password may have any character, and after
its first ``?`` or ``#``. Both parts are replaced by `MASK`. In doubt, text is masked.
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "********"
# Text between white space and quotes, which end a URL.
_WORD: Final = re.compile(r"[^\s'\"<>]+")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LOGIN: Final = re.compile(r"[^:@]+:.*@", re.DOTALL)


def mask_urls(text: str) -> str:
    """Return a text with the credentials and queries of its URLs masked.

    Without a scheme, ``user:password@host`` is masked and ``user@host`` is not.
    """
    return _WORD.sub(lambda word: mask_url(word[0]), text)


def mask_credentials(text: str) -> str:
    """Return a text with the credentials of its URLs masked, but not their queries."""
    return _WORD.sub(lambda word: mask_url(word[0]) if "@" in word[0] else word[0], text)


def mask_url(url: str) -> str:
    """Return one URL masked; its password may have white space and quotes."""
    scheme = _SCHEME.search(url)
    if scheme is None:
        return f"{MASK}@{url.rpartition('@')[2]}" if _LOGIN.match(url) else url
    before, rest = url[: scheme.end()], url[scheme.end() :]
    login, at, host = rest.rpartition("@")
    if not at:
        return before + _without_query(rest)
    # In an address without a scheme, the match may be part of a password.
    before = "" if ":" in url[: scheme.start()] else before
    # After a question mark, the @ and the text after it may be part of a query.
    return before + (MASK if re.search(r"[?#]", login) else f"{MASK}@{_without_query(host)}")


def has_credentials(url: str) -> bool:
    """Return whether a URL, or an address without a scheme, names a user or a password."""
    return "@" in url


def _without_query(rest: str) -> str:
    cut = re.search(r"[?#]", rest)
    return rest if cut is None else f"{rest[: cut.start()]}{cut[0]}{MASK}"
