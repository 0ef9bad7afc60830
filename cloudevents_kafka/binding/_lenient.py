"""Lenient reading: accept and report the deviations of known producers.

Each accepted deviation is a `Problem` in the list that is returned with the event. Nothing is
invented: a missing attribute stays absent, and ambiguous records are refused here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from cloudevents_kafka import formats
from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED
from cloudevents_kafka.attributes.extension_types import ExtensionTable, current, type_of
from cloudevents_kafka.attributes.fast_validation import accept
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
from cloudevents_kafka.attributes.validation import find_correction, name_problem, validate
from cloudevents_kafka.binding._headers import CONTENT_TYPE, PREFIX, attribute_of, decode_text
from cloudevents_kafka.binding._lenient_headers import (
    Report,
    add_headers,
    decode_texts,
    mark_ignored,
    normalize_headers,
)
from cloudevents_kafka.binding._sniffer import Verdict, decode_error, sniff
from cloudevents_kafka.binding._structured import (
    charset_problem,
    decode_structured,
    null_value,
)
from cloudevents_kafka.codecs.payload import DataKind, implies_json
from cloudevents_kafka.errors import InvalidEvent, Problem, preview
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.formats import InvalidAttributes
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.formats.json_decoder import Envelope, InvalidEnvelope, read_data, split_envelope
from cloudevents_kafka.formats.json_reader import NAME, REFUSED, JsonReader, read_payload
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, remember
from cloudevents_kafka.record import Record

_BOM: Final = b"\xef\xbb\xbf"
_EXTENSION_CLAUSES: Final = ("E-", "X-")  # of rules of extensions other than their types
_KEPT_CLAUSES: Final = ("T-10", "T-11", "R-07")  # of core attributes whose text is kept if it breaks them

_VALID: Final = {"source": "/", "dataschema": "urn:x", "datacontenttype": "a/b"}
_REPEATED: Final = frozenset({*CORE, *DOCUMENTED} - {"time", "expirytime", "recordedtime"})
"""Attributes with the same value in many records of a producer."""

Outcome = Event | InvalidEvent
"""The result of strict reading: an event or the error of its value."""


_NO_CONTENT_TYPE: Final = Problem(
    CONTENT_TYPE, "header is missing: the value was read as a JSON event", "K-09"
)
_REQUIRED: Final = frozenset(REQUIRED)
_REQUIRED_HEADERS: Final = frozenset(PREFIX + name for name in REQUIRED)
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


_unmarked: Final = _Unmarked()


def read_texts(value: bytes | None, texts: dict[str, Any], media: MediaType | None) -> Found | None:
    """Return the event of a record and the accepted problems, or None if `read_lenient` decides.

    ``texts`` are its headers, whose names are exact, and ``media`` is their content-type. They
    are not those of a valid event in binary mode. Raises `InvalidEvent` if lenient reading refuses them.
    """
    if media is not None and media.cloudevents:
        return None
    if texts.keys() >= _REQUIRED:
        report = Report()
        attributes = _correct(texts, report, expected=corrections.values)
        corrections.values = bool(report.tolerated)
        return _make_event(attributes, value, DataKind.BYTES, report), tuple(report.tolerated)
    return _read_unmarked_json(value, texts.get("datacontenttype"))


def read_lenient(record: Record, read_valid: Callable[[Record], Event | None]) -> Found:
    """Return the event of a record and the accepted problems; raise errors as strict reading does.

    ``read_valid`` returns the event if strict reading accepts the record.
    """
    headers, report = normalize_headers(record.headers)
    corrections.names = not report.exact
    content_type = headers.get(CONTENT_TYPE)
    media = None if content_type is None else media_type(content_type.decode("utf-8", "replace"))
    is_marked = media is not None and media.cloudevents
    if not is_marked and headers.keys() >= _REQUIRED_HEADERS:
        return _read_binary(record, headers, report, read_valid)
    names = headers.items() if report.tolerated or report.refused else record.headers
    report = report.of_content_type()  # the other headers do not affect the event
    if not report.refused:
        found = _read_json_quickly(record.value, content_type, tuple(report.tolerated))
        if found is not None:
            return found
    is_strict = is_marked and not (media is not None and media.format == NAME and _find_json())
    outcome = _read_strict(record, read_valid) if is_strict else None
    event = _read_structured(record, sniff(names), content_type or b"", report, outcome)
    return event, tuple(report.tolerated)


def _read_strict(record: Record, read_valid: Callable[[Record], Event | None]) -> Outcome | None:
    """Return the event in a value, the error of its format, or None if other problems prevent reading it."""
    try:
        return read_valid(record)
    except InvalidEvent as error:
        return error


def _read_binary(
    record: Record, headers: dict[str, bytes], report: Report, read_valid: Callable[[Record], Event | None]
) -> Found:
    """Return the event of headers that have all required names after correction."""
    if report.may_be_valid and (event := read_valid(record)) is not None:
        return add_headers(event, record, headers, report), tuple(report.tolerated)
    attributes: dict[str, Any] = decode_texts(headers, report.refused)
    if report.refused or not accept(attributes):
        attributes = _correct(attributes, report)
    return _make_event(attributes, record.value, DataKind.BYTES, report), tuple(report.tolerated)


def _read_json_quickly(
    value: bytes | None, content_type: bytes | None, tolerated: tuple[Problem, ...]
) -> Found | None:
    """Return the event in a value, and the accepted problems, or None if a slower reader decides."""
    if content_type is None:
        return _read_unmarked_json(value, None, tolerated)
    try:
        text = content_type.decode()
    except UnicodeDecodeError:
        return None
    media = media_type(text)
    if media.cloudevents:
        return read_marked_json(value, media, tolerated)
    return _read_unmarked_json(value, text, tolerated)


def read_marked_json(
    value: bytes | None, media: MediaType, tolerated: tuple[Problem, ...] = ()
) -> Found | None:
    """Do so for a record with the content-type of an event; return None unless that is in JSON."""
    if media.format != NAME or not media.utf8 or value is None:
        return None
    form = _find_json()
    if form is None:
        return None
    if not _json.corrects and (event := form.read(value)) is not None:
        return event, tolerated
    found = _read_json_parts(value, tolerated, None, is_marked=True)
    _json.corrects = found is None or len(found[1]) > len(tolerated)
    return found


def _find_json() -> JsonFormat | None:
    """Return the JSON format; None if it is a user's."""
    try:
        form = formats.find(NAME)
    except Exception:  # noqa: BLE001  # of a user's factory; `decode_structured` reports it
        return None
    return form if type(form) is JsonFormat else None


