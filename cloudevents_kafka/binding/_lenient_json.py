"""Lenient reading of JSON: without a content-type, with names in other letters or members of other types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cloudevents_kafka import formats
from cloudevents_kafka.attributes.fast_validation import accept, is_scalar
from cloudevents_kafka.attributes.media_type import CLOUDEVENTS, MediaType, media_type
from cloudevents_kafka.attributes.types import CORE, REQUIRED, SPECVERSION, AttributeValue, is_name
from cloudevents_kafka.binding._corrections import correct, corrections, make_event
from cloudevents_kafka.binding._headers import CONTENT_TYPE
from cloudevents_kafka.binding._lenient_headers import Report
from cloudevents_kafka.binding._lenient_names import correct_names, lower_case_names, lower_name
from cloudevents_kafka.binding._structured import null_value
from cloudevents_kafka.codecs.json import is_utf8
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
_MEMBERS: Final = frozenset((*CORE, "data", "data_base64"))
_SCALARS: Final = frozenset((int, bool))
_QUOTE: Final = b'"'
_BACKSLASH: Final = ord("\\")
_DEL: Final = 0x7F  # the only control character that JSON does not escape
_split: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_parse: Final = msgspec.json.Decoder(list[Any]).decode

Found = tuple[Event, tuple[Problem, ...]]
"""An event and the accepted problems."""


class _Reader(JsonReader):
    """A reader of JSON, and how the last record deviated, as then the next one may, too.

    ``corrects`` is whether it did at all, ``renames`` whether names had other letters, and
    ``nests`` whether members were objects or lists.
    """

    __slots__ = ("corrects", "nests", "renames")

    def __init__(self) -> None:
        super().__init__()
        self.corrects = self.nests = self.renames = False


_json: Final = _Reader()


class _Unmarked(dict[str, Problem]):
    """The problem of each content type of a record that is read as a JSON event all the same."""

    def __missing__(self, content_type: str) -> Problem:
        rule = "does not name an event format: the value was read as a JSON event"
        clause = "K-10" if media_type(content_type).essence == CLOUDEVENTS else "K-15"
        return remember(self, content_type, Problem(CONTENT_TYPE, rule, clause, preview(content_type)))


unmarked: Final = _Unmarked()


class _WithoutFormat(dict[str | None, tuple[tuple[Problem], str | None]]):
    """By a content type that does not name an event format, its problem, and the type of data without one."""

    def __missing__(self, content_type: str | None) -> tuple[tuple[Problem], str | None]:
        if content_type is None:
            return remember(self, content_type, ((NO_CONTENT_TYPE,), None))
        of_data = None if implies_json(content_type) else content_type or None
        return remember(self, content_type, ((unmarked[content_type],), of_data))


_without_format: Final = _WithoutFormat()


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
    found = _read_json_parts(value, tolerated, None, True)
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
    own, of_data = _without_format[content_type]
    return _read_json_parts(value, (*tolerated, *own) if tolerated else own, of_data)


def _read_json_parts(
    value: bytes,
    tolerated: tuple[Problem, ...],
    content_type: str | None,
    is_marked: bool = False,  # noqa: FBT001, FBT002  # a call by position is faster
) -> Found | None:
    """Return the event in JSON and the accepted problems; ``content_type`` is that of data without one.

    Return None if the event is not accepted, or needs a slower reader.
    """
    nested: list[str] = []
    try:
        if _json.nests:
            attributes, data, base64, joined, nested = _split_nested(value)
        else:
            attributes, data, base64, joined = _json.split(value)
    except msgspec.ValidationError:
        if _json.nests:
            return None
        _json.nests = True  # a member has another type
        return _read_json_parts(value, tolerated, content_type, is_marked)
    except REFUSED:
        return None
    if content_type is not None and "datacontenttype" not in attributes:
        attributes["datacontenttype"] = content_type
        joined = None if joined is None else joined + content_type
    try:
        if not (_json.renames or corrections.members or nested) and accept(attributes, joined):
            named, problems = attributes, tolerated
        elif is_marked or (attributes.get("specversion") == SPECVERSION and attributes.keys() >= _REQUIRED):
            named, problems = _correct_members(attributes, joined, nested, tolerated)
        else:
            return None
        try:
            payload, kind = read_payload(named, data, base64)
        except InvalidEvent as error:
            payload, kind = _keep_json_data(data, base64, error)
            problems = (*problems, *error.problems)
    except REFUSED:
        return None
    encoded = (NAME, value) if is_marked and len(problems) == len(tolerated) else None
    return unchecked_event(named, payload, kind, encoded), problems


def _correct_members(
    attributes: dict[str, Any], joined: str | None, nested: list[str], tolerated: tuple[Problem, ...]
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Return attributes with other names and values, and all accepted problems.

    ``nested`` names those that were objects or lists. Raises `ValueError` or `InvalidEvent` if
    these are not all problems.
    """
    named, misspelled, ignored = correct_names(attributes)
    _json.renames = named is not attributes
    problems = (*tolerated, *misspelled)
    if ignored:
        joined = None
    for problem in misspelled:
        if type(attributes[str(problem.attribute)]) is not str:
            joined = None  # its type was checked under the other name
    if nested:
        if ignored:
            raise ValueError
        problems = (*problems, *[_kept[name] for name in nested])
    if not corrections.members and accept(named, joined):
        return named, (*problems, *ignored)
    report = Report([*(tolerated if ignored else problems)])
    if ignored:
        named = lower_case_names(attributes, report)
    known = len(report.tolerated)
    named = correct(named, report, expected=corrections.members, joined=joined)
    if report.refused:
        raise InvalidEvent(report.refused)
    corrections.members = len(report.tolerated) > known
    return named, tuple(report.tolerated)


