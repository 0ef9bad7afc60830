"""The check that every valid event passes, and no other.

`accept` decides in one pass whether attributes keep all rules; `validation` names the rules
that others break. Valid names and values that many events share are cached.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes._uri import is_uri, is_uri_reference
from cloudevents_kafka.attributes.documented_extensions import NOT_EMPTY, Extension
from cloudevents_kafka.attributes.extension_types import ExtensionTable, current
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.timestamps import is_timestamp
from cloudevents_kafka.attributes.types import (
    CORE,
    INTEGER_RANGE,
    PARSERS,
    SPECVERSION,
    AttributeType,
    is_name,
    is_string,
)
from cloudevents_kafka.attributes.validation import has_type
from cloudevents_kafka.primitives.bounded import remember, remember_text

_sources: Final[dict[str, bool]] = {}
_schemas: Final[dict[str, bool]] = {}
_CORE: Final = frozenset(CORE)
_SCALARS: Final = frozenset((int, bool, bytes))
_write_json: Final = msgspec.json.Encoder().encode


def accept(attributes: dict[str, Any], joined: str | None = None, *, valid_time: bool = False) -> bool:
    """Return whether attributes keep all rules; texts of known types become their values.

    ``joined`` are all texts together; it is empty if they are known to be Strings (T-06).
    ``valid_time`` is whether ``time`` is known to be a timestamp. If the result is False,
    `validation.validate` finds the problems.
    """
    if joined is None:
        joined = join_texts(attributes)
        if joined is None:
            return False
    table = current.table
    return are_valid_texts(attributes, joined, valid_time=valid_time) and (
        table.text_names.issuperset(attributes) or accept_names(attributes, table)
    )


def are_valid_texts(attributes: dict[str, Any], joined: str, *, valid_time: bool = False) -> bool:
    """Return whether attributes keep the rules of the core specification.

    The arguments are those of `accept`. `accept_names` checks names and extensions.
    """
    # JSON escapes all ASCII control characters (T-06) except DEL, which makes the text longer.
    if joined and not (
        len(_write_json(joined)) == len(joined) + 2 and "\x7f" not in joined
        if joined.isascii() and "\\" not in joined and '"' not in joined
        else is_string(joined)
    ):
        return False
    try:
        source = attributes["source"]
        return (
            attributes["specversion"] == SPECVERSION
            and "id" in attributes
            and "type" in attributes
            and (all(attributes.values()) or _may_be_empty(attributes))
            and (source in _sources or _is_source(source))
            and (valid_time or "time" not in attributes or is_timestamp(attributes["time"]))
            and ("datacontenttype" not in attributes or media_type(attributes["datacontenttype"]).valid)
            and ("dataschema" not in attributes or _is_schema(attributes["dataschema"]))
        )
    except KeyError:
        return False


def join_texts(attributes: dict[str, Any]) -> str | None:
    """Return all texts together, or None if a value of another type breaks a rule."""
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
    """Return whether a value that is not a text may be the value of an attribute."""
    if name in _CORE or type(value) not in _SCALARS:
        return False
    extension = current.table.extensions.get(name)
    if extension is None:
        return type(value) is not int or value in INTEGER_RANGE
    return has_type(value, extension.type)


def _may_be_empty(attributes: dict[str, Any]) -> bool:
    """Return whether no empty text is an attribute of the core, or an extension that must not be empty."""
    known = current.table.extensions
    empty = [name for name, value in attributes.items() if value == ""]
    return not any(name in _CORE or (name in known and NOT_EMPTY in known[name].rules) for name in empty)


def _is_source(text: str) -> bool:
    return is_uri_reference(text) and remember(_sources, text, True)


def _is_schema(text: str) -> bool:
    return text in _schemas or (is_uri(text) and remember(_schemas, text, True))


def accept_names(attributes: dict[str, Any], table: ExtensionTable) -> bool:
    """Return whether names are valid and extensions keep their rules; cache names of any text."""
    for name in attributes.keys() - table.text_names:
        if name in table.constrained:
            if not _keeps_rules(attributes, name, table.extensions[name]):
                return False
        elif not is_name(name):
            return False
        else:
            remember_text(table.text_names, name)
    return True


def _keeps_rules(attributes: dict[str, Any], name: str, extension: Extension) -> bool:
    """Return whether an extension keeps its rules; a text becomes the value of its type."""
    value = attributes[name]
    if type(value) is not str or extension.type is not AttributeType.STRING:
        if type(value) is str and extension.type in PARSERS:
            try:
                value = attributes[name] = PARSERS[extension.type](value)
            except ValueError:
                return False
        if not has_type(value, extension.type):
            return False
    for rule in extension.rules:
        if not rule.check(value, attributes):
            return False
    return not extension.needs or all(map(attributes.__contains__, extension.needs))
