"""The rules for the attributes of an event, and the problems of attributes that break them.

`fast_validation` accepts most valid events sooner; this module decides about all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from cloudevents_kafka.attributes._uri import is_uri, is_uri_reference
from cloudevents_kafka.attributes.documented_extensions import Extension
from cloudevents_kafka.attributes.extension_types import ExtensionTable, current, parse_values, type_of
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.timestamps import is_timestamp
from cloudevents_kafka.attributes.types import (
    INTEGER_RANGE,
    REQUIRED,
    SPECVERSION,
    AttributeType,
    AttributeValue,
    is_name,
    is_string,
)
from cloudevents_kafka.errors import Problem, preview

_STRING_RULE: Final = "must be text without control characters, surrogates and noncharacters"
_TYPES: Final[dict[AttributeType, tuple[type | Callable[[str], bool], str, str]]] = {
    AttributeType.BOOLEAN: (bool, "T-03", "must be true or false"),
    AttributeType.INTEGER: (int, "T-05", "must be an integer of 32 bits in decimal digits"),
    AttributeType.STRING: (is_string, "T-06", _STRING_RULE),
    AttributeType.BINARY: (bytes, "T-09", "must be bytes, or base64 of RFC 4648 with padding"),
    AttributeType.URI: (is_uri, "T-10", "must be a URI with a scheme"),
    AttributeType.URI_REFERENCE: (is_uri_reference, "T-11", "must be a URI-reference"),
    AttributeType.TIMESTAMP: (is_timestamp, "T-12", "must be an RFC 3339 timestamp"),
}
"""The types: that of Python or the check of a text, the clause, and the rule."""
_NATIVE_TYPES: Final = {bool: AttributeType.BOOLEAN, int: AttributeType.INTEGER, bytes: AttributeType.BINARY}


def validate(
    attributes: dict[str, AttributeValue],
    form_problems: Sequence[Problem] = (),
    unread: Iterable[str | None] = (),
) -> tuple[dict[str, AttributeValue], list[Problem]]:
    """Return attributes with their types, and all problems of an event, those of its form first.

    ``form_problems`` are the problems of how the attributes arrived, such as a repeated
    name. An attribute without a value that a form problem is about, or that ``unread``
    names, was sent but could not be read: it is not reported as missing, too.
    """
    table = current.table
    attributes = parse_values(attributes, table)
    lost = {*(problem.attribute for problem in form_problems), *unread} - attributes.keys()
    broken = [problem for problem in find_problems(attributes, table) if problem.attribute not in lost]
    return attributes, [*form_problems, *broken]


def find_repeats(names: Iterable[str]) -> list[Problem]:
    """Return a problem for each name that occurs more than once (N-05)."""
    names = tuple(names)
    if len(set(names)) == len(names):
        return []
    counts = Counter(names)
    return [Problem(name, "occurs more than once", "N-05") for name, count in counts.items() if count > 1]


def find_problems(
    attributes: Mapping[str, AttributeValue], table: ExtensionTable | None = None
) -> list[Problem]:
    """Return every broken rule of the core specification and of known extensions.

    The values are those of `extension_types.parse_values`. A valid event has no problem.
    """
    known = (table or current.table).extensions
    problems = [Problem(name, "is required", "R-01") for name in REQUIRED if name not in attributes]
    for name, value in attributes.items():
        extension = known.get(name)
        problem = (
            _find_problem(name, value)
            if extension is None
            else _find_extension_problem(name, value, extension, attributes)
        )
        if problem is not None:
            problems.append(problem)
    return problems + _find_missing(attributes, known)


def _find_missing(attributes: Mapping[str, AttributeValue], known: Mapping[str, Extension]) -> list[Problem]:
    """Return the attributes that present extensions need and that are missing, each once."""
    found: dict[str, Problem] = {}
    for name in attributes:
        extension = known.get(name)
        if extension is None:
            continue
        for other in extension.needs:
            if other not in attributes:
                found.setdefault(other, Problem(other, f"is required with {name}", extension.clause))
    return list(found.values())


_CORE_CLAUSES: Final = {
    "id": "R-02",
    "source": "R-04",
    "specversion": "R-05",
    "type": "R-06",
    "datacontenttype": "R-07",
    "dataschema": "R-11",
    "subject": "R-12",
    "time": "R-13",
}


def _find_problem(name: str, value: AttributeValue) -> Problem | None:
    if not is_name(name):
        return _name_problem(name)
    if name in _CORE_CLAUSES:
        return _core_problem(name, value)
    return find_type_problem(name, value, native_type(value))


def _find_extension_problem(
    name: str, value: AttributeValue, extension: Extension, attributes: Mapping[str, AttributeValue]
) -> Problem | None:
    problem = find_type_problem(name, value, extension.type)
    if problem is not None:
        return problem
    text = next((rule.text for rule in extension.rules if not rule.check(value, attributes)), None)
    return None if text is None else Problem(name, text, extension.clause, preview(value))


def _name_problem(name: str) -> Problem:
    if name == "data":
        return Problem("data", "must not be the name of an attribute", "N-04")
    if name == "":
        return Problem("", "an attribute name must have at least one character", "N-03", "''")
    return Problem(name, "an attribute name must have only a-z and 0-9", "N-01", preview(name))


def _core_problem(name: str, value: AttributeValue) -> Problem | None:
    clause = _CORE_CLAUSES[name]
    if value == "":
        return Problem(name, "must not be empty", clause, "''")
    if not isinstance(value, str):
        return Problem(name, "must be text", clause, preview(value))
    if name == "specversion" and value != SPECVERSION:
        return Problem(
            name, f"must be {SPECVERSION}; other versions are not supported", clause, preview(value)
        )
    if name == "datacontenttype" and is_string(value) and not media_type(value).valid:
        return Problem(name, "must be a media type of RFC 2046", clause, preview(value))
    return find_type_problem(name, value, type_of(name))


def native_type(value: object) -> AttributeType:
    """Return the type of an attribute with a value of this Python type: String for text and times."""
    return _NATIVE_TYPES.get(type(value), AttributeType.STRING)


def find_type_problem(name: str, value: object, kind: AttributeType) -> Problem | None:
    """Return the rule of its type that a value breaks, or None if it has the type."""
    check, clause, rule = _TYPES[kind]
    if isinstance(check, type):
        if type(value) is check and (check is not int or value in INTEGER_RANGE):
            return None
        clause = "T-04" if check is int and type(value) is int else clause
    elif isinstance(value, str):
        if not is_string(value):
            clause, rule = "T-06", _STRING_RULE
        elif check(value):
            return None
    elif not isinstance(value, bool | int | bytes):
        clause, rule = "T-01", "must be of one of the seven types"
    return Problem(name, rule, clause, preview(value))
