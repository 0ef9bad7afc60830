"""Lenient reading of JSON: without a content-type, with names in other letters or members of other types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from cloudevents_kafka import formats
from cloudevents_kafka.attributes.extension_types import ExtensionTable, current
from cloudevents_kafka.attributes.fast_validation import accept
from cloudevents_kafka.attributes.media_type import CLOUDEVENTS, MediaType, media_type
from cloudevents_kafka.attributes.types import CORE, REQUIRED, SPECVERSION, AttributeValue, is_name
from cloudevents_kafka.attributes.validation import name_problem
from cloudevents_kafka.binding._corrections import correct, corrections, make_event
from cloudevents_kafka.binding._headers import CONTENT_TYPE
from cloudevents_kafka.binding._lenient_headers import Report, mark_ignored
from cloudevents_kafka.binding._structured import null_value
from cloudevents_kafka.codecs.payload import DataKind, implies_json
from cloudevents_kafka.errors import InvalidEvent, Problem, preview
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.formats.json_decoder import Envelope, read_data, split_envelope
from cloudevents_kafka.formats.json_reader import NAME, REFUSED, JsonReader, read_payload
from cloudevents_kafka.primitives.bounded import remember

_BOM: Final = b"\xef\xbb\xbf"
NO_CONTENT_TYPE: Final = Problem(
    CONTENT_TYPE, "header is missing: the value was read as a JSON event", "K-09"
)
_REQUIRED: Final = frozenset(REQUIRED)

Found = tuple[Event, tuple[Problem, ...]]
"""An event and the accepted problems."""


class _Reader(JsonReader):
    """A reader of JSON. ``corrects`` is whether the last record deviated, as then the next one may, too."""

    __slots__ = ("corrects",)

    def __init__(self) -> None:
        super().__init__()
        self.corrects = False


_json: Final = _Reader()


class _Unmarked(dict[str, Problem]):
    """The problem of each content type of a record that is read as a JSON event all the same."""

    def __missing__(self, content_type: str) -> Problem:
        rule = "does not name an event format: the value was read as a JSON event"
        clause = "K-10" if media_type(content_type).essence == CLOUDEVENTS else "K-15"
        return remember(self, content_type, Problem(CONTENT_TYPE, rule, clause, preview(content_type)))


unmarked: Final = _Unmarked()


def read_marked_json(
    value: bytes | None, media: MediaType, tolerated: tuple[Problem, ...] = ()
) -> Found | None:
    """Return the event of a record with the content-type of an event in JSON, and the accepted problems.

    Return None if the content-type is another, or if a slower reader decides.
    """
    if media.format != NAME or not media.utf8 or value is None:
        return None
    form = find_json()
    if form is None:
        return None
    if not _json.corrects and (event := form.read(value)) is not None:
        return event, tolerated
    found = _read_json_parts(value, tolerated, None, is_marked=True)
    _json.corrects = found is None or len(found[1]) > len(tolerated)
    return found


def find_json() -> JsonFormat | None:
    """Return the JSON format; None if it is a user's."""
    try:
        form = formats.find(NAME)
    except Exception:  # noqa: BLE001  # of a user's factory; `decode_structured` reports it
        return None
    return form if type(form) is JsonFormat else None


def read_unmarked_json(
    value: bytes | None, content_type: str | None, tolerated: tuple[Problem, ...] = ()
) -> Found | None:
    """Return the same for a record whose content-type does not name an event format."""
    if value is None:
        return None
    if content_type is None:
        return _read_json_parts(value, (*tolerated, NO_CONTENT_TYPE), None)
    of_data = None if implies_json(content_type) else content_type or None
    return _read_json_parts(value, (*tolerated, unmarked[content_type]), of_data)


def _read_json_parts(
    value: bytes, tolerated: tuple[Problem, ...], content_type: str | None, *, is_marked: bool = False
) -> Found | None:
    """Return the event in JSON and the accepted problems; ``content_type`` is that of data without one.

    Return None if the event is not accepted, or needs a slower reader.
    """
    table = current.table
    encoded = (NAME, value) if is_marked else None
    try:
        attributes, data, base64, joined = _json.split(value)
        if content_type is not None and "datacontenttype" not in attributes:
            attributes["datacontenttype"] = content_type
            joined = None
        named, misspelled, ignored = _correct_names(attributes, table)
        if named is attributes and not corrections.members and accept(attributes, joined):
            payload, kind = read_payload(attributes, data, base64)
            return unchecked_event(attributes, payload, kind, encoded), tolerated
        if not is_marked and not (
            attributes.get("specversion") == SPECVERSION and attributes.keys() >= _REQUIRED
        ):
            return None
        if named is not attributes and not corrections.members and accept(named):
            payload, kind = read_payload(named, data, base64)
            return unchecked_event(named, payload, kind), (*tolerated, *misspelled, *ignored)
        report = Report([*tolerated, *misspelled])
        if ignored:
            report = Report([*tolerated])
            named = lower_case_names(attributes, report)
        named = correct(named, report, expected=corrections.members)
        if report.refused:
            return None
        corrections.members = len(report.tolerated) > len(tolerated) + len(misspelled)
        payload, kind = read_payload(named, data, base64)
    except REFUSED:
        return None
    if len(report.tolerated) > len(tolerated):
        encoded = None
    return unchecked_event(named, payload, kind, encoded), tuple(report.tolerated)


def complete_envelope(value: bytes | None) -> Envelope | None:
    """Return the members of a JSON object that has all required attributes, or None."""
    try:
        envelope = split_envelope((value or b"").removeprefix(_BOM))
    except InvalidEvent:
        return None
    attributes = envelope.attributes
    complete = not envelope.problems and all(isinstance(attributes.get(name), str) for name in REQUIRED)
    return envelope if complete and attributes["specversion"] == SPECVERSION else None


