"""A fast check that accepts only valid events.

The function `accept` decides in one pass over the attributes whether they obey all rules. The module
`validation` finds the rules that invalid attributes break. Valid names, and valid values that occur in many
events, are cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes._uri import is_uri, is_uri_reference
from cloudevents_kafka.attributes.documented_extensions import NOT_EMPTY
from cloudevents_kafka.attributes.extension_types import ExtensionTable, current
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.timestamps import is_timestamp
from cloudevents_kafka.attributes.types import CORE, INTEGER_RANGE, SPECVERSION, is_name, is_string
from cloudevents_kafka.attributes.validation import has_type
from cloudevents_kafka.primitives.bounded import remember, remember_text

_sources: Final[dict[str, bool]] = {}
_schemas: Final[dict[str, bool]] = {}
_CORE: Final = frozenset(CORE)
_SCALARS: Final = frozenset((int, bool, bytes))
_write_json: Final = msgspec.json.Encoder().encode


def accept(  # a call by position is faster
    attributes: dict[str, Any],
    joined: str | None = None,
    valid_time: bool = False,  # noqa: FBT001, FBT002
) -> bool:
    """Return whether attributes obey all rules; convert texts of Booleans, Integers and Binaries to values.

    ``joined`` is the concatenation of the texts of all attributes. An empty ``joined`` means that all these
    texts are already known to be valid Strings (T-06). ``valid_time`` says whether ``time`` is known to be a
    valid timestamp. If the result is False, `validation.validate` finds the problems.
    """
    if joined is None:
        joined = join_texts(attributes)
        if joined is None:
            return False
    table = current.table
    return are_valid_texts(attributes, joined, valid_time) and (
        table.text_names.issuperset(attributes) or accept_names(attributes, table)
    )


def are_valid_texts(  # a call by position is faster
    attributes: Mapping[str, Any],
    joined: str,
    valid_time: bool = False,  # noqa: FBT001, FBT002
    valid_type: bool = False,  # noqa: FBT001, FBT002
) -> bool:
    """Return whether attributes obey the rules of the core specification.

    The arguments ``attributes``, ``joined`` and ``valid_time`` are the same as in `accept`. ``valid_type``
    says whether ``datacontenttype`` is known to be a valid media type. The function `accept_names` checks the
    names of the attributes and the rules of extensions.
    """
    # JSON escapes all ASCII control characters (T-06) except DEL; an escape makes the text longer.
    if joined and not (
        (joined.isascii() and len(_write_json(joined)) == len(joined) + 2 and "\x7f" not in joined)
        or is_string(joined)
    ):
        return False
    try:
        source = attributes["source"]
        return (
            attributes["specversion"] == SPECVERSION
            and "id" in attributes
            and "type" in attributes
            and (all(attributes.values()) or "" not in attributes.values() or _may_be_empty(attributes))
            and (source in _sources or _is_source(source))
            and (valid_time or "time" not in attributes or is_timestamp(attributes["time"]))
            and (
                valid_type
                or "datacontenttype" not in attributes
                or media_type(attributes["datacontenttype"]).valid
            )
            and ("dataschema" not in attributes or _is_schema(attributes["dataschema"]))
        )
    except KeyError:
        return False


def join_texts(attributes: dict[str, Any]) -> str | None:
    """Return the concatenated texts of all attributes, or None if a value of another type breaks a rule."""
    try:
        return "".join(attributes.values())
    except TypeError:
        texts = []
        for name, value in attributes.items():
            if type(value) is str:
                texts.append(value)
            elif not is_scalar(name, value):
                return None
        return "".join(texts)


def is_scalar(name: str, value: Any) -> bool:
    """Return whether a value that is not a text is valid for an attribute."""
    if name in _CORE or type(value) not in _SCALARS:
        return False
    extension = current.table.extensions.get(name)
    if extension is None:
        return type(value) is not int or value in INTEGER_RANGE
    return has_type(value, extension.type)


def _may_be_empty(attributes: Mapping[str, Any]) -> bool:
    """Return whether each empty attribute is an extension that accepts an empty text."""
    if "" not in attributes.values():
        return True
    known = current.table.extensions
    empty = [name for name, value in attributes.items() if value == ""]
    return not any(name in _CORE or (name in known and NOT_EMPTY in known[name].rules) for name in empty)


def _is_source(text: str) -> bool:
    return is_uri_reference(text) and remember(_sources, text, True)


def _is_schema(text: str) -> bool:
    return text in _schemas or (is_uri(text) and remember(_schemas, text, True))


def accept_names(attributes: dict[str, Any], table: ExtensionTable) -> bool:
    """Return whether the names of attributes are valid and the extensions obey their rules.

    Names of attributes without rules are cached.
    """
    text_names, checks = table.text_names, table.checks
    for name in attributes:
        if name in text_names:
            continue
        check = checks.get(name)
        if check is not None:
            if not check(attributes):
                return False
        elif is_name(name):
            remember_text(text_names, name)
        else:
            return False
    return True