def _read_unmarked_json(
    value: bytes | None, content_type: str | None, tolerated: tuple[Problem, ...] = ()
) -> Found | None:
    """Do so for a record whose content-type does not name an event format."""
    if value is None:
        return None
    if content_type is None:
        return _read_json_parts(value, (*tolerated, _NO_CONTENT_TYPE), None)
    of_data = None if implies_json(content_type) else content_type or None
    return _read_json_parts(value, (*tolerated, _unmarked[content_type]), of_data)


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
            named = _lower_case_names(attributes, report)
        named = _correct(named, report, expected=corrections.members)
        if report.refused:
            return None
        corrections.members = len(report.tolerated) > len(tolerated) + len(misspelled)
        payload, kind = read_payload(named, data, base64)
    except REFUSED:
        return None
    if len(report.tolerated) > len(tolerated):
        encoded = None
    return unchecked_event(named, payload, kind, encoded), tuple(report.tolerated)


def _read_structured(
    record: Record, sniffed: Verdict, content_type: bytes, report: Report, outcome: Outcome | None
) -> Event:
    """Return the event of a structured record, or of one whose value is a complete event in JSON.

    ``outcome`` is the result of strict reading if it has read the value in its format.
    """
    envelope = _complete_envelope(record.value) if sniffed.mode == "not-an-event" else None
    if sniffed.mode == "batch" or (sniffed.mode == "not-an-event" and envelope is None):
        raise decode_error(sniffed, record)
    _check_content_type(content_type, report)
    if sniffed.mode == "structured":
        event = _read_format(record.value, media_type(str(sniffed.media_type)), outcome, report)
        if event is not None:
            return event
    elif _is_read_as_json(sniffed.media_type, report.tolerated):
        return _read_json(record.value, envelope, report, sniffed.media_type)
    raise decode_error(sniffed, record)


def _check_content_type(content_type: bytes, report: Report) -> None:
    """Raise `InvalidEvent` if the content-type is ambiguous, not UTF-8, or has another charset."""
    media = media_type(decode_text(CONTENT_TYPE, content_type, report.refused) or "")
    is_event = media.essence == CLOUDEVENTS or media.format in formats.names()
    if report.refused or (is_event and not media.utf8):
        raise InvalidEvent(report.refused or [charset_problem(media)])


