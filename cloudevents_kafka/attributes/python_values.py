"""Attributes from the Python values that users pass: canonical forms and problems."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.fast_validation import accept, is_scalar
from cloudevents_kafka.attributes.timestamps import from_datetime
from cloudevents_kafka.attributes.types import to_attribute
from cloudevents_kafka.attributes.validation import validate
from cloudevents_kafka.errors import Problem

_BACKSLASH: Final = ord("\\")
_DEL: Final = 0x7F
_write_json: Final = msgspec.json.Encoder().encode


def check_values(attributes: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Return attributes with values in canonical form, without nulls, and their problems.

    The dictionary is changed, and may be the one that is returned.
    """
    problems: list[Problem] = []
    time = attributes.get("time")
    valid_time = False
    if type(time) is datetime:
        try:
            attributes["time"] = from_datetime(time)
            valid_time = True
        except ValueError:
            pass  # `_to_values` adds the problem
    valid = True
    for value in attributes.values():
        if type(value) is not str:
            valid = _to_values(attributes, problems)
            break
    if valid and _accept(attributes, valid_time=valid_time):
        return attributes, problems
    return validate(attributes, problems)


def _accept(attributes: dict[str, Any], *, valid_time: bool) -> bool:
    """Return whether attributes with values in canonical form keep all rules."""
    try:
        written = _write_json(attributes)
    except (TypeError, ValueError, OverflowError):  # a name is not a text; a lone surrogate
        return accept(attributes, valid_time=valid_time)
    # JSON escapes all ASCII control characters (T-06) except DEL.
    is_plain = written.isascii() and _BACKSLASH not in written and _DEL not in written
    return accept(attributes, "" if is_plain else None, valid_time=valid_time)


def _to_values(attributes: dict[str, Any], problems: list[Problem]) -> bool:
    """Bring values into canonical form, without nulls, and return whether `_accept` can decide.

    Add the problems of values that have no canonical form, and remove these.
    """
    valid = True
    for name in [name for name, value in attributes.items() if type(value) is not str]:
        valid &= _to_value(attributes, name, problems)
    return valid


def _to_value(attributes: dict[str, Any], name: str, problems: list[Problem]) -> bool:
    """Bring one value into canonical form, and return whether its attribute may have this type."""
    value = attributes[name]
    try:
        if type(value) is datetime:
            attributes[name] = from_datetime(value)
            return True
        if value is not None:
            value = attributes[name] = to_attribute(value)
            # `accept` checks the values of the extensions that have rules.
            return type(value) is str or name in current.table.constrained or is_scalar(name, value)
    except ValueError as error:
        problems.append(Problem(name, str(error), "T-01"))
    del attributes[name]
    return value is None
