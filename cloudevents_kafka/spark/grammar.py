r"""What surely valid attributes and documents look like, as regular expressions for the JVM.

Spark's own columns read a record only where these expressions match; they are
narrower than the specification in every point (a rare spelling of a time, an
extension with rules of its own), never wider. What they do not match goes to the
library's converters, which decide and explain. So a wrong verdict cannot come from
here, only a slower one.

How Java runs them: a class of characters is repeated greedily (``[ -~]+``), which has
a fast loop of its own; a group is repeated possessively (``(?:...)*+``), which is the
form without recursion, so that no document can overflow the stack. U+FFFD is in no
class: Java reads it in place of invalid UTF-8. Texts end with ``\z``, as ``$`` lets a line
break pass.
"""

from __future__ import annotations

import re
import string
from itertools import groupby
from typing import Final, TypeVar

from cloudevents_kafka.attributes.extension_types import constrained_names, extension_names
from cloudevents_kafka.attributes.types import CORE

SEPARATOR: Final = "\x01"
"""Stands between texts that are checked together; as a control character it is in no attribute."""

MARK: Final = "\x02"
"""Stands in a text for what must not be there; no expression matches it."""

_MARKS: Final = ("\x03", "\x04", "\x05", "\x06", "\x07", "")
_Part = TypeVar("_Part")

# Beyond ASCII: no C1 control, no noncharacter, no U+FFFD; of the upper planes the first three.
_BEYOND: Final = (
    r"[\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffc\x{10000}-\x{1fffd}\x{20000}-\x{2fffd}\x{30000}-\x{3fffd}]"
)


def _one_of(characters: str) -> str:
    """Name a class by its characters, one by one: Java has a table for these, but tries range by range."""
    return f"[{''.join(map(re.escape, characters))}]"


def _signs(more: str = "") -> str:
    """Match what may stand anywhere in a URI, and more."""
    return rf"(?:{_one_of(_OF_URI + more)}+|%[0-9A-Fa-f]{{2}})*+"


_TOKEN: Final = _one_of("!#$%&'*+.^_`|~-" + string.digits + string.ascii_letters) + "+"  # of RFC 9110
_OF_URI: Final = "!$&'()*+,-.;=_~" + string.digits + string.ascii_letters  # RFC 3986, anywhere in it
_SCHEME: Final = "[A-Za-z][A-Za-z0-9+.-]*:"
# Without users and addresses in brackets, which are rare.
_BEHIND_SCHEME: Final = (
    rf"(?://{_signs()}(?::[0-9]*)?+(?:/{_signs(':@/')})?+|(?!//){_signs(':@/')})"
    rf"(?:\?{_signs(':@/?')})?+(?:#{_signs(':@/?')})?+"
)
_NAME: Final = _one_of(string.digits + string.ascii_lowercase) + "+"
_URI_REFERENCE: Final = rf"(?=[!-~])(?:{_SCHEME}|(?!(?:{_one_of(_OF_URI + '@')}+|%)*+:)){_BEHIND_SCHEME}"
_ABSOLUTE: Final = _SCHEME + _BEHIND_SCHEME
_DATE: Final = r"(?:19|20|21)[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?+"

ASCII: Final = r"^[ -~]+\z"
"""Texts of one or more printable ASCII characters."""
TEXT: Final = rf"^(?:[ -~]+|{_BEYOND}+)++\z"
"""Texts of one or more characters that a String may have."""
URI_REFERENCE: Final = rf"^{_URI_REFERENCE}\z"
URI: Final = rf"^{_ABSOLUTE}\z"
TIME: Final = rf"^{_DATE}T{_CLOCK}(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])\z"
"""RFC 3339 as far as Spark's own reading of timestamps goes; that one knows the days of the months."""
MEDIA_TYPE: Final = rf"^{_TOKEN}/{_TOKEN}(?:; ?{_TOKEN}={_TOKEN})*+\z"

_W: Final = r"[ \t\r\n]*+"
_STRING: Final = r'"(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+"'
_MEMBER_NAME: Final = _one_of(string.digits + string.ascii_lowercase + "_") + "+"
_MEMBER: Final = rf'"(?!data"){_MEMBER_NAME}"{_W}:{_W}(?:"[^"\\]*"|-?[0-9]+|true|false){_W}'
JSON_SCALAR: Final = (
    rf"^(?:{_STRING}|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]+)?+(?:[eE][+-]?[0-9]+)?+|true|false|null)\z"
)
"""A JSON value that is no object and no array."""
JSON_HEAD: Final = rf"^{_W}\{{{_W}(?:{_MEMBER}(?:,{_W}|(?=\}})))*+"
"""A JSON document's first members, as far as they are names and plain values without escapes."""
JSON_TAIL: Final = rf"{_W}(?:,{_W}{_MEMBER})*+\}}{_W}\z"
"""The same for the last members, up to the end of the document."""
JSON_UNQUOTED: Final = rf'":{_W}[-0-9tf]'
"""Found where one of these members is a number or boolean."""


def _any_of(names: set[str]) -> str:
    """Match one of the names; those with another first letter are passed over at once."""
    found = []
    for letter, some in groupby(sorted(names), key=lambda name: name[0]):
        rests = "|".join(name[1:] for name in some)
        found.append(f"{letter}(?:{rests})")
    return f"(?:{'|'.join(found)})"


def json_extension() -> str:
    """Match a member that is an Integer or Boolean in its canonical text, under a name that nobody knows.

    Names that are known want a type, and not always this one.
    """
    known = _any_of({*CORE, *extension_names(), "data_base64"})
    return rf'"(?!{known}")([a-z0-9]+)"{_W}:{_W}(0|-?[1-9][0-9]{{0,8}}|true|false)(?=[ \t\r\n,}}])'


def attributes(*, ascii_only: bool = False) -> str:
    """Match the texts of id, type, source, subject, dataschema and extensions, in this order.

    An extension is ``name=value``, and of no type of its own; that its name is there
    once is not told by it.
    """
    text = "[ -~]+" if ascii_only else rf"(?:[ -~]+|{_BEYOND}+)++"
    extension = f"(?!{_any_of({*CORE, 'data', *constrained_names()})}=){_NAME}={text}"
    extensions = rf"(?:{extension}(?:{SEPARATOR}{extension})*+)?+"
    return f"^{''.join(between(text, text, _URI_REFERENCE, text, _ABSOLUTE, extensions))}\\z"


def between(*parts: _Part) -> list[_Part | str]:
    """Put a separator of its own after each part but the last: so no part can pass for two."""
    separated = [x for part, mark in zip(parts, _MARKS, strict=True) for x in (part, mark)]
    return separated[:-1]


def extensions() -> str:
    """Match ``name=value`` texts of extensions that have no type of their own.

    That a name is there once is not told by it.
    """
    one = f"(?!{_any_of({*CORE, 'data', *constrained_names()})}=){_NAME}=(?:[ -~]+|{_BEYOND}+)++"
    return rf"^{one}(?:{SEPARATOR}{one})*+\z"
