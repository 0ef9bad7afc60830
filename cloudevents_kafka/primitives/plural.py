"""Numbers with nouns, and names with articles, for messages."""

from __future__ import annotations

import re
from typing import Final

# A name that starts with a vowel sound. A letter of an abbreviation may have a vowel sound (the S of SSL). A
# U that sounds like "you" does not have one (UUID, User).
_SPELLED: Final = "[AEFHILMNORSX](?![a-z])"
_VOWEL_SOUND: Final = re.compile(f"_*(?:{_SPELLED}|(?!U(?![a-z])|[Uu](?:ni|s[aeiou]))[AEIOUaeiou])")


def pluralize(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 record``, ``2,000 records``.

    The default plural is the noun with an s. Pass any other plural as ``plural``: for example, ``"batches"``,
    or ``"events were"`` for ``"event was"``.
    """
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def with_article(name: str) -> str:
    """Return a name, such as a type's name, with its article: ``a dict``, ``an int``, ``a UUID``."""
    return f"{'an' if _VOWEL_SOUND.match(name) else 'a'} {name}"