def _split_nested(value: bytes) -> tuple[dict[str, Any], bytes | None, Any, str | None, list[str]]:
    """Return what `JsonReader.split` does, with objects and lists as their JSON text, and their names.

    The names are in lower case. Raises one of `REFUSED` if the form breaks rules, or an attribute
    that is not an extension is an object or a list.
    """
    members = _split(value)
    count = len(members)
    data = bytes(members.pop("data")) if "data" in members else None
    if data is not None and not (data.isascii() or is_utf8(data)):
        raise ValueError  # the parser does not read what it skips
    texts = b"[" + b",".join(members.values()) + b"]"
    quotes = texts.count(_QUOTE) if data is None else texts.count(_QUOTE) + data.count(_QUOTE)
    if value.count(_QUOTE) != quotes + 2 * count:  # other ones are those of repeated names (N-05)
        raise ValueError
    attributes: dict[str, Any] = {}
    nested: list[str] = []
    are_scalars = True
    for name, member in zip(members, _parse(texts)):  # noqa: B905  # as many
        if type(member) is str:
            attributes[name] = member
        elif type(member) in _SCALARS:
            attributes[name] = member
            are_scalars = are_scalars and is_scalar(name, member)
        elif member is not None:
            lower = lower_name(name)
            if type(member) is float or lower in _MEMBERS:
                raise ValueError
            attributes[name] = _to_dense(members[name])
            nested.append(lower)
    _json.nests = bool(nested)
    encoded = attributes.pop("data_base64", None)
    joined = None
    if are_scalars:  # texts in ASCII without escapes and DEL are Strings (T-06)
        is_plain = texts.isascii() and _BACKSLASH not in texts and _DEL not in texts
        joined = "" if is_plain else "".join([text for text in attributes.values() if type(text) is str])
    return attributes, data, encoded, joined, nested


def _to_dense(text: msgspec.Raw) -> str:
    """Return JSON without white space."""
    given = bytes(text)
    return (given if len(given.split(None, 1)) == 1 else msgspec.json.format(given, indent=-1)).decode()


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
    attributes = _keep_json_texts(members, envelope.texts, report.tolerated)
    attributes = correct(attributes, report)
    try:
        payload, kind = _read_data(envelope, attributes.get("datacontenttype"), report.tolerated)
    except InvalidEvent as error:
        raise InvalidEvent([*report.refused, *error.problems]) from None
    return make_event(attributes, payload, kind, report)


class _Kept(dict[str, Problem]):
    """By the name of an extension, its problem if it is an object or a list."""

    def __missing__(self, name: str) -> Problem:
        problem = Problem(name, "is an object or a list: kept as its JSON text", "J-03")
        return remember(self, name, problem)


_kept: Final = _Kept()


def _keep_json_texts(
    members: dict[str, Any], texts: Mapping[str, msgspec.Raw], tolerated: list[Problem]
) -> dict[str, Any]:
    """Return members with the objects and lists of extensions as JSON text, without white space."""
    kept = dict(members)
    for name, value in members.items():
        if isinstance(value, dict | list) and is_name(name) and name not in CORE:
            source = name if name in texts else next(member for member in texts if lower_name(member) == name)
            kept[name] = _to_dense(texts[source])
            tolerated.append(_kept[name])
    return kept


def _read_data(
    envelope: Envelope, content_type: AttributeValue | None, tolerated: list[Problem]
) -> tuple[bytes | None, DataKind]:
    """Return the data of an event; keep a value that must be a string as JSON."""
    data = envelope.data
    try:
        return read_data(data, envelope.encoded, content_type)
    except InvalidEvent as error:
        payload = _keep_json_data(data, envelope.encoded, error)
        tolerated += error.problems
        return payload


def _keep_json_data(
    data: bytes | None, encoded: object, error: InvalidEvent
) -> tuple[bytes | None, DataKind]:
    """Return data that must be a string as JSON; raise the error if it is about anything else."""
    if data is None or encoded is not None or data.startswith(_QUOTE):
        raise error
    return (None, DataKind.BYTES) if data == b"null" else (data, DataKind.JSON)
