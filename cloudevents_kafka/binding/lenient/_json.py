"""Lenient reading of JSON: without a content-type, with names in other letters or members of other types."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.media_type import CLOUDEVENTS, media_type
from cloudevents_kafka.attributes.types import CORE, SPECVERSION, AttributeValue, is_name
from cloudevents_kafka.attributes.validation import name_problem
from cloudevents_kafka.binding._headers import CONTENT_TYPE
from cloudevents_kafka.binding._structured import null_value
from cloudevents_kafka.binding.lenient._headers import Report, mark_ignored
from cloudevents_kafka.binding.lenient._values import correct, is_right, make_event
from cloudevents_kafka.binding.lenient.rules import MEMBER, NESTED, NO_CONTENT_TYPE, OTHER_CONTENT_TYPE
from cloudevents_kafka.codecs.payload import DataKind, implies_json
from cloudevents_kafka.errors import InvalidEvent, Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats.json_decoder import Envelope, read_data, split_envelope
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, remember
from cloudevents_kafka.primitives.preview import preview

_BOM: Final = b"\xef\xbb\xbf"
_QUOTE: Final = b'"'
_NESTED: Final = frozenset((dict, list))
_MOST_NAMES: Final = 64  # members of a renaming that is cached, and cached renamings
_LONGEST_NAME: Final = 64

_Renaming = tuple[tuple[str, ...], tuple[Problem, ...], tuple[Problem, ...]]


class _Renamings(dict[tuple[str, ...], _Renaming | None]):
    """A cache from the names of members to a renaming, None if two names differ only in case.

    A renaming has the names in lower case, the problems of upper-case letters, and those of ignored members.
    """

    def __missing__(self, names: tuple[str, ...]) -> _Renaming | None:
        renaming = _renaming_of(names)
        is_short = len(names) <= _MOST_NAMES and max(map(len, names), default=0) <= _LONGEST_NAME
        return remember(self, names, renaming, _MOST_NAMES) if is_short else renaming


class _WithoutFormat(dict[bytes | None, tuple[Problem, str | None]]):
    """A cache from a content-type that names no event format to its problem, and to the type of the data."""

    def __missing__(self, content_type: bytes | None) -> tuple[Problem, str | None]:
        if content_type is None:
            return remember(self, content_type, (Problem(CONTENT_TYPE, *NO_CONTENT_TYPE), None))
        text = content_type.decode("utf-8", "replace")
        media = media_type(text)
        rule, clause = OTHER_CONTENT_TYPE
        clause = "K-10" if media.essence == CLOUDEVENTS else clause
        of_data = None if media.cloudevents or implies_json(text) else text or None
        found = Problem(CONTENT_TYPE, rule, clause, preview(text)), of_data
        return remember(self, content_type, found) if len(content_type) <= MAX_KEY_LENGTH else found


_renamings: Final = _Renamings()
without_format: Final = _WithoutFormat()


def complete_envelope(value: bytes | None, envelope: Envelope | None) -> Envelope | None:
    """Return the members of a JSON object that has all required attributes, or None.

    ``envelope`` are its members if they were split already.
    """
    try:
        envelope = envelope or split_envelope((value or b"").removeprefix(_BOM))
    except InvalidEvent:
        return None
    find = envelope.attributes.get
    are_texts = type(find("id")) is type(find("source")) is type(find("type")) is str
    is_complete = are_texts and find("specversion") == SPECVERSION
    return envelope if is_complete and not envelope.problems else None


def read_json(
    value: bytes | None, envelope: Envelope | None, report: Report, content_type: str | None = None
) -> Event:
    """Return the event in a JSON value; ``envelope`` are its members if they were split already.

    ``content_type`` is that of the data if the event does not name it.
    """
    if value is None:
        raise InvalidEvent([null_value()])
    if value.startswith(_BOM):
        report.tolerated.append(Problem(None, "the value starts with a byte order mark", "J-01"))
    if envelope is None:
        envelope = split_envelope(value.removeprefix(_BOM))
    if content_type is not None:
        envelope.attributes.setdefault("datacontenttype", content_type)
    return correct_envelope(envelope, report)


def correct_envelope(envelope: Envelope, report: Report) -> Event:
    """Return the event of an object's members; raise `InvalidEvent` with all problems if it is refused."""
    report.refused += envelope.problems
    attributes = _correct_members(envelope, report)
    try:
        payload, kind = _read_data(envelope, attributes.get("datacontenttype"), report.tolerated)
    except InvalidEvent as error:
        raise InvalidEvent([*report.refused, *error.problems]) from None
    return make_event(attributes, payload, kind, report)


