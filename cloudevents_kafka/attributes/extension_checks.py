"""Checks of extension attributes; each check is a function that this module builds once for an attribute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cloudevents_kafka.attributes.documented_extensions import Attributes, Extension
from cloudevents_kafka.attributes.types import INTEGER_RANGE, TYPES, AttributeValue

Check = Callable[[dict[str, Any]], bool]
"""A function that returns whether an attribute of an event obeys its rules.

The function replaces the text of a Boolean, an Integer or a Binary by the typed value. Texts must be valid
Strings (T-06).
"""


def check_of(name: str, extension: Extension) -> Check:
    """Return a function that checks whether an event's value of this extension attribute obeys all rules."""
    rules = (*(rule.check for rule in extension.rules), *map(_has, extension.needs))
    row = TYPES[extension.type]
    parser, is_valid, class_ = row.parse, row.accepts, row.python

    def check(attributes: dict[str, Any]) -> bool:
        value = attributes[name]
        if type(value) is not str:
            if type(value) is not class_ or (class_ is int and value not in INTEGER_RANGE):
                return False
        elif parser is not None:
            try:
                value = attributes[name] = parser(value)
            except ValueError:
                return False
        elif is_valid is not None and not is_valid(value):
            return False
        for rule in rules:  # noqa: SIM110  # a generator would take longer
            if not rule(value, attributes):
                return False
        return True

    return check


def _has(needed: str) -> Callable[[AttributeValue, Attributes], bool]:
    """Return a function that checks whether an event has the attribute ``needed``."""
    return lambda _, attributes: needed in attributes
