"""Lenient reading of JSON without a content-type, with misspelled names, or with values of wrong types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.media_type import CLOUDEVENTS, media_type
from cloudevents_kafka.attributes.types import INTEGER_RANGE, REQUIRED, SPECVERSION, AttributeValue, is_name
from cloudevents_kafka.attributes.validation import name_problem
from cloudevents_kafka.binding._headers import CONTENT_TYPE, fold_name
from cloudevents_kafka.binding._structured import null_value
from cloudevents_kafka.binding.lenient._values import correct, is_right, make_event
from cloudevents_kafka.binding.lenient.rules import (
    MEMBER,
    NESTED,
    NO_CONTENT_TYPE,
    NUMBER,
    OTHER_CONTENT_TYPE,
    REPEATED,
    UNREAD,
    Leniency,
    leave_out,
)
from cloudevents_kafka.codecs.json import is_parsable, is_utf8
from cloudevents_kafka.codecs.json_grammar import find_members
from cloudevents_kafka.codecs.payload import DataKind, implies_json
from cloudevents_kafka.errors import InvalidEvent, LeftOut, Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats.json_decoder import Envelope, member_value, read_data, split_envelope
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, remember
from cloudevents_kafka.primitives.preview import preview

_BOM: Final = b"\xef\xbb\xbf"
_REQUIRED: Final = frozenset(REQUIRED)
_NOT_REPEATED: Final = _REQUIRED | {"data", "data_base64"}  # if repeated, it is unknown which one is right
_VALUES: Final = frozenset((str, bool, bytes))  # bytes are the decoded value of a Binary
_CONTAINERS: Final = frozenset((dict, list))
_NULL: Final = b"null"
_NO_RULES: Final[dict[str, tuple[str, str]]] = {}
_MOST_NAMES: Final = 64  # limits the members in a cached renaming, and the cached renamings
_LONGEST_NAME: Final = 64

_Renaming = tuple[tuple[str, ...], tuple[Problem, ...], tuple[Problem, ...]]


class _Renamings(dict[tuple[str, ...], _Renaming | None]):
    """A cache that maps member names to a renaming, or to None if several names represent one attribute.

    A renaming contains the attribute names, the problems of member names that were read as another name, and
    the problems of member names that are left out. A member name is left out if it does not represent an
    attribute, or if the exact name of its attribute is also present.
    """

    def __missing__(self, names: tuple[str, ...]) -> _Renaming | None:
        renaming = _renaming_of(names)
        is_short = len(names) <= _MOST_NAMES and max(map(len, names), default=0) <= _LONGEST_NAME
        return remember(self, names, renaming, _MOST_NAMES) if is_short else renaming


class _WithoutFormat(dict[bytes | None, tuple[Problem, str | None]]):
    """A cache for content-types without an event format.

    It maps a content-type to a problem and the content type of the data.
    """

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


without_format: Final = _WithoutFormat()
renamings: Final = _Renamings()


def complete_envelope(value: bytes | None, envelope: Envelope | None) -> Envelope | None:
    """Return the members of a JSON object that has all required attributes, or None for any other value.

    ``envelope`` contains the members if the JSON object was already split into members.
    """
    try:
        envelope = envelope or _split(value or b"")
    except InvalidEvent:
        return None
    find = envelope.attributes.get
    are_texts = type(find("id")) is type(find("source")) is type(find("type")) is str
    is_complete = are_texts and find("specversion") == SPECVERSION
    is_repeated = envelope.problems and is_any_required(envelope.problems)
    return envelope if is_complete and not is_repeated else None


def _split(value: bytes) -> Envelope:
    """Return the members of a JSON object; ``unread`` contains optional members that the parser refuses.

    Raises `InvalidEvent` if the value is not a JSON object, or if the parser refuses the data or a required
    attribute.
    """
    value = value.removeprefix(_BOM)
    try:
        return split_envelope(value)
    except InvalidEvent as error:
        if not is_utf8(value):
            raise
        read: list[bytes] = []
        unread: list[tuple[str, bytes]] = []
        for name, start, end in find_members(value):
            text = value[start:end]
            if name in _NOT_REPEATED or is_parsable(text):
                read.append(b"%b:%b" % (msgspec.json.encode(name), text))
            else:
                unread.append((name, text))
        if not read:
            raise
        try:
            envelope = split_envelope(b"{%b}" % b",".join(read))
        except InvalidEvent:
            raise error from None
    return msgspec.structs.replace(envelope, unread=unread)


def find_problems(value: bytes | None) -> tuple[Problem, ...]:
    """Return the problems of a JSON object that has all required attributes, or () for any other value."""
    try:
        envelope = _split(value or b"")
        if envelope.attributes.keys() >= _REQUIRED:
            read_json(value, envelope, Leniency())
    except InvalidEvent as error:
        return () if any(problem.attribute is None for problem in error.problems) else error.problems
    return ()


def read_json(
    value: bytes | None, envelope: Envelope | None, report: Leniency, content_type: str | None = None
) -> Event:
    """Return the event in a JSON value; ``envelope`` contains the members of the JSON object if known.

    ``content_type`` is the content type of the data if the event does not name a content type.
    """
    if value is None:
        raise InvalidEvent([null_value()])
    if value.startswith(_BOM):
        report.tolerated.append(Problem(None, "the value starts with a byte order mark", "J-01"))
    if envelope is None:
        envelope = _split(value)
    if content_type is not None:
        envelope.attributes.setdefault("datacontenttype", content_type)
    return correct_envelope(envelope, report)


def is_any_required(repeats: Iterable[Problem]) -> bool:
    """Return whether an event is ambiguous because a member that must be unique occurs more than once."""
    return any(problem.attribute in _NOT_REPEATED for problem in repeats)


def correct_envelope(envelope: Envelope, report: Leniency) -> Event:
    """Return the event that the members of a JSON object describe.

    Raises `InvalidEvent` if the event is refused.
    """
    if envelope.problems:
        report.refused += [problem for problem in envelope.problems if problem.attribute in _NOT_REPEATED]
        envelope = _last_values(envelope)
        report.tolerated += leave_out_earlier(envelope.earlier, _NOT_REPEATED)
    for name, text in envelope.unread:
        report.tolerated.append(leave_out(Problem(name, *UNREAD), text))
    attributes = _correct_members(envelope, report)
    try:
        payload, kind = _read_data(envelope, attributes.get("datacontenttype"), report.tolerated)
    except InvalidEvent as error:
        raise InvalidEvent([*report.refused, *error.problems]) from None
    return make_event(attributes, payload, kind, report)


def _last_values(envelope: Envelope) -> Envelope:
    """Return the members with the last value of each repeated member; null counts as absent (J-04)."""
    attributes, texts = dict(envelope.attributes), dict(envelope.texts)
    earlier: list[tuple[str, bytes]] = []
    for name, text in reversed(envelope.earlier):
        if name in attributes or name in _NOT_REPEATED or text == _NULL:
            earlier.append((name, text))
            continue
        try:
            attributes[name], texts[name] = member_value(text), msgspec.Raw(text)
        except msgspec.DecodeError:  # a lone surrogate
            earlier.append((name, text))
    return msgspec.structs.replace(envelope, attributes=attributes, texts=texts, earlier=[*reversed(earlier)])


def _correct_members(envelope: Envelope, report: Leniency) -> dict[str, AttributeValue]:
    """Return the attributes that JSON members describe, after correcting their names and values."""
    # If the texts are missing, a faster reader has split the members, and each member is the value of an
    # attribute.
    values, rules = json_values(envelope) if envelope.texts else (envelope.attributes, _NO_RULES)
    renaming = renamings[tuple(values)]
    if renaming is None:
        members, ignored = rename(values, report)
    else:
        names, misspelled, ignored = renaming
        members = dict(zip(names, values.values(), strict=True)) if misspelled else values
        report.tolerated += misspelled
    if rules:
        report.tolerated += _kept_as_text(rules, members, values)
    return correct_named(members, ignored, report) if ignored else correct(members, report)


def _kept_as_text(
    rules: Mapping[str, tuple[str, str]], members: Mapping[str, Any], values: Mapping[str, Any]
) -> Iterator[Problem]:
    """Yield the problem of each JSON member whose value was replaced by its JSON text.

    ``rules`` maps the name of such a member to two texts: the rule and the clause of its problem.
    """
    for given in values:
        if given in rules:
            name = given if given in members else fold_name(given) or given
            if is_name(name) and name in members:
                yield Problem(name, *rules[given])


def correct_named(
    members: dict[str, Any], ignored: Collection[Problem], report: Leniency
) -> dict[str, AttributeValue]:
    """Return attributes with corrected values, without attributes that have an invalid name.

    ``ignored`` contains the problems of the invalid names.
    """
    if ignored:
        left_out = {problem.attribute for problem in ignored}
        named = {name: value for name, value in members.items() if name not in left_out}
        if is_right(named, report):
            report.tolerated += [leave_out(problem, members[str(problem.attribute)]) for problem in ignored]
            return named
    return correct(members, report)


def _read_data(
    envelope: Envelope, content_type: AttributeValue | None, tolerated: list[Problem]
) -> tuple[bytes | None, DataKind]:
    """Return the data of an event; JSON data that does not match its content type is returned as JSON."""
    data = envelope.data
    try:
        return read_data(data, envelope.encoded, content_type)
    except InvalidEvent as error:
        if data is None or envelope.encoded is not None:
            raise
        tolerated += error.problems
    return (None, DataKind.BYTES) if data == b"null" else (data, DataKind.JSON)


def _renaming_of(names: tuple[str, ...]) -> _Renaming | None:
    given, taken = set(names), set(names)
    renamed: list[str] = []
    misspelled: list[Problem] = []
    ignored: list[Problem] = []
    for name in names:
        renamed.append(name)
        if is_name(name):
            continue
        folded = fold_name(name)
        if folded is None or folded in given:
            ignored.append(name_problem(name))
        elif folded in taken:
            return None  # they may be ambiguous
        else:
            taken.add(folded)
            renamed[-1] = folded
            misspelled.append(Problem(name, MEMBER[0] + folded, MEMBER[1]))
    return tuple(renamed), tuple(misspelled), tuple(ignored)


def rename(values: Mapping[str, Any], report: Leniency) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Return values by attribute name, and the problems of member names that do not represent an attribute.

    If a member name does not represent an attribute, its value is returned under this member name. If several
    member names represent one attribute and their values differ, all these values are left out. If this
    attribute is REQUIRED, the record is refused.
    """
    renaming = renamings[tuple(values)]
    if renaming is not None:
        names, misspelled, ignored = renaming
        report.tolerated += misspelled
        return dict(zip(names, values.values(), strict=True)), ignored
    folded = {name: None if is_name(name) else fold_name(name) for name in values}
    variants = {name: found for name, found in folded.items() if found is not None and found not in values}
    different = {(found, _identity(values[name])) for name, found in variants.items()}
    ambiguous = {found for found, count in Counter(found for found, _ in different).items() if count > 1}
    for name, found in variants.items():
        if found not in ambiguous:
            report.tolerated.append(Problem(name, MEMBER[0] + found, MEMBER[1]))
            continue
        problem = Problem(name, f"is one of several members for {found} that differ", MEMBER[1])
        if found in REQUIRED:
            report.refused.append(problem)
        else:
            report.tolerated.append(leave_out(problem, values[name]))
    named = {variants.get(name, name): value for name, value in values.items()}
    ignored = tuple(name_problem(name) for name in values if name not in variants and not is_name(name))
    return {name: value for name, value in named.items() if name not in ambiguous}, ignored


