"""Lenient reading of headers whose names nearly match the header names of the Kafka binding.

A name nearly matches a header name of the binding if only its case differs, if it begins with the prefix of
another binding (``ce-``, ``cloudEvents:``), or if the name of an extension in it contains ``-``, ``_`` or
``.``. A header with the exact name of an attribute takes precedence over headers with nearly this name. If no
header has the exact name of an attribute, a header with nearly this name is read instead. If several headers
nearly have the name of one attribute and their values differ, none of these headers is read. If this
attribute is REQUIRED, the record is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.extension_types import find_extension, parse_values
from cloudevents_kafka.attributes.fast_validation import accept
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import REQUIRED, AttributeValue
from cloudevents_kafka.attributes.validation import name_problem, validate
from cloudevents_kafka.binding._headers import (
    CONTENT_TYPE,
    CONTENT_TYPE_COPY,
    PREFIX,
    decode_text,
    exact_name,
    fold_name,
    given_name,
    name_in,
)
from cloudevents_kafka.binding._sniffer import rank_type
from cloudevents_kafka.binding.lenient.rules import (
    BARE_TYPE,
    COPY,
    DECIDING,
    HEADER,
    LEFT_OUT,
    MEMBER,
    QUOTED,
    READABLE,
    REPEATED,
    Leniency,
    leave_out,
    text_or_bytes,
)
from cloudevents_kafka.errors import LeftOut, Problem
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, remember
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.record import Headers

_IGNORED_MODE: Final = (
    "was ignored: if all required ce_ headers are present, only content-type makes an event structured"
)
_SPECVERSION: Final = PREFIX + "specversion"
_TYPES: Final = frozenset((CONTENT_TYPE, CONTENT_TYPE_COPY))
_BLANKS: Final = b" \t"
_BEFORE_TYPES: Final = frozenset((b'"', b" ", b"\t"))  # starts of values that `bare_content_type` may change
_read_string: Final = msgspec.json.Decoder(str)

REQUIRED_HEADERS: Final = frozenset(PREFIX + name for name in REQUIRED)


class _Names(dict[str, tuple[str, Problem | None] | None]):
    """A cache that maps a header name to the exact name and the spelling problem, or to None.

    The exact name is ``""`` if the header is left out because of the spelling problem.
    """

    def __missing__(self, name: str) -> tuple[str, Problem | None] | None:
        return remember(self, name, _exact_name(name))


def _exact_name(name: str) -> tuple[str, Problem | None] | None:
    exact = exact_name(name)
    if exact is None:
        return None
    if exact != CONTENT_TYPE:
        given = given_name(name)
        folded = fold_name(given)
        if folded is None:
            return "", name_problem(given)
        exact = PREFIX + folded
        if name == PREFIX + given and folded != given.lower():
            return exact, Problem(given, MEMBER[0] + folded, MEMBER[1])
    return exact, None if exact == name else Problem(name, HEADER[0] + exact, HEADER[1])


class _Attributes(dict[str, str]):
    """A cache that maps the exact name of a header to the name of the header's attribute."""

    def __missing__(self, header: str) -> str:
        return remember(self, header, name_in(header))


class _Copies(dict[bytes, Problem]):
    """A cache of problems, each of which says that ce_datacontenttype was read as the content type."""

    def __missing__(self, copy: bytes) -> Problem:
        problem = Problem("datacontenttype", *COPY, preview(copy))
        return remember(self, copy, problem) if len(copy) <= MAX_KEY_LENGTH else problem


_names: Final = _Names()
_attributes: Final = _Attributes()
_copies: Final = _Copies()


def normalize_headers(headers: Headers) -> tuple[dict[str, bytes], Leniency]:
    """Return the event headers by their exact names, without null values, and a report of deviations.

    The headers have the same order as in the record. If several headers have the same exact name, the result
    contains the last of these headers. If several headers nearly have the name of one REQUIRED attribute, and
    their values differ, the record is refused: the report lists the problem. In this case, the result still
    contains the last of these headers.
    """
    report = Leniency()
    values: dict[str, bytes] = {}
    others: set[str] = set()
    for name, value in headers:
        found = _names[name]
        if found is None or value is None:
            continue
        exact, problem = found
        if exact in values or not exact:
            return _normalize_repeated(headers)
        values[exact] = value
        if problem is not None:
            report.tolerated.append(problem)
            others.add(exact)
    if CONTENT_TYPE in others and _changes_mode(values[CONTENT_TYPE], values.keys() - others):
        return _normalize_repeated(headers)
    if others:
        report.may_be_valid = REQUIRED_HEADERS.isdisjoint(others)
    if (
        CONTENT_TYPE_COPY in values
        or (CONTENT_TYPE in values and values[CONTENT_TYPE][:1] in _BEFORE_TYPES)
        or (_SPECVERSION in values and values[_SPECVERSION][:1] == b'"')
    ):
        values = _with_values(values, report)
    return values, report


