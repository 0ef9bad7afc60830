"""Corrections of attributes in lenient reading.

The records of a producer deviate alike, so the corrections of earlier records are applied first.
"""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED
from cloudevents_kafka.attributes.extension_types import ExtensionTable, current, type_of
from cloudevents_kafka.attributes.fast_validation import accept, join_texts
from cloudevents_kafka.attributes.types import (
    CORE,
    INTEGER_RANGE,
    REQUIRED,
    AttributeType,
    AttributeValue,
    canonical_text,
    is_name,
    is_string,
)
from cloudevents_kafka.attributes.validation import find_correction, validate
from cloudevents_kafka.binding._headers import attribute_of
from cloudevents_kafka.binding._lenient_headers import Report, mark_ignored
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import InvalidEvent, Problem
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, remember

_EXTENSION_CLAUSES: Final = ("E-", "X-")  # of rules of extensions other than their types
_KEPT_CLAUSES: Final = ("T-10", "T-11", "R-07")  # of core attributes whose text is kept if it breaks them
_VALID: Final = {  # values in place of invalid ones that are kept
    "source": "/",
    "dataschema": "urn:x",
    "datacontenttype": "a/b",
}
_REPEATED: Final = frozenset({*CORE, *DOCUMENTED} - {"time", "expirytime", "recordedtime"})
"""Attributes with the same value in many records of a producer."""


def correct(
    texts: dict[str, Any], report: Report, *, expected: bool = False, joined: str | None = None
) -> dict[str, AttributeValue]:
    """Return attributes with corrected values; ``expected`` is whether they may be valid.

    ``joined`` are all texts together, as for `accept`.
    """
    known, table = corrections.known, current.table
    if known.table is not table:  # after a registration nothing is known
        known = corrections.known = _Known(table)
    if not report.refused:
        attributes = known.apply(texts, report, joined, expected=expected)
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
            known.remember(report.tolerated[-1], value, attributes.get(str(problem.attribute)))
    return attributes


_Correction = tuple[Problem, AttributeValue | None, AttributeValue | None]


class _Known:
    """Corrections of earlier records under the rules of one table of extensions.

    A correction has its problem, the value, or None if the attribute is left out, and a valid value
    in its place for `accept`. Threads may share it: entries are added, and read in one step.
    """

    __slots__ = ("_corrections", "_names", "table")

    def __init__(self, table: ExtensionTable) -> None:
        self._corrections: dict[tuple[str, str], _Correction] = {}
        self._names: set[str] = set()
        self.table = table

    def apply(
        self, texts: dict[str, Any], report: Report, joined: str | None, *, expected: bool
    ) -> dict[str, AttributeValue] | None:
        """Return attributes if all their deviations are known, which are added to the report."""
        known = self._find(texts)
        if not (known or expected):
            return None
        attributes = texts.copy()
        kept: dict[str, AttributeValue] = {}
        for name, (_, value, valid) in known.items():
            if valid is None:
                del attributes[name]
                continue
            attributes[name] = valid
            if value is not None and valid is not value:
                kept[name] = value
        if joined is None:
            joined = join_texts(texts)  # a text that has a correction is a String (T-06)
        if joined is None or not accept(attributes, joined):
            return None
        attributes.update(kept)
        report.tolerated += [problem for problem, _, _ in known.values()]
        return attributes

    def _find(self, texts: dict[str, Any]) -> dict[str, _Correction]:
        """Return the corrections that are known, in the order of the attributes."""
        known: dict[str, _Correction] = {}
        for name in self._names.intersection(texts):
            text = texts[name]
            if type(text) is str and (correction := self._corrections.get((name, text))) is not None:
                known[name] = correction
        return known if len(known) < 2 else {name: known[name] for name in texts if name in known}

    def remember(self, problem: Problem, text: str, value: AttributeValue | None) -> None:
        """Store the correction of a text if it depends on nothing else and may occur again."""
        name = str(problem.attribute)
        extension = self.table.extensions.get(name)
        if name not in _REPEATED or name in self.table.registered or len(text) > MAX_KEY_LENGTH:
            return
        if value is None and (name == "dataschema" or (extension is not None and extension.needs)):
            return  # rules of other attributes depend on whether it is there
        if value is not None and problem.clause.startswith(_EXTENSION_CLAUSES):
            return
        valid = _VALID.get(name) if value == text else value
        if valid is not None or value is None:
            self._names.add(name)
            remember(self._corrections, (name, text), (problem, value, valid))


class _Corrections:
    """What earlier records needed; what the last one needed is tried first for the next.

    ``names`` is whether headers had other names, ``values`` whether attributes in headers were
    corrected, and ``members`` whether those in JSON were: they change no outcome.
    """

    __slots__ = ("known", "members", "names", "values")

    def __init__(self) -> None:
        self.known = _Known(current.table)
        self.values = self.members = self.names = False


corrections: Final = _Corrections()


def make_event(
    attributes: dict[str, AttributeValue], payload: bytes | None, kind: DataKind, report: Report
) -> Event:
    """Return an event; raise `InvalidEvent` if the report has problems for which it is refused."""
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
