"""What is known of extension attributes: their types, and rules of their own.

The documented extensions are known from the start; `register_extension` adds those
of a user. An extension that nobody knows is a String when it is read from a header.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final

import msgspec

from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED, Extension, Rule
from cloudevents_kafka.attributes.types import CORE, AttributeType, AttributeValue, is_name, parse
from cloudevents_kafka.errors import shown
from cloudevents_kafka.registration import registering

_EVENT_TYPES: Final = {
    "source": AttributeType.URI_REFERENCE,
    "dataschema": AttributeType.URI,
    "time": AttributeType.TIMESTAMP,
}


class Known(msgspec.Struct, frozen=True):
    """What is known of extensions at a moment: a registration makes another.

    Who judges an event does it all by one of these, as other threads may register meanwhile.
    ``ruled`` names what a quick look cannot settle: all but the plain texts. What was
    remembered of names stands here too, and goes when it may no longer hold.
    """

    extensions: Mapping[str, Extension]
    registered: Mapping[str, Extension]
    ruled: frozenset[str]
    plain: set[str]
    headers: dict[str, str | None]


class Now:
    """What is known of extensions now: taken once for a reading."""

    __slots__ = ("known",)

    known: Known


now: Final = Now()


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
        raise TypeError(f"for {name}, needs must be a list of names, not {shown(needs)}")
    if bad := [other for other in needs if not is_name(other)]:
        raise ValueError(f"{name} cannot need {shown(bad[0])}: no attribute has that name, only a-z and 0-9")
    text = rule or "is not accepted by its extension's rule"
    rules = () if accepts is None else (Rule(text, partial(_is_accepted, accepts)),)
    with registering:
        restore({**now.known.registered, name: Extension(type, rules, tuple(needs))})


def _is_accepted(accepts: Callable[[AttributeValue], bool], value: AttributeValue, _: object) -> bool:
    try:
        return accepts(value)
    except Exception:  # noqa: BLE001  # the user's function, called with what anybody sent: must not stop a loop
        return False


def registered() -> dict[str, Extension]:
    """Return the extensions that were registered."""
    return dict(now.known.registered)


def restore(extensions: Mapping[str, Extension]) -> None:
    """Have these extensions registered, and no others but the documented ones."""
    ruled = {name for name, extension in DOCUMENTED.items() if not extension.plain} | extensions.keys()
    with registering:
        now.known = Known({**DOCUMENTED, **extensions}, dict(extensions), frozenset(ruled), set(), {})


def type_of(name: str, at: Known | None = None) -> AttributeType:
    """Return the type of an attribute: String where nothing else is known."""
    if name in CORE:
        return _EVENT_TYPES.get(name, AttributeType.STRING)
    known = (at or now.known).extensions.get(name)
    return AttributeType.STRING if known is None else known.type


def known(name: str) -> Extension | None:
    """Return what is known of an extension attribute."""
    return now.known.extensions.get(name)


def known_names() -> frozenset[str]:
    """Return the names of all extensions that something is known of."""
    return frozenset(now.known.extensions)


def ruled() -> frozenset[str]:
    """Return the names of the extensions that are more than just texts, which may or may not be empty."""
    return now.known.ruled


def typed(name: str, value: AttributeValue, at: Known | None = None) -> AttributeValue:
    """Turn the canonical text of a Boolean, Integer or Binary into its value.

    A text that does not fit stays as it is, for `find_problems` to report.
    """
    if not isinstance(value, str):
        return value
    try:
        return parse(type_of(name, at), value)
    except ValueError:
        return value


def with_types(attributes: dict[str, AttributeValue], at: Known | None = None) -> dict[str, AttributeValue]:
    """Give the attributes of known type their type; the dict itself, where none needs it."""
    at = at or now.known
    if at.ruled.isdisjoint(attributes):
        return attributes
    return {name: typed(name, value, at) for name, value in attributes.items()}


restore({})
