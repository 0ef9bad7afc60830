"""Hints for users who pass invalid values of attributes. A hint says which value to pass instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from urllib.parse import quote
from uuid import UUID

import msgspec

from cloudevents_kafka.attributes._uri import is_uri_reference
from cloudevents_kafka.attributes.types import is_name
from cloudevents_kafka.attributes.validation import CORE_CLAUSES
from cloudevents_kafka.primitives.plural import with_article
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.problems import Problem

_SHOWN: Final = (bool, int, float, bytes, date, Decimal, UUID)  # their `repr` raises no error
_RESERVED: Final = ":/?#[]@!$&'()*+,;=%"  # characters of a URI that stay as they are
_EXAMPLES: Final = {
    "specversion": "specversion='1.0', or nothing",
    "id": "id=str(uuid4())",
    "source": "source='/shop'",
    "type": "type='order.placed'",
    "datacontenttype": "datacontenttype='application/json'",
    "dataschema": "dataschema='https://example.com/order'",
    "subject": "subject='order-17'",
    "time": "a datetime with an offset, such as datetime.now(UTC), or a text such as '2026-01-31T12:00:00Z'",
}


_CORE_NAMES: Final = {  # wrong names of core attributes, with only letters, in lower case
    "contenttype": "datacontenttype",
    "datacontent": "datacontenttype",
    "datatype": "datacontenttype",
    "eventid": "id",
    "eventsource": "source",
    "eventsubject": "subject",
    "eventtime": "time",
    "eventtype": "type",
    "schema": "dataschema",
    "schemaurl": "dataschema",
    "dataschemaurl": "dataschema",
    "cloudeventsversion": "specversion",
}


def find_class_problem(name: str, value: Any) -> Problem | None:
    """Return a problem if an attribute cannot have a value of this Python class, otherwise None."""
    is_core = name in CORE_CLAUSES
    if isinstance(value, str | datetime) or (
        not is_core and isinstance(value, int | bytes | bytearray | memoryview)
    ):
        return None
    rule, clause = "must be a str, int, bool, bytes or datetime", "T-01"
    if is_core:
        rule = "must be a datetime or a text of RFC 3339" if name == "time" else "must be a str"
        clause = CORE_CLAUSES[name]
    got = preview(value) if isinstance(value, _SHOWN) else with_article(type(value).__name__)
    return Problem(name, rule, clause, got, _how_to_pass(name, value))


def _how_to_pass(name: str, value: Any) -> str:
    if name == "time" and isinstance(value, int | float):
        return f"pass datetime.fromtimestamp(…, UTC) for seconds, or {_EXAMPLES[name]}"
    if name in ("time", "specversion") or (name == "id" and isinstance(value, UUID)):
        return f"pass {_EXAMPLES[name]}"
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return "an attribute has one value; put several values into data"
    if isinstance(value, Enum):
        return f"pass {name}=….value"
    return f"pass {name}=….isoformat()" if isinstance(value, date) else f"pass {name}=str(…)"


def core_name(name: str) -> str | None:
    """Return the core attribute that a wrong name probably means, or None."""
    better = _letters_of(name)
    core = _CORE_NAMES.get(better, better)
    return core if core in _EXAMPLES else None


def _letters_of(name: str) -> str:
    """Return a name in lower case, with only the characters that an attribute name may have."""
    return re.sub("[^a-z0-9]", "", name.lower())


def _right_name(name: str) -> str | None:
    """Return a name to use instead of an invalid attribute name: a core attribute, or a similar name."""
    better = _letters_of(name)
    if better == "database64":
        return "pass data=bytes, which structured mode writes as base64"
    core = core_name(name)
    if core is not None:
        return f"write {core}, an attribute of the core"
    return f"write {better}" if is_name(better) else None


def _source_like(text: str) -> str:
    """Return an invalid source with its wrong characters escaped, or an example if it stays invalid."""
    escaped = re.sub("%(?![0-9A-Fa-f]{2})", "%25", quote(text, safe=_RESERVED))
    return f"source={preview(escaped)}" if is_uri_reference(escaped) else _EXAMPLES["source"]


def with_hint(problem: Problem, values: Mapping[str, Any]) -> Problem:
    """Return a problem with a hint about what to pass instead; without a hint, return the same problem."""
    name = problem.attribute or ""
    hint = problem.hint
    if hint is not None:
        return problem
    if problem.clause == "N-01":
        hint = _right_name(name)
    elif problem.clause == "T-04" and type(values.get(name)) is int:
        hint = f"pass {name}=str(…), because a text may have any length"
    elif name == "source" and problem.clause == "T-11" and isinstance(values.get(name), str):
        hint = f"pass {_source_like(values[name])}"
    elif name in _EXAMPLES:
        hint = f"pass {_EXAMPLES[name]}"
    return problem if hint is None else msgspec.structs.replace(problem, hint=hint)