def _is_read_as_json(content_type: str | None, tolerated: list[Problem]) -> bool:
    """Return whether a record is read as JSON although its content-type does not name a format here."""
    media = media_type(content_type or "")
    if media.cloudevents and media.essence != CLOUDEVENTS:
        return False
    tolerated.append(_NO_CONTENT_TYPE if content_type is None else _unmarked[content_type])
    return True


def _read_format(
    value: bytes | None, media: MediaType, outcome: Outcome | None, report: Report
) -> Event | None:
    """Return the event in a value in its format, also if attributes break rules; None if it is unknown."""
    if outcome is None and media.format == NAME and value is not None and _find_json():
        return _read_marked_value(value, report)
    if outcome is None:
        try:
            return decode_structured(value, media)
        except InvalidEvent as error:
            outcome = error
    match outcome:
        case Event():
            return outcome
        case InvalidEnvelope():
            return _correct_envelope(outcome.envelope, report)
        case InvalidAttributes(event=event):
            attributes = _correct(_lower_case_names(raw_parts(event)[0], report), report)
            return _make_event(attributes, event.payload, event.kind, report)
    raise outcome


def _complete_envelope(value: bytes | None) -> Envelope | None:
    """Return the members of a JSON object that has all required attributes, or None."""
    try:
        envelope = split_envelope((value or b"").removeprefix(_BOM))
    except InvalidEvent:
        return None
    attributes = envelope.attributes
    complete = not envelope.problems and all(isinstance(attributes.get(name), str) for name in REQUIRED)
    return envelope if complete and attributes["specversion"] == SPECVERSION else None


def _read_marked_value(value: bytes, report: Report) -> Event:
    """Return the event of JSON with the content-type of an event."""
    count = len(report.tolerated)
    event = _read_json(value, None, report)
    if len(report.tolerated) > count:
        return event
    return unchecked_event(raw_parts(event)[0], event.payload, event.kind, (NAME, value))


def _read_json(
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
    return _correct_envelope(envelope, report)


def _correct_envelope(envelope: Envelope, report: Report) -> Event:
    report.refused += envelope.problems
    members = _lower_case_names(envelope.attributes, report)
    attributes = _correct(_keep_json_texts(members, envelope.texts, report.tolerated), report)
    try:
        payload, kind = _read_data(envelope, attributes.get("datacontenttype"), report.tolerated)
    except InvalidEvent as error:
        raise InvalidEvent([*report.refused, *error.problems]) from None
    return _make_event(attributes, payload, kind, report)


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
) -> tuple[dict[str, Any], list[Problem], list[Problem]]:
    """Return attributes with valid names only, and the problems of those in other letters and of the rest.

    Raises `ValueError` if two of them differ only in case.
    """
    if table.text_names.issuperset(attributes):
        return attributes, [], []
    wrong = [
        name
        for name in attributes
        if not (name in table.text_names or name in table.constrained or is_name(name))
    ]
    if not wrong:
        return attributes, [], []
    names: dict[str, str] = {}
    misspelled: list[Problem] = []
    ignored: list[Problem] = []
    for name in wrong:
        lower, read_as, left_out = _spellings[name]
        if lower == "" or lower in attributes:
            ignored.append(left_out)
        elif lower in names.values():
            raise ValueError  # they may be ambiguous
        else:
            names[name] = lower
            misspelled.append(read_as)
    named = {names.get(name, name): value for name, value in attributes.items()}
    for problem in ignored:
        del named[str(problem.attribute)]
    return named, misspelled, ignored


def _lower_case_names(members: dict[str, Any], report: Report) -> dict[str, Any]:
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


def _correct(texts: dict[str, Any], report: Report, *, expected: bool = False) -> dict[str, AttributeValue]:
    """Return attributes with corrected values; ``expected`` is whether they may be valid."""
    if not report.refused:
        attributes = corrections.apply(texts, report, expected=expected)
        if attributes is not None:
            return attributes
    unreadable = [attribute_of(str(problem.attribute)) for problem in report.refused]
    attributes, problems = validate(texts, report.refused, unreadable)
    for problem in problems[len(report.refused) :]:
        value = attributes.get(problem.attribute or "")
        count = len(attributes)
        if not _tolerate(problem, attributes):
            report.refused.append(problem)
            continue
        report.tolerated.append(problem if len(attributes) == count else mark_ignored(problem))
        if type(value) is str:
            corrections.remember(report.tolerated[-1], value, attributes.get(str(problem.attribute)))
    return attributes


