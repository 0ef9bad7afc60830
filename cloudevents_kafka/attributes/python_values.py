"""Convert Python values of users to attributes, find problems of attributes, and compare values."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.extension_types import current, type_of
from cloudevents_kafka.attributes.fast_validation import accept, accept_names, are_valid_texts, is_scalar
from cloudevents_kafka.attributes.timestamps import (
    from_datetime,
    instant,
    is_timestamp,
    to_datetime,
    utc_text,
)
from cloudevents_kafka.attributes.types import (
    NATIVE_TYPES,
    TYPES,
    AttributeType,
    AttributeValue,
    canonical_text,
    parse,
    to_attribute,
)
from cloudevents_kafka.attributes.validation import validate
from cloudevents_kafka.attributes.value_hints import find_class_problem, with_hint
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.problems import InvalidEvent, Problem

_BACKSLASH: Final = ord("\\")
_DEL: Final = 0x7F
_SCALARS: Final = frozenset((int, bool, bytes))
_TYPES: Final[dict[type, AttributeType]] = {
    str: AttributeType.STRING,
    **{python: row.kind for python, row in NATIVE_TYPES.items()},
    datetime: AttributeType.TIMESTAMP,
}
_write_json: Final = msgspec.json.Encoder().encode


def accept_values(attributes: dict[str, Any]) -> bool:
    """Convert attributes to canonical form, remove None values, and return whether the result is valid.

    The dictionary ``attributes`` is changed in place. If the result is False, the function `check_values`
    finds the problems of the attributes.
    """
    time = attributes.get("time")
    valid_time = False
    try:
        if type(time) is datetime:  # `from_datetime` has the same first line; a call takes longer
            attributes["time"] = utc_text(time) if time.tzinfo is UTC else from_datetime(time)
            valid_time = True
        for value in attributes.values():
            if type(value) is not str:
                if not _convert(attributes):
                    return False
                break
        written = _write_json(attributes)
    except (TypeError, ValueError, OverflowError):  # a name is not a text; a lone surrogate; no offset
        return False
    # JSON escapes all ASCII control characters (T-06) except DEL.
    if not written.isascii() or _BACKSLASH in written or _DEL in written:
        return accept(attributes, valid_time=valid_time)
    table = current.table
    return are_valid_texts(attributes, "", valid_time) and (
        table.text_names.issuperset(attributes) or accept_names(attributes, table)
    )


def _convert(attributes: dict[str, Any]) -> bool:
    """Convert attribute values to canonical form; return False if a value breaks a rule of its type."""
    constrained = current.table.constrained
    for name in [name for name, value in attributes.items() if type(value) is not str]:
        value = attributes[name]
        if value is None:
            del attributes[name]
            continue
        if type(value) not in _SCALARS:
            value = attributes[name] = to_attribute(value)
        # `accept` checks the values of the extensions that have rules.
        if type(value) is not str and name not in constrained and not is_scalar(name, value):
            return False
    return True


def check_values(attributes: dict[str, Any]) -> tuple[dict[str, AttributeValue], list[Problem]]:
    """Return attributes in canonical form, without None values, and all problems of the attributes.

    The function `accept_values` may already have changed the dictionary of attributes.
    """
    problems: list[Problem] = []
    values: dict[str, AttributeValue] = {}
    for name, value in attributes.items():
        if value is None:
            continue
        problem = find_class_problem(name, value)
        if problem is not None:
            problems.append(problem)
            continue
        try:
            values[name] = to_attribute(value)
        except ValueError as error:  # a datetime without an offset
            problems.append(Problem(name, str(error), "T-01"))
    values, problems = validate(values, problems)
    return values, [with_hint(problem, attributes) for problem in problems]


def is_same(name: str, left: AttributeValue, right: AttributeValue) -> bool:
    """Return whether two values of an attribute are equal; Timestamps are compared as instants."""
    if type(left) is type(right) and left == right:
        return True
    if type_of(name) is AttributeType.TIMESTAMP and isinstance(left, str) and isinstance(right, str):
        return is_timestamp(left) and is_timestamp(right) and instant(left) == instant(right)  # T-13
    return False


def value_as(name: str, value: AttributeValue, kind: type) -> Any:
    """Return the value of an attribute as a str, int, bool, bytes or datetime; convert a text.

    Raises `InvalidEvent` if the value cannot be converted to ``kind``, and `TypeError` if ``kind`` is not one
    of the five types.
    """
    if kind not in _TYPES:
        raise TypeError(f"the type of {name} must be str, int, bool, bytes or datetime, got {preview(kind)}")
    if kind is str or type(value) is kind:
        return canonical_text(value) if kind is str else value
    attribute_type = _TYPES[kind]
    if isinstance(value, str):
        with suppress(ValueError):
            if kind is not datetime:
                return parse(attribute_type, value)
            if is_timestamp(value):
                return to_datetime(value)
    rule = f"must be a value of the type {attribute_type.value}"
    raise InvalidEvent([Problem(name, rule, TYPES[attribute_type].clause, preview(value))])