def _identity(value: Any) -> tuple[type, Any]:
    """Return a key that is equal for equal scalar values; each object and each list has its own key."""
    return type(value), id(value) if type(value) in _CONTAINERS else value


def json_values(envelope: Envelope) -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
    """Return the members of a JSON event, and the rules that the values of these members break.

    If an attribute cannot have a value, the value is replaced by its JSON text. Invalid values of REQUIRED
    attributes are not replaced, because a record with such a value is refused.
    """
    given = envelope.attributes
    values = given
    rules: dict[str, tuple[str, str]] = {}
    for name, value in given.items():
        kind = type(value)
        if kind is str or kind in _VALUES or (kind is int and value in INTEGER_RANGE):
            continue
        if _stands_for(name, given) not in REQUIRED:
            values = dict(given) if values is given else values
            rules[name] = NESTED if kind in _CONTAINERS else NUMBER
            values[name] = _to_dense(bytes(envelope.texts[name]))
    return values, rules


def _stands_for(name: str, members: Mapping[str, Any]) -> str:
    """Return the attribute that a member represents; if there is none, return the member's own name.

    A member does not represent an attribute if another member has the exact name of the attribute.
    """
    folded = None if is_name(name) else fold_name(name)
    return name if folded is None or folded in members else folded


def leave_out_earlier(earlier: Iterable[tuple[str, bytes]], refused: Collection[str]) -> list[LeftOut]:
    """Return a report of each JSON member that a later member replaces, except the members in ``refused``."""
    return [
        leave_out(Problem(name, *REPEATED), _text_of(text), rule=REPEATED[0])
        for name, text in earlier
        if name not in refused
    ]


def _text_of(text: bytes) -> str | None:
    """Return the text of a JSON string, None for null, or the JSON text of another value.

    The returned JSON text does not contain white space.
    """
    if text == _NULL:
        return None
    if not text.startswith(b'"'):
        return _to_dense(text)
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.MsgspecError:  # a lone surrogate
        return text.decode()


def _to_dense(text: bytes) -> str:
    """Return JSON text without white space."""
    return (text if len(text.split(None, 1)) == 1 else msgspec.json.format(text, indent=-1)).decode()
