"""Lenient reading of attributes that break rules: such attributes are corrected, accepted or left out."""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED
from cloudevents_kafka.attributes.extension_types import ExtensionTable, current, type_of
from cloudevents_kafka.attributes.fast_validation import accept, join_texts
from cloudevents_kafka.attributes.types import (
    CORE,
    REQUIRED,
    AttributeType,
    AttributeValue,
    canonical_text,
    is_name,
    is_string,
)
from cloudevents_kafka.attributes.validation import find_correction, validate
from cloudevents_kafka.binding._headers import attribute_of
from cloudevents_kafka.binding.lenient._headers import bare_content_type
from cloudevents_kafka.binding.lenient.rules import Leniency, leave_out
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import InvalidEvent, Problem
from cloudevents_kafka.event import Event, unchecked_event
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, remember

_EXTENSION_CLAUSES: Final = ("E-", "X-")  # clauses of the extensions' rules, except types
_KEPT_CLAUSE: Final = "T-11"  # of source, whose invalid text is accepted
_VALID: Final = {  # checked in place of accepted invalid values
    "source": "/",
    "dataschema": "urn:x",
    "datacontenttype": "a/b",
}
_REPEATED: Final = frozenset({*CORE, *DOCUMENTED} - {"time", "expirytime", "recordedtime"})
"""The attributes whose values often occur again in other records of the same producer."""
_MOST_TEXTS: Final = 256  # corrections that are cached for an attribute


def is_right(texts: dict[str, Any], report: Leniency) -> bool:
    """Return whether all attributes are valid; replace the texts of attributes with known types by values."""
    return not (report.refused or _find_corrections(texts, current.table)) and accept(texts)


def correct(texts: dict[str, Any], report: Leniency) -> dict[str, AttributeValue]:
    """Return attributes with corrected values; add all corrections and refusals to the report."""
    table = current.table
    if not report.refused:
        attributes = _correct_known(texts, report, table)
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
        is_left_out = len(attributes) < count
        report.tolerated.append(leave_out(problem, value) if is_left_out else problem)
        if type(value) is str:
            _remember(report.tolerated[-1], value, attributes.get(str(problem.attribute)), table)
    return attributes


def _correct_known(
    texts: dict[str, Any], report: Leniency, table: ExtensionTable
) -> dict[str, AttributeValue] | None:
    """Return attributes with cached corrections, or None if the correction of a problem is not cached."""
    corrections = _find_corrections(texts, table)
    if not corrections:
        return texts if accept(texts) else None
    attributes = texts.copy()
    problems: list[Problem] = []
    kept: dict[str, AttributeValue] = {}
    for name, (problem, value, valid) in corrections.items():
        problems.append(problem)
        if valid is None:
            del attributes[name]
            continue
        attributes[name] = valid
        if value is not None and valid is not value:
            kept[name] = value
    joined = join_texts(texts)  # a text that has a correction is a String (T-06)
    if joined is None or not accept(attributes, joined):
        return None
    attributes.update(kept)
    report.tolerated += problems
    return attributes


def _find_corrections(texts: dict[str, Any], table: ExtensionTable) -> dict[str, Any]:
    """Return the cached corrections of the texts of attributes, as a dictionary by attribute name."""
    cached = table.corrections
    found: dict[str, Any] = {}
    for name, text in texts.items():
        if name in cached and type(text) is str and (known := cached[name].get(text)):
            found[name] = known
    return found


def _remember(problem: Problem, text: str, value: AttributeValue | None, table: ExtensionTable) -> None:
    """Cache the correction of a text that may occur again, if no other attribute affects the correction.

    A correction contains a problem, the corrected value, and a valid value. The corrected value is None if
    the attribute is left out. The function `accept` checks the valid value in place of the corrected value,
    which may break a rule.
    """
    name = str(problem.attribute)
    extension = table.extensions.get(name)
    if name not in _REPEATED or name in table.registered or len(text) > MAX_KEY_LENGTH:
        return
    if value is None and (name == "dataschema" or (extension is not None and extension.needs)):
        return  # rules of other attributes depend on whether it is present
    if value is not None and problem.clause.startswith(_EXTENSION_CLAUSES):
        return
    valid = _VALID.get(name) if value == text else value
    if valid is not None or value is None:
        remember(table.corrections.setdefault(name, {}), text, (problem, value, valid), _MOST_TEXTS)


def make_event(
    attributes: dict[str, AttributeValue], payload: bytes | None, kind: DataKind, report: Leniency
) -> Event:
    """Return an event.

    Raises `InvalidEvent` if the report lists problems for which the event is refused.
    """
    if report.refused:
        raise InvalidEvent(report.refused)
    return unchecked_event(attributes, payload, kind)


def _tolerate(problem: Problem, attributes: dict[str, Any]) -> bool:
    """Correct, accept or remove an attribute that has a problem; return False if the event is refused."""
    name = problem.attribute
    value = attributes.get(name) if name is not None else None
    if name is None or value is None:  # an extension requires another attribute
        return name not in REQUIRED and problem.clause.startswith(_EXTENSION_CLAUSES)
    if name in REQUIRED and not isinstance(value, str):
        return False
    text = value if isinstance(value, str) else _keep_scalar(problem, name, value, attributes)
    if name == "time":  # the time of an event is a datetime or None
        del attributes[name]
        return True
    # The text of a value of another type is checked like any other text.
    correction = _corrected if type(value) is str else find_correction
    corrected = correction(name, text) if is_name(name) else None
    if corrected is not None:
        attributes[name] = corrected
        return True
    if name in REQUIRED:
        return is_string(text) and problem.clause == _KEPT_CLAUSE
    if not is_name(name) or not is_string(text) or (text == "" and find_correction(name, "") is None):
        del attributes[name]
    return True


def _corrected(name: str, text: str) -> AttributeValue | None:
    """Return the corrected value for the text of an attribute, or None if it cannot be corrected.

    The texts that can be corrected are texts in quotation marks, content types after a blank, and Booleans
    with capital letters.
    """
    given = text
    if name == "datacontenttype":
        text = bare_content_type(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    elif len(text) > 2 and text[0] == text[-1] == '"':  # K-06: a canonical text has no quotes
        text = text[1:-1]
    if type_of(name) is AttributeType.BOOLEAN:  # T-03: "case-sensitive"
        text = text.lower()
    return None if text == given else find_correction(name, text)


def _keep_scalar(problem: Problem, name: str, value: Any, attributes: dict[str, Any]) -> str:
    """Return the text of a scalar value; if a value has a wrong type, its text replaces the value."""
    text = canonical_text(value)
    if not problem.clause.startswith(_EXTENSION_CLAUSES):
        attributes[name] = text
    return text
