"""Take passwords and tokens out of URLs, in whatever text they stand.

A URL carries secrets before its last ``@`` (a password may have any character, ``/`` and
``@`` too) and behind its first ``?`` or ``#``. Both are replaced by `MASK`. Too much is
masked rather than too little.
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "********"
# What stands between blanks and quotes; a URL ends there at the latest.
_WORD: Final = re.compile(r"[^\s'\"<>]+")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LOGIN: Final = re.compile(r"[^:@]+:.*@", re.DOTALL)


def mask_urls(text: str) -> str:
    """Return a text with the credentials and queries of its URLs masked.

    ``user:password@host`` needs no scheme to be masked; ``user@host`` stays where there is none.
    """
    return _WORD.sub(lambda word: mask_url(word[0]), text)


def mask_credentials(text: str) -> str:
    """Return a text with the credentials of its URLs masked, and their queries as they are."""
    return _WORD.sub(lambda word: mask_url(word[0]) if "@" in word[0] else word[0], text)


def mask_url(url: str) -> str:
    """Return one URL, which may have blanks and quotes in its password, masked."""
    scheme = _SCHEME.search(url)
    if scheme is None:
        return f"{MASK}@{url.rpartition('@')[2]}" if _LOGIN.match(url) else url
    before, rest = url[: scheme.end()], url[scheme.end() :]
    login, at, host = rest.rpartition("@")
    if not at:
        return before + _without_query(rest)
    # What looks like a scheme may be part of a password, in an address that has none.
    before = "" if ":" in url[: scheme.start()] else before
    # Behind a question mark, what follows the @ may be part of a query.
    return before + (MASK if re.search(r"[?#]", login) else f"{MASK}@{_without_query(host)}")


def has_credentials(url: str) -> bool:
    """Return whether a URL, or an address without a scheme, names a user or a password."""
    return "@" in url


def _without_query(rest: str) -> str:
    cut = re.search(r"[?#]", rest)
    return rest if cut is None else f"{rest[: cut.start()]}{cut[0]}{MASK}"
