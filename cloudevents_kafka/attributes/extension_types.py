"""The known extension attributes with their types and rules.

The documented extensions of CloudEvents are always known. `register_extension` adds further extensions. If an
unknown extension is read from a header, its type is String.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED, Extension, Rule
from cloudevents_kafka.attributes.extension_checks import Check, check_of
from cloudevents_kafka.attributes.types import (
    CORE,
    CORE_TYPES,
    TYPES,
    AttributeType,
    AttributeValue,
    is_name,
    parse,
)
from cloudevents_kafka.primitives.locks import registration_lock
from cloudevents_kafka.primitives.preview import preview

_DOCUMENTED_CHECKS: Final = {
    name: check_of(name, extension)
    for name, extension in DOCUMENTED.items()
    if not extension.accepts_any_text
}


class ExtensionTable(msgspec.Struct, frozen=True):
    """All extensions that are known at one moment. Each registration of an extension creates a new table.

    The validation of an event uses the same table from start to end, because other threads may register
    extensions at the same time. ``constrained`` contains the names of the extensions that have rules.
    ``checks`` maps each of these names to the function that checks the extension. The table also caches the
    names of headers and attributes. A new table starts with empty caches. ``header_names`` maps the name of a
    header to the name of its attribute, or to None if the attribute has rules. ``header_checks`` contains
    only headers whose attribute has rules. It maps the name of the header to the name of the attribute and
    the function that checks the attribute. ``corrections`` maps the name of an attribute to a dictionary of
    corrections. Such a dictionary maps an invalid text of the attribute to the correction of the text.
    """

    extensions: Mapping[str, Extension]
    registered: Mapping[str, Extension]
    constrained: frozenset[str]
    checks: Mapping[str, Check]
    text_names: set[str]
    header_names: dict[str, str | None]
    header_checks: dict[str, tuple[str, Check]]
    corrections: dict[str, dict[str, Any]] = {}


class _Current:
    """Stores the current `ExtensionTable` of this process."""

    __slots__ = ("table",)

    table: ExtensionTable


current: Final = _Current()


def register_extension(
    name: str,
    type: AttributeType,
    *,
    rule: str = "",
    accepts: Callable[[Any], bool] | None = None,
    needs: Collection[str] = (),
) -> None:
    """Register the type of an extension attribute in this process.

    After the registration, ``event[name]`` has the registered type in events of every mode and format. An
    event is invalid if the value has a different type, if the function ``accepts`` returns false or raises an
    exception, or if one of the attributes in ``needs`` is missing. In error messages, the text ``rule``
    describes the values that the function ``accepts`` allows. Registering a name again replaces the earlier
    registration of the name. Raises `ValueError` if the name or a name in ``needs`` is invalid, and
    `TypeError` if an argument has a wrong type.

    Examples:
        >>> from cloudevents_kafka import AttributeType, Event, InvalidEvent, register_extension
        >>> register_extension("tries", AttributeType.INTEGER, rule="must be above 0", accepts=bool)
        >>> try:
        ...     Event(id="1", source="/shop", type="order.placed", tries=0)
        ... except InvalidEvent as error:
        ...     print(error.problems[0].rule)
        must be above 0
    """
    if not isinstance(name, str) or not is_name(name) or name in CORE:
        raise ValueError(
            f"the name of an extension must have only a-z and 0-9, and not be a core attribute, got {name!r}"
        )
    if not isinstance(type, AttributeType):
        raise TypeError(f"the type of {name} must be an AttributeType, got {preview(type)}")
    if not (accepts is None or callable(accepts)) or not isinstance(rule, str):
        raise TypeError(f"for {name}, accepts must be a function of the value, and rule must be a str")
    is_list = isinstance(needs, Collection) and not isinstance(needs, str)
    if not is_list or not all(isinstance(needed, str) for needed in needs):
        raise TypeError(f"for {name}, needs must be a list of names, got {preview(needs)}")
    if invalid := [needed for needed in needs if not is_name(needed)]:
        raise ValueError(
            f"for {name}, needs must have attribute names of a-z and 0-9, got {preview(invalid[0])}"
        )
    text = rule or "must be accepted by the registered rule"
    rules = () if accepts is None else (Rule(text, partial(_is_accepted, accepts)),)
    with registration_lock:
        restore({**current.table.registered, name: Extension(type, rules, tuple(needs))})


def _is_accepted(accepts: Callable[[Any], bool], value: AttributeValue, _: object) -> bool:
    try:
        return accepts(value)
    except Exception:  # noqa: BLE001  # a user's function with untrusted input must not stop a loop
        return False


def registered() -> dict[str, Extension]:
    """Return the extensions that users registered, as a dictionary from names to extensions."""
    return dict(current.table.registered)


def restore(extensions: Mapping[str, Extension]) -> None:
    """Register ``extensions`` in place of all extensions that users registered before."""
    known = {**DOCUMENTED, **extensions}
    checks = {name: check for name, check in _DOCUMENTED_CHECKS.items() if name in known}
    checks |= {name: check_of(name, extension) for name, extension in extensions.items()}
    with registration_lock:
        current.table = ExtensionTable(
            extensions=known,
            registered=dict(extensions),
            constrained=frozenset(checks),
            checks=checks,
            text_names=set(CORE),
            header_names={},
            header_checks={},
        )


def type_of(name: str, table: ExtensionTable | None = None) -> AttributeType:
    """Return the type of an attribute; the type of an unknown attribute is String."""
    if name in CORE:
        return CORE_TYPES.get(name, AttributeType.STRING)
    extension = (table or current.table).extensions.get(name)
    return AttributeType.STRING if extension is None else extension.type


def find_extension(name: str) -> Extension | None:
    """Return the type and rules of an extension, or None if the extension is unknown."""
    return current.table.extensions.get(name)


def parse_value(name: str, value: AttributeValue, table: ExtensionTable | None = None) -> AttributeValue:
    """Return the value that the canonical text of an attribute represents.

    A malformed text of a Boolean, an Integer or a Binary is returned unchanged, and `find_problems` reports
    this text. Values that are not texts are also returned unchanged.
    """
    if not isinstance(value, str):
        return value
    try:
        return parse(type_of(name, table), value)
    except ValueError:
        return value


def parse_values(
    attributes: dict[str, AttributeValue], table: ExtensionTable | None = None
) -> dict[str, AttributeValue]:
    """Return a copy of attributes in which typed values replace the texts of extensions that have rules.

    If none of the attributes has rules, the dictionary ``attributes`` itself is returned.
    """
    table = table or current.table
    constrained = table.constrained & attributes.keys()
    if not constrained:
        return attributes
    values = dict(attributes)
    for name in constrained:
        value = attributes[name]
        parser = TYPES[table.extensions[name].type].parse
        if parser is not None and isinstance(value, str):
            with suppress(ValueError):  # `find_problems` reports it
                values[name] = parser(value)
    return values


restore({})