def _normalize_repeated(headers: Headers) -> tuple[dict[str, bytes], Leniency]:
    """Return the result of `normalize_headers` for headers in which names may be repeated."""
    report = Leniency(may_be_valid=True, is_repeated=True)
    order = dict.fromkeys(
        found[0] for name, value in headers if value is not None and (found := _names[name])
    )
    is_complete = order.keys() >= REQUIRED_HEADERS
    values, misspelled = _split_exact(headers, report.tolerated, is_complete=is_complete)
    exact = frozenset(values)
    for name, variants in misspelled.items():
        contents = {content for _, content in variants}
        differ = f"is one of several headers for {name} that differ"
        if name in exact:
            report.tolerated += _leave_out_all(variants, f"was ignored: {name} is present")
        elif name == CONTENT_TYPE and all(_changes_mode(content, exact) for content in contents):
            report.tolerated += _leave_out_all(variants, _IGNORED_MODE)
        elif len(contents) > 1 and name not in REQUIRED_HEADERS:
            report.tolerated += _leave_out_all(variants, differ + LEFT_OUT)
        else:
            values[name] = variants[-1][1]
            if len(contents) > 1:
                report.refused += [Problem(variant, differ, HEADER[1]) for variant, _ in variants]
            else:
                report.tolerated += filter(None, (_spelling(variant) for variant, _ in variants))
    return _with_values({name: values[name] for name in order if name in values}, report), report


def _leave_out_all(variants: list[tuple[str, bytes]], rule: str) -> list[LeftOut]:
    """Return, for each header in ``variants``, a report that the header is left out of the event."""
    problems = [(problem, value) for name, value in variants if (problem := _spelling(name)) is not None]
    return [leave_out(problem, value, rule=rule) for problem, value in problems]


def _spelling(name: str) -> Problem | None:
    """Return the spelling problem of a header name, or None if the name is spelled correctly."""
    found = _names[name]
    return None if found is None else found[1]


def _split_exact(
    headers: Headers, tolerated: list[Problem], *, is_complete: bool
) -> tuple[dict[str, bytes], dict[str, list[tuple[str, bytes]]]]:
    """Return two dictionaries of event headers.

    The first dictionary maps exact names to values. The second dictionary maps an exact name to the headers
    whose names nearly match this name. ``is_complete`` says whether the headers include all required headers.
    """
    values: dict[str, bytes] = {}
    misspelled: dict[str, dict[tuple[str, int], bytes]] = {}
    for name, value in headers:
        found = _names[name]
        if value is None or found is None:
            continue
        exact, problem = found
        if not exact and problem is not None:
            tolerated.append(leave_out(problem, value))
        elif exact != name:
            variants = misspelled.setdefault(exact, {})
            # Of the headers with the name of one extension, the last one is read, as with exact names.
            place = 0 if problem is not None and problem.clause == MEMBER[1] else len(variants)
            if (name, place) in variants:
                tolerated.append(_repeated(name, variants.pop((name, place))))
            variants[name, place] = value
        else:
            if name in _TYPES and name in values:
                decides = name == CONTENT_TYPE or not is_complete
                tolerated.append(_repeated_type(values, name, value, decides=decides))
                continue
            if name in values:
                tolerated.append(_repeated(name, values[name]))
            values[name] = value
    lists = {
        exact: [(name, value) for (name, _), value in variants.items()]
        for exact, variants in misspelled.items()
    }
    return values, lists


def _repeated_type(values: dict[str, bytes], name: str, later: bytes, *, decides: bool) -> LeftOut:
    """Keep one of two content types in ``values``, in any order of the headers; return the other's report.

    A content type that names an event format is kept if it ``decides`` the content mode. If it does not, a
    content type of the data is kept, and of two such content types the one in UTF-8, or the later one.
    """
    earlier = values[name]
    first, second = rank_of_type(earlier, decides=decides), rank_of_type(later, decides=decides)
    values[name], left_out = (earlier, later) if first > second else (later, earlier)
    if first[0] == second[0] == 0:
        return _repeated(name, left_out, REPEATED if first[1] == second[1] else READABLE)
    return _repeated(name, left_out, REPEATED if first == second else DECIDING)


def rank_of_type(value: bytes, *, decides: bool) -> tuple[int, bool, str]:
    """Return the rank of a content type among those of several headers; the highest one is read.

    If the highest rank occurs more than once, the last one is read. The first number of a rank is 0 if the
    content type does not name an event format, or does not decide the content mode.
    """
    rank, text = rank_type(bare_content_type(value).decode("utf-8", "replace"))
    if rank and decides:
        return rank, True, text
    return 0, not rank and isinstance(text_or_bytes(value), str), ""


def _repeated(name: str, value: bytes, problem: tuple[str, str] = REPEATED) -> LeftOut:
    """Return the report of a header in whose place another header with the same name was read."""
    rule = f"header {name} {problem[0]}"
    return leave_out(
        Problem(given_name(name) if name != CONTENT_TYPE else "datacontenttype", rule, problem[1]),
        value,
        rule=rule,
    )


