"""Headers with nearly the names of the binding, as lenient reading accepts them.

Such names differ in case, or have the prefix of another binding (``ce-``, ``cloudEvents:``). A header with
the exact name takes precedence. Several headers that nearly have one name, with different values and
without an exact header, are ambiguous.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.extension_types import find_extension, parse_values
from cloudevents_kafka.attributes.fast_validation import accept
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import REQUIRED, AttributeValue
from cloudevents_kafka.attributes.validation import validate
from cloudevents_kafka.binding._headers import (
    CONTENT_TYPE,
    CONTENT_TYPE_COPY,
    PREFIX,
    decode_text,
    exact_name,
    name_in,
)
from cloudevents_kafka.binding.lenient.rules import COPY, HEADER, LEFT_OUT
from cloudevents_kafka.errors import Problem
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, remember
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.record import Headers, Record

_IGNORED_MODE: Final = (
    "was ignored: if all required ce_ headers are present, only content-type makes an event structured"
)

REQUIRED_HEADERS: Final = frozenset(PREFIX + name for name in REQUIRED)


class _Names(dict[str, tuple[str, Problem | None] | None]):
    """A cache from the name of a header to its exact name and the problem of its spelling, or to None."""

    def __missing__(self, name: str) -> tuple[str, Problem | None] | None:
        exact = exact_name(name)
        problem = None if exact in (None, name) else Problem(name, HEADER[0] + str(exact), HEADER[1])
        return remember(self, name, None if exact is None else (exact, problem))


class _Attributes(dict[str, str]):
    """A cache from the exact name of a header to the name of its attribute."""

    def __missing__(self, header: str) -> str:
        return remember(self, header, name_in(header))


class _Copies(dict[tuple[str, bytes], Problem]):
    """A cache from a rule and ce_datacontenttype to the problem of that header."""

    def __missing__(self, key: tuple[str, bytes]) -> Problem:
        problem = Problem("datacontenttype", key[0], COPY[1], preview(key[1]))
        return remember(self, key, problem) if len(key[1]) <= MAX_KEY_LENGTH else problem


_names: Final = _Names()
_attributes: Final = _Attributes()
_copies: Final = _Copies()


class Report(msgspec.Struct):
    """The deviations that lenient reading accepts, and the problems for which it refuses a record.

    If a name of a header was corrected or occurs more than once, ``may_be_valid`` is whether the other
    headers may be those of a valid event in binary mode. ``is_repeated`` is whether several headers have, or
    nearly have, one name.
    """

    tolerated: list[Problem] = []
    refused: list[Problem] = []
    may_be_valid: bool = False
    is_repeated: bool = False

    def of_content_type(self) -> Report:
        """Return a report of the content-type header, or of the header that replaces it, only."""
        return Report(_content_type_problems(self.tolerated), _content_type_problems(self.refused))


def normalize_headers(headers: Headers) -> tuple[dict[str, bytes], Report]:
    """Return the headers of an event by their exact names, without null values, and the deviations.

    The headers are in the order of the record. The last of several headers with one exact name counts, also
    if the headers are ambiguous, which the report refuses.
    """
    report = Report()
    values: dict[str, bytes] = {}
    others: set[str] = set()
    for name, value in headers:
        found = _names[name]
        if found is None or value is None:
            continue
        exact, problem = found
        if exact in values:
            return _normalize_repeated(headers)
        values[exact] = value
        if problem is not None:
            report.tolerated.append(problem)
            others.add(exact)
    if CONTENT_TYPE in others and _changes_mode(values[CONTENT_TYPE], values.keys() - others):
        return _normalize_repeated(headers)
    if others:
        report.may_be_valid = REQUIRED_HEADERS.isdisjoint(others)
    if CONTENT_TYPE_COPY in values:
        _use_copy(values, report.tolerated)
    return values, report


def _normalize_repeated(headers: Headers) -> tuple[dict[str, bytes], Report]:
    """Return the headers by their exact names, also if names are repeated, and the report."""
    report = Report(may_be_valid=True, is_repeated=True)
    values, misspelled = _split_exact(headers, report.tolerated)
    exact = frozenset(values)
    for name, variants in misspelled.items():
        contents = {content for _, content in variants}
        problems, rule = report.tolerated, HEADER[0] + name
        if name in exact:
            rule = f"was ignored: {name} is present"
        elif name == CONTENT_TYPE and all(_changes_mode(content, exact) for content in contents):
            rule = _IGNORED_MODE
        else:
            values[name] = variants[-1][1]
            if len(contents) > 1:
                problems, rule = report.refused, f"is one of several headers for {name} that differ"
        problems += [Problem(variant, rule, "K-05") for variant, _ in variants]
    order = dict.fromkeys(exact_name(name) for name, value in headers if value is not None)
    values = {name: values[name] for name in order if name in values}
    _use_copy(values, report.tolerated)
    return values, report


def _split_exact(
    headers: Headers, tolerated: list[Problem]
) -> tuple[dict[str, bytes], dict[str, list[tuple[str, bytes]]]]:
    """Return the headers with exact names, and the headers with nearly exact names by exact name."""
    values: dict[str, bytes] = {}
    misspelled: dict[str, list[tuple[str, bytes]]] = {}
    for name, value in headers:
        exact = exact_name(name)
        if value is None or exact is None:
            continue
        if exact != name:
            misspelled.setdefault(exact, []).append((name, value))
            continue
        if name in values:
            rule = f"header {name} occurs more than once: the last one was read"
            tolerated.append(Problem(name_in(name), rule, "N-05"))
        values[name] = value
    return values, misspelled


def _changes_mode(content_type: bytes, names: Collection[str]) -> bool:
    """Return whether a content type would make a record with all ``ce_`` headers structured."""
    media = media_type(content_type.decode("utf-8", "replace"))
    return media.cloudevents and REQUIRED_HEADERS.issubset(names)


def _use_copy(values: dict[str, bytes], tolerated: list[Problem]) -> None:
    """Replace a missing content-type header by ``ce_datacontenttype``."""
    copy = values.pop(CONTENT_TYPE_COPY, None)
    if copy is None or copy == values.get(CONTENT_TYPE):
        return
    if CONTENT_TYPE in values:
        rule = f"{COPY[0]}; the content-type header was read"
    elif _changes_mode(copy, values.keys()):
        rule = _IGNORED_MODE
    else:
        values[CONTENT_TYPE] = copy
        rule = COPY[0]
    tolerated.append(_copies[rule, copy])


def _content_type_problems(problems: list[Problem]) -> list[Problem]:
    renamed = []
    for problem in problems:
        if str(problem.attribute).lower() == CONTENT_TYPE:
            renamed.append(problem)
        elif problem.rule == COPY[0] or (problem.attribute, problem.clause) == ("datacontenttype", "N-05"):
            renamed.append(msgspec.structs.replace(problem, attribute=CONTENT_TYPE))
    return renamed


def decode_texts(headers: dict[str, bytes], problems: list[Problem]) -> dict[str, Any]:
    """Return the texts of headers by attribute; report headers that are not UTF-8."""
    try:
        return {_attributes[header]: value.decode() for header, value in headers.items()}
    except UnicodeDecodeError:
        texts = {name_in(header): decode_text(header, value, problems) for header, value in headers.items()}
        return {name: text for name, text in texts.items() if text is not None}


def mark_ignored(problem: Problem) -> Problem:
    """Return a problem which says that its value is left out."""
    return msgspec.structs.replace(problem, rule=problem.rule + LEFT_OUT)


def add_headers(event: Event, record: Record, values: dict[str, bytes], report: Report) -> Event:
    """Return a valid event in binary mode with the attributes of headers with nearly exact names.

    Headers that are ambiguous, or that would break a rule, are left out.
    """
    if report.refused:
        names = {problem.attribute for problem in report.refused}
        # Without the ambiguous headers, ce_datacontenttype may replace one of them.
        values, rest = normalize_headers([pair for pair in record.headers if pair[0] not in names])
        report.tolerated = [*map(mark_ignored, report.refused), *rest.tolerated]
    attributes, _ = raw_parts(event)
    unreadable: list[Problem] = []
    missing = {name: text for name, text in values.items() if name_in(name) not in attributes}
    texts = decode_texts(missing, unreadable)
    report.tolerated += map(mark_ignored, unreadable)
    if not accept({**attributes, **texts}):
        texts = _select_valid(attributes, texts, report.tolerated)
    if texts:
        found = {**attributes, **texts}
        order = dict.fromkeys(map(name_in, values))
        found = {name: found[name] for name in [*order, *found] if name in found}
        event = unchecked_event(parse_values(found), event.payload, event.kind)
    return event


def _select_valid(
    attributes: dict[str, AttributeValue], more: dict[str, Any], tolerated: list[Problem]
) -> dict[str, Any]:
    """Return the additional attributes with which an event stays valid; report the other ones."""
    broken = {problem.attribute: problem for problem in validate({**attributes, **more})[1]}
    if not (more and broken):
        return more
    faults = {name: broken[needed] for name in more for needed in (name, *_needs(name)) if needed in broken}
    faults = faults or dict.fromkeys(more, next(iter(broken.values())))
    for name, problem in faults.items():
        rule = problem.rule if problem.attribute == name else f"{problem.attribute} {problem.rule}"
        tolerated.append(mark_ignored(Problem(name, rule, problem.clause, problem.value)))
    return _select_valid(attributes, {name: more[name] for name in more if name not in faults}, tolerated)


def _needs(name: str) -> tuple[str, ...]:
    extension = find_extension(name)
    return () if extension is None else tuple(extension.needs)
