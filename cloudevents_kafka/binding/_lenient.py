"""Lenient reading: what real producers are known to send, taken and reported.

Each deviation that is let pass becomes a `Problem` in the list that goes with the
event. Nothing is invented: an attribute that is not there stays absent, and what
cannot be meant in one way only is refused here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from cloudevents_kafka import formats
from cloudevents_kafka.attributes.extension_types import find_extension, parse_values, type_of
from cloudevents_kafka.attributes.media_type import CLOUDEVENTS, MediaType, media_type
from cloudevents_kafka.attributes.types import (
    CORE,
    INTEGER_RANGE,
    REQUIRED,
    SPECVERSION,
    AttributeType,
    AttributeValue,
    canonical_text,
    is_name,
    is_string,
)
from cloudevents_kafka.attributes.validation import validate, without_lost
from cloudevents_kafka.binding import _structured
from cloudevents_kafka.binding._headers import CONTENT_TYPE, attribute_of, name_in
from cloudevents_kafka.binding._lenient_headers import content_type_problems, normalize_headers
from cloudevents_kafka.binding._sniffer import decode_error, sniff
from cloudevents_kafka.codecs.payload import DataKind, implies_json
from cloudevents_kafka.errors import InvalidEvent, Problem, preview
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.formats.build import InvalidAttributes
from cloudevents_kafka.formats.json import member_texts, read_data, split_envelope
from cloudevents_kafka.record import Record

_BOM: Final = b"\xef\xbb\xbf"
_OF_EXTENSIONS: Final = ("E-", "X-")  # clauses of rules that extensions have beyond their types
_KEPT: Final = ("T-10", "T-11", "R-07")  # rules of core attributes whose breach leaves a text to keep


def read(record: Record) -> tuple[Event, tuple[Problem, ...]]:
    """Read a record that breaks rules, and tell what had to be let pass; raises what `from_record` raises.

    Raises `InvalidEvent` in place of `BrokenEvent`: the caller adds the record.
    """
    tolerated: list[Problem] = []
    unclear: list[Problem] = []
    headers = normalize_headers(record.headers, tolerated, unclear)
    verdict = sniff(headers.items())
    if verdict.mode == "binary":
        attributes = _settle(_texts(headers, unclear), unclear, tolerated)
        return _made(attributes, record.value, DataKind.BYTES, unclear), tuple(tolerated)
    tolerated, unclear = content_type_problems(tolerated), content_type_problems(unclear)
    if verdict.mode == "batch" or (verdict.mode == "not-an-event" and not _is_whole(record.value)):
        raise decode_error(verdict, record)
    _check_content_type(headers.get(CONTENT_TYPE, b""), unclear)
    if verdict.mode == "structured" and verdict.format != "json":
        event = _by_format(record.value, media_type(str(verdict.media_type)), tolerated)
        if event is not None:
            return event, tuple(tolerated)
    if verdict.mode == "structured" or _means_json(verdict.media_type, tolerated):
        return _json(record.value, tolerated, verdict.media_type), tuple(tolerated)
    raise decode_error(verdict, record)


def beside(event: Event, record: Record) -> tuple[Event, tuple[Problem, ...]]:
    """Add to a good event what headers say under names that are nearly right, and tell what they are.

    It stays the event that it is, in its mode and with its values and its data; what does
    not go with them is left out.
    """
    tolerated: list[Problem] = []
    unclear: list[Problem] = []
    headers = normalize_headers(record.headers, tolerated, unclear)
    if unclear:
        names = {problem.attribute for problem in unclear}
        tolerated = [_left_out(problem) for problem in unclear]
        headers = normalize_headers([pair for pair in record.headers if pair[0] not in names], tolerated, [])
    if not tolerated:
        return event, ()
    if sniff(record.headers).mode == "structured":
        return event, tuple(content_type_problems(tolerated))
    attributes, _ = raw_parts(event)
    unread: list[Problem] = []
    texts = _texts({name: text for name, text in headers.items() if name_in(name) not in attributes}, unread)
    tolerated += map(_left_out, unread)
    if more := _fitting(attributes, texts, tolerated):
        event = unchecked_event(parse_values({**attributes, **more}), event.payload, event.kind)
    return event, tuple(tolerated)


def _fitting(
    attributes: dict[str, AttributeValue], more: dict[str, Any], tolerated: list[Problem]
) -> dict[str, Any]:
    """Choose those of more attributes with which an event still keeps all rules."""
    _, found = validate({**attributes, **more})
    broken = {problem.attribute: problem for problem in found}
    if not (more and broken):
        return more
    faults = {name: broken[each] for name in more for each in (name, *_needs(name)) if each in broken}
    faults = faults or dict.fromkeys(more, next(iter(broken.values())))
    for name, problem in faults.items():
        rule = problem.rule if problem.attribute == name else f"{problem.attribute} {problem.rule}"
        tolerated.append(_left_out(Problem(name, rule, problem.clause, problem.value)))
    return _fitting(attributes, {name: more[name] for name in more if name not in faults}, tolerated)


def _needs(name: str) -> Sequence[str]:
    extension = find_extension(name)
    return () if extension is None else extension.needs


def _left_out(problem: Problem) -> Problem:
    return msgspec.structs.replace(problem, rule=f"{problem.rule}: left out")


def _check_content_type(content_type: bytes, unclear: list[Problem]) -> None:
    """Refuse a content-type that is unclear or no UTF-8, or whose event format is in another charset."""
    texts = _texts({CONTENT_TYPE: content_type}, unclear)
    if unclear:
        raise InvalidEvent(unclear)
    media = media_type(texts["datacontenttype"])
    if media.essence == CLOUDEVENTS or media.format in formats.names():
        _structured.check_charset(media)


# --- headers -------------------------------------------------------------------


def _texts(headers: dict[str, bytes], problems: list[Problem]) -> dict[str, Any]:
    """Give the texts of headers by the attributes that they name; what is no text is a problem."""
    texts: dict[str, Any] = {}
    for header, content in headers.items():
        try:
            texts[name_in(header)] = content.decode()
        except UnicodeDecodeError:
            problems.append(Problem(header, "header value must be UTF-8", "K-06", preview(content)))
    return texts


# --- structured values -----------------------------------------------------------


def _means_json(content_type: str | None, tolerated: list[Problem]) -> bool:
    """Tell whether a record whose content-type names no format here is read as JSON all the same."""
    media = media_type(content_type or "")
    if media.cloudevents and media.essence != CLOUDEVENTS:
        return False
    rule, clause = "names no event format: the value reads as a JSON event", "K-15"
    if content_type is None:
        rule, clause = "header is missing: the value reads as a JSON event", "K-09"
    elif media.essence == CLOUDEVENTS:
        rule, clause = "names no event format: read as JSON", "K-10"
    seen = None if content_type is None else preview(content_type)
    tolerated.append(Problem(CONTENT_TYPE, rule, clause, seen))
    return True


def _is_whole(value: bytes | None) -> bool:
    """Tell whether a value is a JSON object with all required attributes of the specversion known here."""
    try:
        members, _, _, repeats = split_envelope((value or b"").removeprefix(_BOM))
    except InvalidEvent:
        return False
    whole = not repeats and all(isinstance(members.get(name), str) for name in REQUIRED)
    return whole and members["specversion"] == SPECVERSION


def _by_format(value: bytes | None, media: MediaType, tolerated: list[Problem]) -> Event | None:
    """Read a value by a format other than JSON; what breaks rules of attributes alone may pass."""
    try:
        return _structured.decode(value, media)
    except InvalidAttributes as error:
        attributes, _ = raw_parts(error.event)
        problems: list[Problem] = []
        named = _named(attributes, tolerated, problems)
        attributes = _settle(named, problems, tolerated)
        return _made(attributes, error.event.payload, error.event.kind, problems)


def _json(value: bytes | None, tolerated: list[Problem], content_type: str | None) -> Event:
    if value is None:
        raise InvalidEvent([Problem(None, "a structured event stands in the value, which is null", "K-08")])
    if value.startswith(_BOM):
        tolerated.append(Problem(None, "the value starts with a byte order mark", "J-01"))
        value = value[len(_BOM) :]
    members, data, encoded, problems = split_envelope(value)
    if content_type and not (media_type(content_type).cloudevents or implies_json(content_type)):
        members.setdefault("datacontenttype", content_type)  # no JSON is of that type, so the data is
    texts = _named({name: text for name, text in member_texts(value).items() if name in members}, [], [])
    named = _named(members, tolerated, problems)
    attributes = _settle(_flatten(named, texts, tolerated), problems, tolerated)
    content = attributes.get("datacontenttype")
    try:
        payload, kind = _data(data, encoded, content, tolerated)
    except InvalidEvent as error:
        raise InvalidEvent([*problems, *error.problems]) from None
    return _made(attributes, payload, kind, problems)


def _named(members: dict[str, Any], tolerated: list[Problem], problems: list[Problem]) -> dict[str, Any]:
    """Read names in lower case, where that makes them good and no other member has that name."""
    named: dict[str, Any] = {}
    for name, value in members.items():
        meant = name.lower()
        if is_name(name) or not (name.isascii() and is_name(meant)) or meant in members:
            named[name] = value
        elif meant in named and not _is_same(named[meant], value):
            problems.append(Problem(name, f"stands for {meant}, as another does, and they differ", "N-01"))
        else:
            tolerated.append(Problem(name, f"was read as {meant}", "N-01"))
            named[meant] = value
    return named


def _is_same(one: Any, other: Any) -> bool:
    """Tell that two scalars are the same: what is nested may be too deep to compare."""
    return type(one) is type(other) and not isinstance(one, dict | list) and bool(one == other)


def _flatten(members: dict[str, Any], texts: dict[str, bytes], tolerated: list[Problem]) -> dict[str, Any]:
    """Keep objects and lists of extensions as their JSON text, but for space between its tokens."""
    flat = dict(members)
    for name, value in members.items():
        if isinstance(value, dict | list) and is_name(name) and name not in CORE:
            flat[name] = msgspec.json.format(texts[name], indent=-1).decode()
            tolerated.append(Problem(name, "is an object or a list: kept as its JSON text", "J-03"))
    return flat


def _data(
    data: bytes | None, encoded: bytes | None, content_type: AttributeValue | None, tolerated: list[Problem]
) -> tuple[bytes | None, DataKind]:
    try:
        return read_data(data, encoded, content_type)
    except InvalidEvent as error:
        if data is None or encoded is not None or data.startswith(b'"'):
            raise
        tolerated += error.problems
        return (None, DataKind.BYTES) if data == b"null" else (data, DataKind.JSON)


# --- attributes --------------------------------------------------------------------


def _settle(
    texts: dict[str, Any], problems: list[Problem], tolerated: list[Problem]
) -> dict[str, AttributeValue]:
    """Mend what can be mended and keep what can be kept; the rest are problems."""
    attributes, broken = validate(texts)
    named = [attribute_of(str(problem.attribute)) or problem.attribute for problem in problems]
    for problem in without_lost(broken, named, attributes):
        count = len(attributes)
        if _let_pass(problem, attributes):
            tolerated.append(problem if len(attributes) == count else _left_out(problem))
        else:
            problems.append(problem)
    return attributes


def _made(
    attributes: dict[str, AttributeValue], payload: bytes | None, kind: DataKind, problems: list[Problem]
) -> Event:
    if problems:
        raise InvalidEvent(problems)
    return unchecked_event(attributes, payload, kind)


def _let_pass(problem: Problem, attributes: dict[str, Any]) -> bool:
    """Take back the effect of a problem on the attributes, where that can be done."""
    name = problem.attribute
    value = attributes.get(name) if name is not None else None
    if name is None or value is None:
        return name not in REQUIRED and problem.clause.startswith(_OF_EXTENSIONS)  # one lacks beside another
    if not is_name(name) or (value == "" and name not in REQUIRED):
        del attributes[name]
        return True
    if isinstance(value, str) and (mended := _mended(name, value)) is not None:
        attributes[name] = mended
        return True
    return _keep(problem, name, value, attributes)


def _mended(name: str, text: str) -> AttributeValue | None:
    """Return what a text was meant to be: it came in quotes, as a time with a space, as True for true."""
    meant = text[1:-1] if len(text) > 2 and text[0] == text[-1] == '"' else text
    if type_of(name) is AttributeType.TIMESTAMP and meant[10:11] == " ":
        meant = f"{meant[:10]}T{meant[11:]}"
    elif type_of(name) is AttributeType.BOOLEAN:
        meant = meant.lower()
    alone, problems = validate({name: meant})
    return None if any(problem.attribute == name for problem in problems) else alone[name]


def _keep(problem: Problem, name: str, value: Any, attributes: dict[str, Any]) -> bool:
    """Keep a value that is text at least, or a scalar that can be written as one."""
    if isinstance(value, str):
        return is_string(value) and (name not in CORE or problem.clause in _KEPT)
    if name in CORE or not isinstance(value, bool | int | bytes):
        return False
    if isinstance(value, int) and value not in INTEGER_RANGE:
        return False
    if not problem.clause.startswith(_OF_EXTENSIONS):  # so it is not of its type
        attributes[name] = canonical_text(value)
    return True
