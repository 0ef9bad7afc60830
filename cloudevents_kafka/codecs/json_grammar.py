"""Checks the grammar (RFC 8259) of texts that JSON parsers refuse.

A parser refuses some valid JSON that it cannot represent: texts with an escaped lone surrogate (RFC 8259
8.2), and texts that are nested too deeply for the parser's stack (RFC 8259 9). The functions of this module
check the grammar of UTF-8 texts without recursion, in linear time.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

import msgspec

_WS: Final = rb"[ \t\n\r]*+"
_STRING: Final = rb'"(?>(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"'
_NUMBER: Final = rb"-?(?:0|[1-9][0-9]*+)(?>(?:\.[0-9]++)?)(?>(?:[eE][+-]?[0-9]++)?)"
_SCALAR: Final = rb"(?:%b|%b|true|false|null)" % (_STRING, _NUMBER)
_NAME: Final = rb"%b%b:%b" % (_STRING, _WS, _WS)

_strings: Final = re.compile(_STRING)
# All brackets that open before the next value; after the bracket of an object, its first name is matched.
_open: Final = re.compile(rb"%b(?>(?:(?:\[(?!%b\])|\{%b%b)%b)*)" % (_WS, _WS, _WS, _NAME, _WS))
_leaf: Final = re.compile(rb"%b(?:%b|\[%b\]|\{%b\})" % (_WS, _SCALAR, _WS, _WS))
_more_items: Final = re.compile(rb"(?>(?:%b,%b%b(?![ \t\n\r]*+:))*)" % (_WS, _WS, _SCALAR))
_more_members: Final = re.compile(rb"(?>(?:%b,%b%b%b)*)" % (_WS, _WS, _NAME, _SCALAR))
_next_item: Final = re.compile(rb"%b," % _WS)
_next_member: Final = re.compile(rb"%b,%b%b" % (_WS, _WS, _NAME))
_close: Final = re.compile(rb"%b[\]}]" % _WS)
_closes: Final = re.compile(rb"(?>(?:%b[\]}])+)" % _WS)
_begin: Final = re.compile(rb"%b\{" % _WS)
_first_name: Final = re.compile(rb"%b(%b)%b:%b" % (_WS, _STRING, _WS, _WS))
_next_name: Final = re.compile(rb"%b,%b(%b)%b:%b" % (_WS, _WS, _STRING, _WS, _WS))
_end: Final = re.compile(rb"%b\}%b" % (_WS, _WS))
_CLOSERS: Final = bytes.maketrans(b"[{", b"]}")
_IGNORED: Final = b" \t\n\r:"
_IN_OBJECT: Final = ord("}")
# All text before the first escape of a lone surrogate.
_before_lone_surrogate: Final = re.compile(
    rb"(?>(?:[^\\]++|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\(?!u[dD][89a-fA-F]).)*)",
    re.DOTALL,
)
_ESCAPE_LENGTH: Final = 6


def is_json_text(text: bytes) -> bool:
    """Return whether a text is exactly one JSON value according to the grammar."""
    end = _value_end(text, 0)
    return end is not None and not text[end:].strip(b" \t\n\r")


def find_lone_surrogate(text: bytes) -> int | None:
    """Return the index after the first escaped lone surrogate in a JSON text, or None."""
    match = _before_lone_surrogate.match(text)
    at = len(text) if match is None else match.end()
    return at + _ESCAPE_LENGTH if at < len(text) else None


def blank_members(text: bytes, *names: str) -> tuple[bytes, dict[str, bytes]] | None:
    """Replace the values of the named members by 0; return the new JSON object, and the old values by name.

    The length of the text does not change. If a name is repeated, the value of its last member is returned.
    The result is None if the text is not a JSON object according to the grammar.
    """
    blank, texts = bytearray(text), {}
    members = _members(text)
    if members is None:
        return None
    for name, start, end in members:
        if name in names:
            texts[name] = text[start:end]
            blank[start:end] = b"0".ljust(end - start)
    return bytes(blank), texts


def find_members(text: bytes) -> list[tuple[str, int, int]]:
    """Return the name of each member of a JSON object, and the start and the end of the member's value.

    The members are in order, and a name may occur more than once. The list is empty for a text that is not an
    object.
    """
    return _members(text) or []


def _members(text: bytes) -> list[tuple[str, int, int]] | None:
    """Return the result of `find_members` for a JSON object, or None for other texts."""
    members: list[tuple[str, int, int]] = []
    begin = _begin.match(text)
    at = 0 if begin is None else begin.end()
    while begin is not None and (name := (_next_name if members else _first_name).match(text, at)):
        end = _value_end(text, name.end())
        if end is None:
            return None
        members.append((_decode_name(name[1]), name.end(), end))
        at = end
    return members if begin is not None and _end.fullmatch(text, at) else None


def _decode_name(text: bytes) -> str:
    try:
        name: str = msgspec.json.decode(text)
    except msgspec.DecodeError:  # a lone surrogate: the result has the escapes of the text
        name = text[1:-1].decode()
    return name


def _value_end(text: bytes, at: int) -> int | None:
    """Return the index after the JSON value at index ``at``, or None if no valid value begins there."""
    closers = bytearray()  # the closing brackets that must follow, the innermost last
    while True:
        opened = _open.match(text, at)
        leaf = None if opened is None else _leaf.match(text, opened.end())
        if opened is None or leaf is None:
            return None
        closers += _strings.sub(b"", opened[0]).translate(_CLOSERS, _IGNORED)
        after = _after_value(text, leaf.end(), closers)
        if after is None or not closers:
            return after
        at = after


def _after_value(text: bytes, at: int, closers: bytearray) -> int | None:
    """Return the start of the next value, or the end of the outermost value, or None for invalid JSON.

    Brackets that are closed are removed from the list ``closers``.
    """
    while closers:
        in_object = closers[-1] == _IN_OBJECT
        more = (_more_members if in_object else _more_items).match(text, at)
        at = at if more is None else more.end()
        separator = (_next_member if in_object else _next_item).match(text, at)
        if separator is not None:
            return separator.end()
        closed = _closes.match(text, at)
        run = b"" if closed is None else closed[0].translate(None, _IGNORED)[: len(closers)]
        if not run or closers[: -len(run) - 1 : -1] != run:
            return None
        del closers[-len(run) :]
        at = max(match.end() for match in islice(_close.finditer(text, at), len(run)))
    return at
