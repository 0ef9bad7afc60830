"""Lenient reading: what real producers are known to send, taken and reported.

Each deviation that is let pass becomes a `Problem` in the list that goes with the
event. Nothing is invented: an attribute that is not there stays absent, and what
cannot be meant in one way only is refused here too.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from cloudevents_kafka import formats, structured
from cloudevents_kafka.attributes import (
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
from cloudevents_kafka.binary import attribute_of
from cloudevents_kafka.data import DataKind, holds_json
from cloudevents_kafka.errors import InvalidEvent, Problem, shown
from cloudevents_kafka.event import Event, held, trusted
from cloudevents_kafka.extensions import type_of, typed, with_types
from cloudevents_kafka.formats.json import read_data, spelled, split
from cloudevents_kafka.formats.unruly import Unruly
from cloudevents_kafka.media_type import CLOUDEVENTS, MediaType, media_type
from cloudevents_kafka.record import Headers, Record
from cloudevents_kafka.rules import find_problems
from cloudevents_kafka.sniff import CONTENT_TYPE, PREFIX, refused, sniff

_BOM: Final = b"\xef\xbb\xbf"
_COPY: Final = "ce_datacontenttype"
_COPY_COUNTS: Final = f"came in {_COPY}"
_OTHER_PREFIXES: Final = re.compile("ce-|cloudevents[:_]")  # of the bindings for HTTP and AMQP
_OF_EXTENSIONS: Final = ("E-", "X-")  # clauses of rules that extensions have beyond their types
_KEPT: Final = ("T-10", "T-11", "R-07")  # rules of core attributes whose breach leaves a text to keep


def read(record: Record) -> tuple[Event, tuple[Problem, ...]]:
    """Read a record, and tell what had to be let pass; raises what `from_record` raises.

    Raises `InvalidEvent` in place of `BrokenEvent`: the caller adds the record.
    """
    tolerated: list[Problem] = []
    headers = _straighten(record.headers, tolerated)
    verdict = sniff(headers)
    if verdict.mode == "binary":
        return _binary(headers, record.value, tolerated), tuple(tolerated)
    tolerated = _of_content_type(tolerated)  # in structured mode no other header counts
    if verdict.mode == "batch":
        raise refused(verdict, record)
    if verdict.mode != "not-an-event":
        _check_content_type(headers)
    if verdict.mode == "structured" and verdict.format != "json":
        event = _by_format(record.value, media_type(str(verdict.media_type)), tolerated)
        if event is not None:
            return event, tuple(tolerated)
    if verdict.mode == "structured" or _means_json(record, verdict.media_type, tolerated):
        return _json(record.value, tolerated, verdict.media_type), tuple(tolerated)
    raise refused(verdict, record)


def _check_content_type(headers: Headers) -> None:
    """Refuse a content-type that is not UTF-8, or whose event format would be in another charset."""
    content_type = dict(headers)[CONTENT_TYPE] or b""
    try:
        media = media_type(content_type.decode())
        if media.essence == CLOUDEVENTS or media.format in formats.names():
            structured.check_charset(media)
    except UnicodeDecodeError:
        rule = "header value must be UTF-8"
        raise InvalidEvent([Problem(CONTENT_TYPE, rule, "K-06", shown(content_type))]) from None


# --- headers -------------------------------------------------------------------


def _straighten(headers: Headers, tolerated: list[Problem]) -> Headers:
    """Give headers the names that the binding wants, one of each; foreign ones go."""
    kept: dict[str, bytes | None] = {}
    exact = {name for name, value in headers if value is not None}
    for name, value in headers:
        meant = _meant(name)
        if meant is None or value is None:
            continue
        if meant != name and meant in exact:
            tolerated.append(Problem(name, f"was passed over: {meant} is there, and counts", "K-05"))
            continue
        if meant != name:
            again = ", in place of the one before" if meant in kept else ""
            tolerated.append(Problem(name, f"was read as {meant}{again}", "K-05"))
        elif meant in kept:
            rule = f"header {name} occurs more than once: the last counts"
            tolerated.append(Problem(attribute_of(name) or name, rule, "N-05"))
        kept[meant] = value
    _settle_content_type(kept, tolerated)
    return list(kept.items())


def _of_content_type(problems: list[Problem]) -> list[Problem]:
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


def _meant(name: str) -> str | None:
    folded = str(name).lower()
    if other := _OTHER_PREFIXES.match(folded):
        folded = PREFIX + folded[other.end() :]
    return folded if folded == CONTENT_TYPE or (folded.startswith(PREFIX) and folded != PREFIX) else None


def _settle_content_type(kept: dict[str, bytes | None], tolerated: list[Problem]) -> None:
    copy = kept.pop(_COPY, None)
    if copy is None or copy == kept.get(CONTENT_TYPE):
        return
    rule = f"{_COPY_COUNTS}; the content-type header counts" if CONTENT_TYPE in kept else _COPY_COUNTS
    tolerated.append(Problem("datacontenttype", rule, "K-04", shown(copy)))
    kept.setdefault(CONTENT_TYPE, copy)


def _binary(headers: Headers, value: bytes | None, tolerated: list[Problem]) -> Event:
    texts: dict[str, Any] = {}
    problems: list[Problem] = []
    for header, content in headers:
        name = "datacontenttype" if header == CONTENT_TYPE else header[len(PREFIX) :]
        try:
            texts[name] = (content or b"").decode()
        except UnicodeDecodeError:
            problems.append(Problem(header, "header value must be UTF-8", "K-06", shown(content)))
    attributes = _settle(texts, problems, tolerated)
    return trusted(attributes, value)


# --- structured values -----------------------------------------------------------


def _means_json(record: Record, content_type: str | None, tolerated: list[Problem]) -> bool:
    """Tell whether a record whose content-type names no format is a JSON event all the same."""
    rule, clause = "header is missing: the value reads as a JSON event", "K-09"
    if content_type is not None:
        media = media_type(content_type)
        if media.essence == CLOUDEVENTS:
            rule, clause = "names no event format: read as JSON", "K-10"
        elif media.cloudevents:
            return False
        else:
            rule, clause = "names the data's type: the value reads as a JSON event", "K-15"
    if clause != "K-10" and not _is_whole(record.value):
        return False
    tolerated.append(
        Problem(CONTENT_TYPE, rule, clause, None if content_type is None else shown(content_type))
    )
    return True


def _is_whole(value: bytes | None) -> bool:
    """Tell whether a value is a JSON object with all required attributes of the specversion known here."""
    try:
        members, _, _, repeats = split((value or b"").removeprefix(_BOM))
    except InvalidEvent:
        return False
    whole = not repeats and all(isinstance(members.get(name), str) for name in REQUIRED)
    return whole and members["specversion"] == SPECVERSION


def _by_format(value: bytes | None, media: MediaType, tolerated: list[Problem]) -> Event | None:
    """Read a value by a format other than JSON; what breaks rules of attributes alone may pass."""
    try:
        return structured.decode(value, media)
    except Unruly as error:
        attributes, _ = held(error.event)
        return trusted(_settle(attributes, [], tolerated), error.event.payload, error.event.kind)


def _json(value: bytes | None, tolerated: list[Problem], content_type: str | None) -> Event:
    if value is None:
        raise InvalidEvent([Problem(None, "a structured event stands in the value, which is null", "K-08")])
    if value.startswith(_BOM):
        tolerated.append(Problem(None, "the value starts with a byte order mark", "J-01"))
        value = value[len(_BOM) :]
    members, data, encoded, problems = split(value)
    if content_type is not None and not (media_type(content_type).cloudevents or holds_json(content_type)):
        members.setdefault("datacontenttype", content_type)  # no JSON is of that type, so the data is
    texts = _named({name: text for name, text in spelled(value).items() if name in members}, [])
    attributes = _settle(_flatten(_named(members, tolerated), texts, tolerated), problems, tolerated)
    payload, kind = _data(data, encoded, attributes.get("datacontenttype"), tolerated)
    return trusted(attributes, payload, kind, None if tolerated else ("json", value))


def _named(members: dict[str, Any], tolerated: list[Problem]) -> dict[str, Any]:
    """Read names in lower case, where that makes them good and no other member has that name."""
    named: dict[str, Any] = {}
    for name, value in members.items():
        meant = name.lower()
        if is_name(name) or not (name.isascii() and is_name(meant)) or meant in members or meant in named:
            named[name] = value
        else:
            tolerated.append(Problem(name, f"was read as {meant}", "N-01"))
            named[meant] = value
    return named


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
    """Mend what can be mended and keep what can be kept; raise the rest as `InvalidEvent`."""
    attributes = with_types(texts)
    reported = {attribute_of(str(problem.attribute)) or problem.attribute for problem in problems}
    for problem in find_problems(attributes):
        if problem.attribute in reported:
            continue
        if _let_pass(problem, attributes):
            tolerated.append(problem)
        else:
            problems.append(problem)
    if problems:
        raise InvalidEvent(problems)
    return attributes


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
    value = typed(name, meant)
    good = all(problem.attribute != name for problem in find_problems({name: value}))
    return value if good else None


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