def _correct_members(envelope: Envelope, report: Report) -> dict[str, AttributeValue]:
    """Return the attributes of members with corrected names and values."""
    given = envelope.attributes
    renaming = _renamings[tuple(given)]
    if renaming is None:
        members = lower_case_names(given, report)
        return correct(_keep_json_texts(members, envelope, report.tolerated), report)
    names, misspelled, ignored = renaming
    members = dict(zip(names, given.values(), strict=True)) if misspelled else given
    report.tolerated += misspelled
    members = _keep_json_texts(members, envelope, report.tolerated) if envelope.texts else members
    if ignored:
        left_out = {problem.attribute for problem in ignored}
        named = {name: value for name, value in members.items() if name not in left_out}
        if is_right(named, report):
            report.tolerated += ignored
            return named
    return correct(members, report)


def _keep_json_texts(members: dict[str, Any], envelope: Envelope, tolerated: list[Problem]) -> dict[str, Any]:
    """Return members with the objects and lists of extensions as JSON text, without white space."""
    if _NESTED.isdisjoint(map(type, members.values())):
        return members
    kept = dict(members)
    texts, given = envelope.texts, envelope.attributes
    if len(members) == len(given):
        sources = dict(zip(members, given, strict=True))
    else:  # several members had one name
        sources = {lower_name(name): name for name in reversed(given)} | {name: name for name in texts}
    for name, value in members.items():
        if type(value) in _NESTED and is_name(name) and name not in CORE:
            kept[name] = _to_dense(texts[sources[name]])
            tolerated.append(Problem(name, *NESTED))
    return kept


def _read_data(
    envelope: Envelope, content_type: AttributeValue | None, tolerated: list[Problem]
) -> tuple[bytes | None, DataKind]:
    """Return the data of an event; keep a value that must be a string as JSON."""
    data = envelope.data
    try:
        return read_data(data, envelope.encoded, content_type)
    except InvalidEvent as error:
        if data is None or envelope.encoded is not None or data.startswith(_QUOTE):
            raise
        tolerated += error.problems
    return (None, DataKind.BYTES) if data == b"null" else (data, DataKind.JSON)


def _to_dense(text: msgspec.Raw) -> str:
    """Return JSON without white space."""
    given = bytes(text)
    return (given if len(given.split(None, 1)) == 1 else msgspec.json.format(given, indent=-1)).decode()


def _renaming_of(names: tuple[str, ...]) -> _Renaming | None:
    given, taken = set(names), set(names)
    renamed: list[str] = []
    misspelled: list[Problem] = []
    ignored: list[Problem] = []
    for name in names:
        renamed.append(name)
        if is_name(name):
            continue
        lower = lower_name(name)
        if not is_name(lower) or lower in given:
            ignored.append(mark_ignored(name_problem(name)))
        elif lower in taken:
            return None  # they may be ambiguous
        else:
            taken.add(lower)
            renamed[-1] = lower
            misspelled.append(Problem(name, MEMBER[0] + lower, MEMBER[1]))
    return tuple(renamed), tuple(misspelled), tuple(ignored)


def lower_case_names(members: dict[str, Any], report: Report) -> dict[str, Any]:
    """Return members with their names in lower case if that makes these valid and unique."""
    text_names = current.table.text_names
    named: dict[str, Any] = {}
    for name, value in members.items():
        if name in text_names or is_name(name):
            named[name] = value
            continue
        lower = lower_name(name)
        if not is_name(lower) or lower in members:
            named[name] = value
        elif lower in named and not _is_same_scalar(named[lower], value):
            rule = f"is one of several members for {lower} that differ"
            report.refused.append(Problem(name, rule, "N-01"))
        else:
            report.tolerated.append(Problem(name, MEMBER[0] + lower, MEMBER[1]))
            named[lower] = value
    return named


def lower_name(name: str) -> str:
    """Return an ASCII name in lower case, ``""`` for other names."""
    return name.lower() if name.isascii() else ""


def _is_same_scalar(left: Any, right: Any) -> bool:
    """Return whether two scalars are equal; a nested value may be too deep to compare."""
    return type(left) is type(right) and not isinstance(left, dict | list) and bool(left == right)
