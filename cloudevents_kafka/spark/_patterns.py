"""Patterns of event types, in Python and in SQL; ``*`` stands for any text, including an empty text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9_. -]*")


def literal(text: str) -> str:
    """Return an SQL literal whose value does not depend on how the session reads backslashes."""
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def matches_sql(type_: str, pattern: str) -> str:
    """Return an SQL expression that is true if a pattern matches an event type."""
    if "*" not in pattern:
        return f"{type_} = {literal(pattern)}"
    if pattern.index("*") == len(pattern) - 1:
        return f"startswith({type_}, {literal(pattern[:-1])})"
    return f"{type_} RLIKE {literal(_pattern_regex(pattern))}"


def matches(type_: str, pattern: str) -> bool:
    """Return whether a pattern matches an event type."""
    if "*" not in pattern:
        return type_ == pattern
    return re.fullmatch(_regex(pattern), type_, re.DOTALL) is not None


def patterns_in(table: str, routes: Mapping[str, str], patterns: Iterable[str]) -> list[str]:
    """Return the patterns that events in a table may match.

    ``routes`` maps patterns to tables. The first pattern that matches the type of an event decides which
    table the event belongs to.
    """
    if table not in routes.values():  # the common table
        found = [pattern for pattern in patterns if not any(matches(pattern, route) for route in routes)]
        return found[: found.index("*") + 1] if "*" in found else found
    found = []
    for route in (route for route, name in routes.items() if name == table):
        for pattern in patterns:
            if _may_meet(pattern, route):
                found.append(pattern)
            if matches(route, pattern):  # it matches all types of the route
                break
    return list(dict.fromkeys(found))


def _may_meet(one: str, other: str) -> bool:
    """Return whether an event type can match both patterns.

    If both patterns contain ``*``, the result can be True although no type matches both.
    """
    if "*" not in one or "*" not in other:
        return matches(one, other) or matches(other, one)
    (begin, end), (first, last) = ((each.split("*")[0], each.rsplit("*")[-1]) for each in (one, other))
    starts = begin.startswith(first) or first.startswith(begin)
    return starts and (end.endswith(last) or last.endswith(end))


def _pattern_regex(pattern: str) -> str:
    """Return a Java regular expression for the types that a pattern matches; the pattern contains a ``*``."""
    return rf"(?s)\A{_regex(pattern)}\z"


def _regex(pattern: str) -> str:
    """Return a regular expression for Java and Python.

    The groups of the expression are atomic, so they do not backtrack. The time to match a type is linear in
    the length of the type.
    """
    first, *middle, last = pattern.split("*")
    groups = "".join(f"(?>.*?{re.escape(part)})" for part in middle if part)
    return f"{re.escape(first)}{groups}.*{re.escape(last)}"
