"""Headers whose names are nearly those of the binding, as lenient reading takes them.

In another case, or with the prefix of another binding. A header that has the very name
always wins over them; where they alone say something, and differ, that is not clear.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

import msgspec

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import REQUIRED
from cloudevents_kafka.binding._headers import CONTENT_TYPE, PREFIX, attribute_of
from cloudevents_kafka.errors import Problem, preview
from cloudevents_kafka.record import Headers

_COPY: Final = "ce_datacontenttype"
_COPY_COUNTS: Final = f"came in {_COPY}"
_OTHER_MODE: Final = (
    "was passed over: where all required ce_ headers are, only content-type makes an event structured"
)
_OTHER_PREFIXES: Final = re.compile("ce-|cloudevents[:_]")  # of the bindings for HTTP and AMQP


def normalize_headers(headers: Headers, tolerated: list[Problem], unclear: list[Problem]) -> dict[str, bytes]:
    """Give headers the names that the binding wants, one of each; foreign ones go.

    Those that are to have one name, and differ, are ``unclear``: one of them is given.
    """
    kept = _exact(headers, tolerated)
    exact = frozenset(kept)
    for meant, others in _lookalikes(headers).items():
        values = {value for _, value in others}
        if meant in exact:
            tolerated += _each(others, f"was passed over: {meant} is there, and counts")
        elif meant == CONTENT_TYPE and all(_changes_mode(value, exact) for value in values):
            tolerated += _each(others, _OTHER_MODE)
        else:
            kept[meant] = others[-1][1]
            if len(values) == 1:
                tolerated += _each(others, f"was read as {meant}")
            else:
                unclear += _each(others, f"stands for {meant}, as others do, and they differ")
    _settle_copy(kept, tolerated)
    return kept


def content_type_problems(problems: list[Problem]) -> list[Problem]:
    """Keep what is about the content-type header or stood in for it, under that header's name."""
    return [
        problem
        if str(problem.attribute).lower() == CONTENT_TYPE
        else msgspec.structs.replace(problem, attribute=CONTENT_TYPE)
        for problem in problems
        if str(problem.attribute).lower() == CONTENT_TYPE
        or (
            problem.attribute == "datacontenttype"
            and (problem.clause == "N-05" or problem.rule == _COPY_COUNTS)
        )
    ]


def _exact(headers: Headers, tolerated: list[Problem]) -> dict[str, bytes]:
    """Give the headers that have the binding's names: of two of one name the last counts."""
    kept: dict[str, bytes] = {}
    for name, value in headers:
        if value is None or _meant(name) != name:
            continue
        if name in kept:
            rule = f"header {name} occurs more than once: the last counts"
            tolerated.append(Problem(attribute_of(name) or name, rule, "N-05"))
        kept[name] = value
    return kept


def _lookalikes(headers: Headers) -> dict[str, list[tuple[str, bytes]]]:
    """Give the headers that nearly have names of the binding, by these."""
    found: dict[str, list[tuple[str, bytes]]] = {}
    for name, value in headers:
        meant = _meant(name)
        if value is not None and meant is not None and meant != name:
            found.setdefault(meant, []).append((name, value))
    return found


def _each(headers: list[tuple[str, bytes]], rule: str) -> list[Problem]:
    return [Problem(name, rule, "K-05") for name, _ in headers]


def _meant(name: str) -> str | None:
    folded = str(name).lower()
    if other := _OTHER_PREFIXES.match(folded):
        folded = PREFIX + folded[other.end() :]
    return folded if folded == CONTENT_TYPE or (folded.startswith(PREFIX) and folded != PREFIX) else None


def _changes_mode(content_type: bytes, names: Container[str]) -> bool:
    """Tell that a content type would make a structured event of one that is binary by its ``ce_`` headers."""
    whole = all(PREFIX + name in names for name in REQUIRED)
    return whole and media_type(content_type.decode("utf-8", "replace")).cloudevents


def _settle_copy(kept: dict[str, bytes], tolerated: list[Problem]) -> None:
    """Have ``ce_datacontenttype`` stand in for a content-type header that is not there."""
    copy = kept.pop(_COPY, None)
    if copy is None or copy == kept.get(CONTENT_TYPE):
        return
    if CONTENT_TYPE in kept:
        rule = f"{_COPY_COUNTS}; the content-type header counts"
    elif _changes_mode(copy, kept):
        rule = _OTHER_MODE
    else:
        rule = _COPY_COUNTS
        kept[CONTENT_TYPE] = copy
    tolerated.append(Problem("datacontenttype", rule, "K-04", preview(copy)))