class _Corrections:
    """Corrections of earlier records, which those of a producer repeat.

    ``values`` is whether one of the last record in binary mode deviated, ``members`` whether one of the
    last in JSON did, and ``names`` whether one
    of its headers was corrected. Each correction has its problem, the value, or None if the
    attribute is left out, and a valid value in its place.
    """

    __slots__ = ("_known", "_names", "_table", "members", "names", "values")

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Problem, AttributeValue | None, AttributeValue | None]] = {}
        self._names: set[str] = set()
        self._table = current.table
        self.values = self.members = self.names = False

    def apply(
        self, texts: dict[str, Any], report: Report, *, expected: bool
    ) -> dict[str, AttributeValue] | None:
        """Return attributes if all their deviations are known, which are added to the report."""
        if self._table is not current.table:
            return None
        candidates = self._names.intersection(texts)
        if not (candidates or expected):
            return None
        problems: list[Problem] = []
        kept: list[tuple[str, Any]] = []
        attributes = dict(texts)
        for name in texts if len(candidates) > 1 else candidates:
            found = self._known.get((name, texts[name])) if type(texts[name]) is str else None
            if found is None:
                continue
            problem, value, valid = found
            problems.append(problem)
            if valid is None:
                del attributes[name]
                continue
            attributes[name] = valid
            if valid is not value:
                kept.append((name, value))
        if not (problems or expected) or not accept(attributes):
            return None
        attributes.update(kept)
        report.tolerated += problems
        return attributes

    def remember(self, problem: Problem, text: str, value: AttributeValue | None) -> None:
        """Store the correction of a text if it depends on nothing else and may occur again."""
        name = str(problem.attribute)
        if self._table is not current.table:
            self._table = current.table
            self._known.clear()
        extension = self._table.extensions.get(name)
        if name not in _REPEATED or name in self._table.registered or len(text) > MAX_KEY_LENGTH:
            return
        if value is None and (name == "dataschema" or (extension is not None and extension.needs)):
            return  # rules of other attributes depend on whether it is there
        if value is not None and problem.clause.startswith(_EXTENSION_CLAUSES):
            return
        valid = _VALID.get(name) if value == text else value
        if valid is not None or value is None:
            self._names.add(name)
            remember(self._known, (name, text), (problem, value, valid))


corrections: Final = _Corrections()


def _make_event(
    attributes: dict[str, AttributeValue], payload: bytes | None, kind: DataKind, report: Report
) -> Event:
    if report.refused:
        raise InvalidEvent(report.refused)
    return unchecked_event(attributes, payload, kind)


def _tolerate(problem: Problem, attributes: dict[str, Any]) -> bool:
    """Correct, remove or keep the attribute of a problem; return whether it is tolerated."""
    name = problem.attribute
    value = attributes.get(name) if name is not None else None
    if name is None or value is None:  # an extension requires another attribute
        return name not in REQUIRED and problem.clause.startswith(_EXTENSION_CLAUSES)
    if not is_name(name) or (value == "" and name not in REQUIRED):
        del attributes[name]
        return True
    if not isinstance(value, str):
        return _keep_scalar(problem, name, value, attributes)
    corrected = _corrected(name, value)
    if corrected is not None:
        attributes[name] = corrected
        return True
    return is_string(value) and (name not in CORE or problem.clause in _KEPT_CLAUSES)


def _corrected(name: str, text: str) -> AttributeValue | None:
    """Return the value of a text in quotes, of a time with a space, or of True for true; else None."""
    given = text
    if len(text) > 2 and text[0] == text[-1] == '"':  # K-06: a canonical text has no quotes
        text = text[1:-1]
    if type_of(name) is AttributeType.TIMESTAMP and text[10:11] == " ":
        text = f"{text[:10]}T{text[11:]}"
    elif type_of(name) is AttributeType.BOOLEAN:  # T-03: "case-sensitive"
        text = text.lower()
    return None if text == given else find_correction(name, text)


def _keep_scalar(problem: Problem, name: str, value: Any, attributes: dict[str, Any]) -> bool:
    """Keep a scalar that has a canonical text; return whether it is one."""
    is_integer = isinstance(value, int) and value in INTEGER_RANGE  # a bool is one
    if name in CORE or not (is_integer or isinstance(value, bytes)):
        return False
    if not problem.clause.startswith(_EXTENSION_CLAUSES):  # the value has another type
        attributes[name] = canonical_text(value)
    return True
