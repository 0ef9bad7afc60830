r"""Regular expressions for the JVM that match valid attributes and JSON values of `encode_events`.

They are narrower than the specification and never wider: rare forms of times and URIs, and
extensions with rules, do not match. The library's converters write rows that do not match, so a
pattern that is too narrow costs time only.

How Java runs them: it repeats a character class greedily (``[ -~]+``) in a fast loop; a group is
repeated possessively (``(?:...)*+``), which needs no recursion, so that no text overflows the stack.
U+FFFD is in no class, because Java reads it in place of invalid UTF-8. Patterns end with ``\z``,
because ``$`` also matches before a final line break.
"""

from __future__ import annotations

import re
import string
from itertools import groupby
from typing import Final

from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.types import CORE

SEPARATOR: Final = "\x01"
"""Separates extensions that are matched together; attributes contain no control characters."""

# T-06, T-07: no C1 controls, no noncharacters; no U+FFFD; of the upper planes the first three.
_BEYOND_ASCII: Final = (
    r"[\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffc\x{10000}-\x{1fffd}\x{20000}-\x{2fffd}\x{30000}-\x{3fffd}]"
)


def _class_of(characters: str) -> str:
    """Return a class that lists its characters: Java has a table for these, but tests ranges one by one."""
    return f"[{''.join(map(re.escape, characters))}]"


def _uri_characters(more: str = "") -> str:
    return rf"(?:{_class_of(_IN_URI + more)}+|%[0-9A-Fa-f]{{2}})*+"


_TOKEN: Final = _class_of("!#$%&'*+.^_`|~-" + string.digits + string.ascii_letters) + "+"  # RFC 9110
_IN_URI: Final = "!$&'()*+,-.;=_~" + string.digits + string.ascii_letters  # RFC 3986: valid in any part
_SCHEME: Final = "[A-Za-z][A-Za-z0-9+.-]*:"
# Without user names and addresses in brackets, which are rare.
_AFTER_SCHEME: Final = (
    rf"(?://{_uri_characters()}(?::[0-9]*)?+(?:/{_uri_characters(':@/')})?+|(?!//){_uri_characters(':@/')})"
    rf"(?:\?{_uri_characters(':@/?')})?+(?:#{_uri_characters(':@/?')})?+"
)
# N-01: the letters a to z and the digits.
_NAME: Final = _class_of(string.digits + string.ascii_lowercase) + "+"
_DATE: Final = r"(?:19|20|21)[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?+"

TEXT: Final = rf"^(?:[ -~]+|{_BEYOND_ASCII}+)++\z"
"""Texts of one or more characters that are valid in a String."""
URI_REFERENCE: Final = rf"^(?=[!-~])(?:{_SCHEME}|(?!(?:{_class_of(_IN_URI + '@')}+|%)*+:)){_AFTER_SCHEME}\z"
URI: Final = rf"^{_SCHEME}{_AFTER_SCHEME}\z"
TIME: Final = rf"^{_DATE}T{_CLOCK}(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])\z"
"""Times of RFC 3339 that Spark can parse, which checks the days of the months."""
MEDIA_TYPE: Final = rf"^{_TOKEN}/{_TOKEN}(?:; ?{_TOKEN}={_TOKEN})*+\z"

_STRING: Final = r'"(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*+"'
_JSON_SCALAR: Final = (
    rf"^(?:{_STRING}|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]+)?+(?:[eE][+-]?[0-9]+)?+|true|false|null)\z"
)
_SENTINEL: Final = "7364728193"
# Spark's defaults accept more than JSON. The nesting limit is lower than that of any other reader here.
_STRICT_JSON: Final = (
    "map('allowNonNumericNumbers', 'false', 'allowSingleQuotes', 'false', 'maxNestingDepth', '200',"
    " 'columnNameOfCorruptRecord', '__ce_corrupt')"
)


def extensions() -> str:
    """Return a pattern for ``name=value`` texts of extensions that have no rules, with separators.

    It does not check that each name occurs once.
    """
    reserved = _any_of({*CORE, "data", *current.table.constrained})
    one = f"(?!{reserved}=){_NAME}=(?:[ -~]+|{_BEYOND_ASCII}+)++"
    return rf"^{one}(?:{SEPARATOR}{one})*+\z"


def _any_of(names: set[str]) -> str:
    """Return a pattern for any of the names, grouped by first letter to fail fast."""
    groups = []
    for letter, some in groupby(sorted(names), key=lambda name: name[0]):
        groups.append(f"{letter}(?:{'|'.join(name[1:] for name in some)})")
    return f"(?:{'|'.join(groups)})"


def is_json_sql(text: str) -> str:
    r"""Return SQL for whether a text is one JSON value; false if it is not certain.

    An object or array is put into an array before a sentinel that it does not contain. If Spark's
    reader finds the sentinel in second place, nothing in the text has closed the array or opened
    another. Texts with surrogates (``\ud800``) are not certain: one may be unpaired.
    """
    uncertain = rf"contains({text}, r'\ud') OR contains({text}, r'\uD') OR contains({text}, '{_SENTINEL}')"
    in_object = _second_sql(text, f'{{"~":{_SENTINEL}}}', "STRUCT<`~`: BIGINT>")
    return f"""CASE WHEN {uncertain} THEN false
        WHEN startswith({text}, '{{') THEN {in_object}['~'] = {_SENTINEL}
        WHEN startswith({text}, '[') THEN {_second_sql(text, _SENTINEL, "STRING")} = '{_SENTINEL}'
        ELSE {text} RLIKE {_literal(_JSON_SCALAR)} END"""


def _second_sql(text: str, sentinel: str, type_: str) -> str:
    return f"get(from_json(concat('[', {text}, ',{sentinel}]'), 'ARRAY<{type_}>', {_STRICT_JSON}), 1)"


def _literal(pattern: str) -> str:
    """Return a pattern as a raw literal of SQL, with the code of an apostrophe for each apostrophe."""
    pattern = pattern.replace("'", "\\x27")
    return f"r'{pattern}'"
