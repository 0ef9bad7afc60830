"""The rules for the attributes of an event, and functions that find the problems of attributes.

The module `fast_validation` decides whether attributes have problems, and this module finds the problems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from cloudevents_kafka.attributes.documented_extensions import NOT_EMPTY, Extension
from cloudevents_kafka.attributes.extension_types import (
    ExtensionTable,
    current,
    parse_value,
    parse_values,
    type_of,
)
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import (
    CORE_TYPES,
    INTEGER_RANGE,
    NATIVE_TYPES,
    REQUIRED,
    SPECVERSION,
    TYPES,
    AttributeType,
    AttributeValue,
    is_name,
    is_string,
)
from cloudevents_kafka.primitives.bounded import remember_text
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.problems import Problem

_RULED: Final[dict[str, Callable[[str], bool]]] = {
    "specversion": SPECVERSION.__eq__,
    "datacontenttype": lambda text: media_type(text).valid,
    **{name: accepts for name, kind in CORE_TYPES.items() if (accepts := TYPES[kind].accepts) is not None},
}
"""The core attributes that have rules; each is mapped to a function that checks a printable text."""
_REQUIRED: Final = frozenset(REQUIRED)
CORE_CLAUSES: Final = {
    "id": "R-02",  # "MUST be a non-empty string", as R-06; apply "If present"
    "source": "R-04",  # "MUST be a non-empty URI-reference"
    "specversion": "R-05",  # "producers MUST use a value of `1.0`"
    "type": "R-06",
    "datacontenttype": "R-07",  # "MUST adhere to the format specified in RFC 2046"
    "dataschema": "R-11",  # "MUST be a non-empty URI"
    "subject": "R-12",
    "time": "R-13",  # "MUST adhere to the format specified in RFC 3339"
}


def validate(
    attributes: dict[str, AttributeValue],
    form_problems: Sequence[Problem] = (),
    unreadable: Iterable[str | None] = (),
) -> tuple[dict[str, AttributeValue], list[Problem]]:
    """Convert the attributes of an event to values of their types; return the values and all problems.

    ``form_problems`` lists problems with the structure of the record or value, such as a repeated name. The
    result lists these problems first. An absent attribute is not reported as missing if ``form_problems`` or
    ``unreadable`` contains its name, because such an attribute was sent in a wrong form.
    """
    table = current.table
    attributes = parse_values(attributes, table)
    if not form_problems:
        return attributes, find_problems(attributes, table)
    sent = {*(problem.attribute for problem in form_problems), *unreadable} - attributes.keys()
    broken = [problem for problem in find_problems(attributes, table) if problem.attribute not in sent]
    return attributes, [*form_problems, *broken]


def find_repeats(names: Iterable[str]) -> list[Problem]:
    """Return a problem for each name in ``names`` that occurs more than once."""
    names = tuple(names)
    if len(set(names)) == len(names):
        return []
    # N-05: "MUST only appear at most once in a CloudEvent"
    counts = Counter(names)
    return [Problem(name, "occurs more than once", "N-05") for name, count in counts.items() if count > 1]


def find_problems(
    attributes: Mapping[str, AttributeValue], table: ExtensionTable | None = None
) -> list[Problem]:
    """Return a problem for each broken rule of the core specification and of known extensions.

    The dictionary ``attributes`` must be the result of `extension_types.parse_values`. For a valid event, the
    list of problems is empty.
    """
    table = table or current.table
    known, text_names = table.extensions, table.text_names
    # "REQUIRED to be present in all CloudEvents"
    problems: list[Problem] = []
    if not attributes.keys() >= _REQUIRED:
        problems += [Problem(name, "is required", "R-01") for name in REQUIRED if name not in attributes]
    missing: dict[str, Problem] = {}  # by name: several extensions may need one attribute
    for name, value in attributes.items():
        if name in text_names and type(value) is str and value and value.isprintable():
            is_valid = _RULED.get(name)
            if is_valid is None or is_valid(value):
                continue  # the most frequent attributes
        extension = known.get(name)
        if extension is None:
            problem = _find_problem(name, value)
            if problem is None:
                remember_text(text_names, name)
        else:
            problem = _find_extension_problem(name, value, extension, attributes)
            for needed in extension.needs:
                if needed not in attributes:
                    missing.setdefault(needed, Problem(needed, f"is required with {name}", extension.clause))
        if problem is not None:
            problems.append(problem)
    return [*problems, *missing.values()]


def _find_problem(name: str, value: AttributeValue) -> Problem | None:
    if name in CORE_CLAUSES:
        return _core_problem(name, value)
    if not is_name(name):
        return name_problem(name)
    return find_type_problem(name, value, native_type(value))


def _find_extension_problem(
    name: str, value: AttributeValue, extension: Extension, attributes: Mapping[str, AttributeValue]
) -> Problem | None:
    problem = find_type_problem(name, value, extension.type)
    if problem is not None:
        return problem
    text = next((rule.text for rule in extension.rules if not rule.check(value, attributes)), None)
    return None if text is None else Problem(name, text, extension.clause, preview(value))


def find_correction(name: str, text: str) -> AttributeValue | None:
    """Return the value that the text of an attribute represents, or None if the text breaks a rule."""
    value = parse_value(name, text)
    extension = current.table.extensions.get(name)
    if extension is None:
        problem = _find_problem(name, value)
    else:
        problem = _find_extension_problem(name, value, extension, {name: value})
    return value if problem is None else None


def name_problem(name: str) -> Problem:
    """Return the problem of a name that is not a valid attribute name."""
    if name == "data":  # N-04: "this name is reserved as it is used"
        return Problem("data", "must not be the name of an attribute", "N-04")
    if name == "":
        return Problem("", "an attribute name must have at least one character", "N-03", "''")
    # N-01: "lower-case letters ('a' to 'z') or digits"
    return Problem(name, "an attribute name must have only a-z and 0-9", "N-01", preview(name))


def _core_problem(name: str, value: AttributeValue) -> Problem | None:
    clause = CORE_CLAUSES[name]
    if value == "":
        rule = NOT_EMPTY.text
    elif not isinstance(value, str):
        rule = "must be text"
    elif name == "specversion" and value != SPECVERSION:
        rule = f"must be {SPECVERSION}; other versions are not supported"
    elif name == "datacontenttype" and is_string(value) and not media_type(value).valid:
        rule = "must be a media type of RFC 2046"
    else:
        return find_type_problem(name, value, type_of(name))
    return Problem(name, rule, clause, preview(value))


def native_type(value: object) -> AttributeType:
    """Return the attribute type of values with a Python type. The result is String for texts and times."""
    row = NATIVE_TYPES.get(type(value))
    return AttributeType.STRING if row is None else row.kind


def has_type(value: object, attribute_type: AttributeType) -> bool:
    """Return whether a value has the attribute type; a value that is a text must also be a valid String."""
    row = TYPES[attribute_type]
    if row.python is not str:
        return type(value) is row.python and (row.python is not int or value in INTEGER_RANGE)
    return isinstance(value, str) and is_string(value) and (row.accepts is None or row.accepts(value))


def find_type_problem(name: str, value: object, attribute_type: AttributeType) -> Problem | None:
    """Return the problem of a value that does not have an attribute type, or None if it has the type."""
    if has_type(value, attribute_type):
        return None
    row = TYPES[attribute_type]
    clause, rule = row.clause, row.rule
    if row.python is int and type(value) is int:
        clause = "T-04"
    elif row.python is str and isinstance(value, str) and not is_string(value):
        clause, rule = TYPES[AttributeType.STRING].clause, TYPES[AttributeType.STRING].rule
    elif row.python is str and not isinstance(value, str | bool | int | bytes):
        clause, rule = "T-01", "must be of one of the seven types"  # "MUST be of one of the types listed"
    return Problem(name, rule, clause, preview(value))
