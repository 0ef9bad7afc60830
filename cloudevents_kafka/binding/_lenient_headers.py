"""Headers with nearly the names of the binding, as lenient reading accepts them.

They differ in case, or have the prefix of another binding (``ce-``, ``cloudEvents:``). A header
with the exact name takes precedence over them. Several of them for one name that differ, and no
exact one, are ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

import msgspec

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import REQUIRED
from cloudevents_kafka.binding._headers import CONTENT_TYPE, CONTENT_TYPE_COPY, PREFIX, name_in
from cloudevents_kafka.errors import Problem, preview
from cloudevents_kafka.record import Headers

_IS_COPY: Final = f"is in {CONTENT_TYPE_COPY}"
_IGNORED_MODE: Final = (
    "was ignored: if all required ce_ headers are present, only content-type makes an event structured"
)
_OTHER_PREFIXES: Final = re.compile("ce-|cloudevents[:_]")  # of the bindings for HTTP and AMQP


class NormalizedHeaders(msgspec.Struct):
    """The headers of an event by their exact names, without other headers and null values.

    ``tolerated`` are the accepted deviations; ``ambiguous`` are headers for one name that differ,
    of which ``values`` has the last.
    """

    values: dict[str, bytes]
    tolerated: list[Problem]
    ambiguous: list[Problem]


def normalize_headers(headers: Headers) -> NormalizedHeaders:
    """Return the headers of an event under their exact names, one of each, and the deviations."""
    tolerated: list[Problem] = []
    ambiguous: list[Problem] = []
    values = _exact(headers, tolerated)
    exact = frozenset(values)
    for name, variants in _misspelled(headers).items():
        contents = {content for _, content in variants}
        if name in exact:
            tolerated += _each(variants, f"was ignored: {name} is present")
        elif name == CONTENT_TYPE and all(_changes_mode(content, exact) for content in contents):
            tolerated += _each(variants, _IGNORED_MODE)
        else:
            values[name] = variants[-1][1]
            if len(contents) == 1:
                tolerated += _each(variants, f"was read as {name}")
            else:
                ambiguous += _each(variants, f"is one of several headers for {name} that differ")
    _use_copy(values, tolerated)
    return NormalizedHeaders(values, tolerated, ambiguous)


def content_type_problems(problems: list[Problem]) -> list[Problem]:
    """Return the problems of the content-type header, or of a header that replaces it, under its name."""
    return [
        problem
        if str(problem.attribute).lower() == CONTENT_TYPE
        else msgspec.structs.replace(problem, attribute=CONTENT_TYPE)
        for problem in problems
        if str(problem.attribute).lower() == CONTENT_TYPE
        or (problem.attribute == "datacontenttype" and (problem.clause == "N-05" or problem.rule == _IS_COPY))
    ]


def _exact(headers: Headers, tolerated: list[Problem]) -> dict[str, bytes]:
    """Return the headers with exact names; of two of one name the last."""
    values: dict[str, bytes] = {}
    for name, value in headers:
        if value is None or _exact_name(name) != name:
            continue
        if name in values:
            rule = f"header {name} occurs more than once: the last one was read"
            tolerated.append(Problem(name_in(name), rule, "N-05"))
        values[name] = value
    return values


def _misspelled(headers: Headers) -> dict[str, list[tuple[str, bytes]]]:
    """Return the headers with nearly exact names, by the exact ones."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for name, value in headers:
        exact = _exact_name(name)
        if value is not None and exact is not None and exact != name:
            found.setdefault(exact, []).append((name, value))
    return found


def _each(headers: list[tuple[str, bytes]], rule: str) -> list[Problem]:
    return [Problem(name, rule, "K-05") for name, _ in headers]


def _exact_name(name: str) -> str | None:
    folded = str(name).lower()
    if other := _OTHER_PREFIXES.match(folded):
        folded = PREFIX + folded[other.end() :]
    return folded if folded == CONTENT_TYPE or (folded.startswith(PREFIX) and folded != PREFIX) else None


def _changes_mode(content_type: bytes, names: Container[str]) -> bool:
    """Return whether a content type would make an event structured that has all ``ce_`` headers."""
    complete = all(PREFIX + name in names for name in REQUIRED)
    return complete and media_type(content_type.decode("utf-8", "replace")).cloudevents


def _use_copy(values: dict[str, bytes], tolerated: list[Problem]) -> None:
    """Replace a missing content-type header by ``ce_datacontenttype``."""
    copy = values.pop(CONTENT_TYPE_COPY, None)
    if copy is None or copy == values.get(CONTENT_TYPE):
        return
    if CONTENT_TYPE in values:
        rule = f"{_IS_COPY}; the content-type header was read"
    elif _changes_mode(copy, values):
        rule = _IGNORED_MODE
    else:
        rule = _IS_COPY
        values[CONTENT_TYPE] = copy
    tolerated.append(Problem("datacontenttype", rule, "K-04", preview(copy)))
