"""What is known of extension attributes: their types, and rules of their own.

The documented extensions are known from the start; `register_extension` adds those
of a user. An extension that nobody knows is a String when it is read from a header.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from threading import RLock
from typing import Final

import msgspec

from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED, Extension, Rule
from cloudevents_kafka.attributes.types import CORE, AttributeType, AttributeValue, is_name, parse
from cloudevents_kafka.errors import preview

registration_lock: Final = RLock()
"""Held by every change of what is registered, codecs and formats too, so that no thread undoes another's.

Readers do without it. It is reentrant: the function that makes a format may register others.
"""

_EVENT_TYPES: Final = {
    "source": AttributeType.URI_REFERENCE,
    "dataschema": AttributeType.URI,
    "time": AttributeType.TIMESTAMP,
}


class ExtensionTable(msgspec.Struct, frozen=True):
    """The known extensions at one moment; each registration creates another table.

    One event is validated by one table, since other threads may register meanwhile.
    ``constrained`` names the extensions that need more than any text. The table also
    caches names, which are checked again under the next table.
    """

    extensions: Mapping[str, Extension]
    registered: Mapping[str, Extension]
    constrained: frozenset[str]
    text_names: dict[str, bool]
    header_names: dict[str, str | None]


class _Current:
    """The holder of the current table."""

    __slots__ = ("table",)

    table: ExtensionTable


current: Final = _Current()


def register_extension(
    name: str,
    type: AttributeType,
    *,
    rule: str = "",
    accepts: Callable[[AttributeValue], bool] | None = None,
    needs: Collection[str] = (),
) -> None:
    """Make the type of an extension attribute known, in this process.

    From then on ``event[name]`` has that type wherever it was read from, and a value
    that is not of it, or that ``accepts`` turns down, by false or by an error, makes the
    event invalid; ``rule`` says what ``accepts`` asks for. So does the lack of an
    attribute that it ``needs`` beside it. To register a name again replaces what was
    known. `ValueError` for a bad name, also among those needed, `TypeError` for a ``type``
    that is none, and so on.
    """
    if not isinstance(name, str) or not is_name(name) or name in CORE:
        raise ValueError(f"{name!r} cannot name an extension: lower-case a-z and 0-9, and no core attribute")
    if not isinstance(type, AttributeType):
        raise TypeError(f"the type of {name} must be an AttributeType, such as AttributeType.STRING")
    if not (accepts is None or callable(accepts)) or not isinstance(rule, str):
        raise TypeError(f"for {name}, accepts must be a function of its value, and rule a text")
    if (
        isinstance(needs, str)
        or not isinstance(needs, Collection)
        or not all(isinstance(other, str) for other in needs)
    ):
        raise TypeError(f"for {name}, needs must be a list of names, not {preview(needs)}")
    if bad := [other for other in needs if not is_name(other)]:
        raise ValueError(
            f"{name} cannot need {preview(bad[0])}: no attribute has that name, only a-z and 0-9"
        )
    text = rule or "is not accepted by its extension's rule"
    rules = () if accepts is None else (Rule(text, partial(_is_accepted, accepts)),)
    with registration_lock:
        restore({**current.table.registered, name: Extension(type, rules, tuple(needs))})


def _is_accepted(accepts: Callable[[AttributeValue], bool], value: AttributeValue, _: object) -> bool:
    try:
        return accepts(value)
    except Exception:  # noqa: BLE001  # the user's function, called with what anybody sent: must not stop a loop
        return False


def registered() -> dict[str, Extension]:
    """Return the extensions that were registered."""
    return dict(current.table.registered)


def restore(extensions: Mapping[str, Extension]) -> None:
    """Have these extensions registered, and no others but the documented ones."""
    constrained = {name for name, extension in DOCUMENTED.items() if not extension.accepts_any_text}
    with registration_lock:
        current.table = ExtensionTable(
            {**DOCUMENTED, **extensions},
            dict(extensions),
            frozenset(constrained | extensions.keys()),
            {},
            {},
        )


def type_of(name: str, table: ExtensionTable | None = None) -> AttributeType:
    """Return the type of an attribute: String where nothing else is known."""
    if name in CORE:
        return _EVENT_TYPES.get(name, AttributeType.STRING)
    extension = (table or current.table).extensions.get(name)
    return AttributeType.STRING if extension is None else extension.type


def find_extension(name: str) -> Extension | None:
    """Return what is known of an extension attribute."""
    return current.table.extensions.get(name)


def extension_names() -> frozenset[str]:
    """Return the names of all extensions that something is known of."""
    return frozenset(current.table.extensions)


def constrained_names() -> frozenset[str]:
    """Return the names of the extensions that are more than just texts, which may or may not be empty."""
    return current.table.constrained


def parse_value(name: str, value: AttributeValue, table: ExtensionTable | None = None) -> AttributeValue:
    """Turn the canonical text of a Boolean, Integer or Binary into its value.

    A text that does not fit stays as it is, for `find_problems` to report.
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
    """Give the attributes of known type their type; the dict itself, where none needs it."""
    table = table or current.table
    if table.constrained.isdisjoint(attributes):
        return attributes
    return {name: parse_value(name, value, table) for name, value in attributes.items()}


restore({})