def read_marked_value(value: bytes, report: Report) -> Event:
    """Return the event of JSON with the content-type of an event."""
    count = len(report.tolerated)
    event = read_json(value, None, report)
    if len(report.tolerated) > count:
        return event
    return unchecked_event(raw_parts(event)[0], event.payload, event.kind, (NAME, value))


def read_json(
    value: bytes | None, envelope: Envelope | None, report: Report, content_type: str | None = None
) -> Event:
    """Return the event in a JSON value; ``envelope`` are its members if they were split already."""
    if value is None:
        raise InvalidEvent([null_value()])
    if value.startswith(_BOM):
        report.tolerated.append(Problem(None, "the value starts with a byte order mark", "J-01"))
    if envelope is None:
        envelope = split_envelope(value.removeprefix(_BOM))
    if content_type and not (media_type(content_type).cloudevents or implies_json(content_type)):
        envelope.attributes.setdefault("datacontenttype", content_type)  # of the data, as it is not of JSON
    return correct_envelope(envelope, report)


def correct_envelope(envelope: Envelope, report: Report) -> Event:
    """Return the event of members; raise `InvalidEvent` with all problems if it is refused."""
    report.refused += envelope.problems
    members = lower_case_names(envelope.attributes, report)
    attributes = correct(_keep_json_texts(members, envelope.texts, report.tolerated), report)
    try:
        payload, kind = _read_data(envelope, attributes.get("datacontenttype"), report.tolerated)
    except InvalidEvent as error:
        raise InvalidEvent([*report.refused, *error.problems]) from None
    return make_event(attributes, payload, kind, report)


class _Spellings(dict[str, tuple[str, Problem, Problem]]):
    """By an invalid name, the name in lower case or "", and the problems if that is read, or left out."""

    def __missing__(self, name: str) -> tuple[str, Problem, Problem]:
        lower = _lower(name)
        read_as = Problem(name, f"was read as {lower}", "N-01")
        return remember(
            self, name, (lower if is_name(lower) else "", read_as, mark_ignored(name_problem(name)))
        )


_spellings: Final = _Spellings()


def _correct_names(
    attributes: dict[str, Any], table: ExtensionTable
) -> tuple[dict[str, Any], Sequence[Problem], Sequence[Problem]]:
    """Return attributes with valid names only, the problems of names in other letters, and of those left out.

    Raises `ValueError` if two of them differ only in case.
    """
    if table.text_names.issuperset(attributes):
        return attributes, (), ()
    wrong = [
        name
        for name in attributes
        if not (name in table.text_names or name in table.constrained or is_name(name))
    ]
    if not wrong:
        return attributes, (), ()
    names: dict[str, str] = {}
    taken = set(attributes)
    misspelled: list[Problem] = []
    ignored: list[Problem] = []
    for name in wrong:
        lower, read_as, left_out = _spellings[name]
        if lower == "" or lower in attributes:
            ignored.append(left_out)
        elif lower in taken:
            raise ValueError  # they may be ambiguous
        else:
            taken.add(lower)
            names[name] = lower
            misspelled.append(read_as)
    named = {names.get(name, name): value for name, value in attributes.items()}
    for problem in ignored:
        del named[str(problem.attribute)]
    return named, misspelled, ignored


def lower_case_names(members: dict[str, Any], report: Report) -> dict[str, Any]:
    """Return members with their names in lower case if that makes these valid and unique."""
    text_names = current.table.text_names
    named: dict[str, Any] = {}
    for name, value in members.items():
        if name in text_names or is_name(name):
            named[name] = value
            continue
        lower = _lower(name)
        if not is_name(lower) or lower in members:
            named[name] = value
        elif lower in named and not _is_same_scalar(named[lower], value):
            rule = f"is one of several members for {lower} that differ"
            report.refused.append(Problem(name, rule, "N-01"))
        else:
            report.tolerated.append(Problem(name, f"was read as {lower}", "N-01"))
            named[lower] = value
    return named


def _lower(name: str) -> str:
    """Return an ASCII name in lower case; other names have no attribute name."""
    return name.lower() if name.isascii() else ""


def _is_same_scalar(left: Any, right: Any) -> bool:
    """Return whether two scalars are equal; a nested value may be too deep to compare."""
    return type(left) is type(right) and not isinstance(left, dict | list) and bool(left == right)


def _keep_json_texts(
    members: dict[str, Any], texts: Mapping[str, msgspec.Raw], tolerated: list[Problem]
) -> dict[str, Any]:
    """Return members with the objects and lists of extensions as JSON text, without white space."""
    kept = dict(members)
    for name, value in members.items():
        if isinstance(value, dict | list) and is_name(name) and name not in CORE:
            source = name if name in texts else next(member for member in texts if _lower(member) == name)
            kept[name] = msgspec.json.format(bytes(texts[source]), indent=-1).decode()
            tolerated.append(Problem(name, "is an object or a list: kept as its JSON text", "J-03"))
    return kept


def _read_data(
    envelope: Envelope, content_type: AttributeValue | None, tolerated: list[Problem]
) -> tuple[bytes | None, DataKind]:
    """Return the data of an event; keep a value that must be a string as JSON."""
    data = envelope.data
    try:
        return read_data(data, envelope.encoded, content_type)
    except InvalidEvent as error:
        if data is None or envelope.encoded is not None or data.startswith(b'"'):
            raise
        tolerated += error.problems
        return (None, DataKind.BYTES) if data == b"null" else (data, DataKind.JSON)