def _changes_mode(content_type: bytes, names: Collection[str]) -> bool:
    """Return whether a content type would mean structured mode, although all required headers are present."""
    media = media_type(bare_content_type(content_type).decode("utf-8", "replace"))
    return media.cloudevents and REQUIRED_HEADERS.issubset(names)


def _with_values(values: dict[str, bytes], report: Leniency) -> dict[str, bytes]:
    """Return headers whose values have no quotation marks; the content type is in the content-type header."""
    if CONTENT_TYPE_COPY in values:
        _use_copy(values, report.tolerated)
    if values.get(_SPECVERSION, b"").startswith(b'"'):
        _remove_quotes(values, report.tolerated)
    content_type = values.get(CONTENT_TYPE)
    if content_type is not None and (bare := bare_content_type(content_type)) is not content_type:
        values[CONTENT_TYPE] = bare
        report.tolerated.append(Problem("datacontenttype", *BARE_TYPE, preview(content_type)))
    return values


def _remove_quotes(values: dict[str, bytes], tolerated: list[Problem]) -> None:
    """If the specversion header contains a JSON string, replace JSON strings in headers by their texts."""
    for name, value in values.items():
        text = _unquoted(value)
        if text is not None and name != CONTENT_TYPE:
            values[name] = text
            tolerated.append(Problem(name_in(name), *QUOTED, preview(value)))


def _unquoted(value: bytes) -> bytes | None:
    """Return, as UTF-8, the text that a JSON string represents; return None for other values."""
    if not value.startswith(b'"'):
        return None
    try:
        return _read_string.decode(value).encode()
    except (msgspec.MsgspecError, UnicodeError):
        return None


def bare_content_type(value: bytes) -> bytes:
    """Return a content type without the quotation marks and blanks around it.

    A value that does not start with a quotation mark or a blank is returned unchanged. A value is also
    returned unchanged if the text within the quotation marks and blanks is not a content type.
    """
    if not value.startswith((b'"', b" ", b"\t")):
        return value
    text = value.strip(_BLANKS)
    if text.startswith(b'"') and text.endswith(b'"'):
        text = (_unquoted(text) or text[1:-1]).strip(_BLANKS)
    media = media_type(text.decode("utf-8", "replace"))
    return text if media.valid or media.cloudevents else value


def _use_copy(values: dict[str, bytes], tolerated: list[Problem]) -> None:
    """Use ``ce_datacontenttype`` as the content-type if the content-type header is missing."""
    copy = values.pop(CONTENT_TYPE_COPY)
    if CONTENT_TYPE in values:
        if copy != values[CONTENT_TYPE]:
            rule = f"{COPY[0]}; the content-type header was read"
            tolerated.append(leave_out(Problem("datacontenttype", rule, COPY[1]), copy, rule=rule))
    elif _changes_mode(copy, values.keys()):
        problem = Problem("datacontenttype", _IGNORED_MODE, COPY[1])
        tolerated.append(leave_out(problem, copy, rule=_IGNORED_MODE))
    else:
        values[CONTENT_TYPE] = copy
        tolerated.append(_copies[copy])


def decode_texts(headers: dict[str, bytes], report: Leniency) -> dict[str, Any]:
    """Return a dictionary from attributes to the texts of headers; report texts that are not UTF-8."""
    try:
        return {_attributes[header]: value.decode() for header, value in headers.items()}
    except UnicodeDecodeError:
        return _decode_texts(headers, report)


def _decode_texts(headers: dict[str, bytes], report: Leniency) -> dict[str, Any]:
    texts: dict[str, Any] = {}
    for header, value in headers.items():
        problems: list[Problem] = []
        text = decode_text(header, value, problems)
        if text is not None:
            texts[name_in(header)] = text
        elif header in REQUIRED_HEADERS:
            report.refused += problems
        else:
            report.tolerated += [leave_out(problem, value) for problem in problems]
    return texts


def add_headers(event: Event, values: dict[str, bytes], report: Leniency) -> Event:
    """Return a valid event in binary mode after adding attributes from headers with nearly exact names.

    Headers that would break a rule are left out.
    """
    attributes, _ = raw_parts(event)
    missing = {name: text for name, text in values.items() if name_in(name) not in attributes}
    texts = decode_texts(missing, report)
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
    """Return the attributes in ``more`` with which the event stays valid, and report the others."""
    broken = {problem.attribute: problem for problem in validate({**attributes, **more})[1]}
    if not (more and broken):
        return more
    faults = {name: broken[needed] for name in more for needed in (name, *_needs(name)) if needed in broken}
    faults = faults or dict.fromkeys(more, next(iter(broken.values())))
    for name, problem in faults.items():
        rule = problem.rule if problem.attribute == name else f"{problem.attribute} {problem.rule}"
        tolerated.append(leave_out(Problem(name, rule, problem.clause), more[name]))
    return _select_valid(attributes, {name: more[name] for name in more if name not in faults}, tolerated)


def _needs(name: str) -> tuple[str, ...]:
    extension = find_extension(name)
    return () if extension is None else tuple(extension.needs)
