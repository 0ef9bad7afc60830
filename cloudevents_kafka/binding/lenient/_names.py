"""Names of JSON members in other letters, as lenient reading accepts them."""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.types import is_name
from cloudevents_kafka.attributes.validation import name_problem
from cloudevents_kafka.binding.lenient._headers import Report, mark_ignored
from cloudevents_kafka.binding.lenient.rules import MEMBER
from cloudevents_kafka.errors import Problem
from cloudevents_kafka.primitives.bounded import remember

_Renaming = tuple[tuple[str, ...], tuple[Problem, ...], tuple[Problem, ...]]


class _Renamings(dict[tuple[str, ...], _Renaming | None]):
    """A cache from the names of members to a renaming, None if two names differ only in case.

    A renaming has the names in lower case, the problems of upper-case letters, and those of ignored members.
    """

    def __missing__(self, names: tuple[str, ...]) -> _Renaming | None:
        renaming = _renaming_of(names)
        is_short = len(names) <= _MOST_NAMES and max(map(len, names), default=0) <= _LONGEST_NAME
        return remember(self, names, renaming, _MOST_NAMES) if is_short else renaming


_MOST_NAMES: Final = 64  # members of a renaming that is cached, and cached renamings
_LONGEST_NAME: Final = 64
_renamings: Final = _Renamings()


def _renaming_of(names: tuple[str, ...]) -> _Renaming | None:
    given, taken = set(names), set(names)
    renamed: list[str] = []
    misspelled: list[Problem] = []
    ignored: list[Problem] = []
    for name in names:
        renamed.append(name)
        if is_name(name):
            continue
        lower = lower_name(name)
        if not is_name(lower) or lower in given:
            ignored.append(mark_ignored(name_problem(name)))
        elif lower in taken:
            return None  # they may be ambiguous
        else:
            taken.add(lower)
            renamed[-1] = lower
            misspelled.append(Problem(name, MEMBER[0] + lower, MEMBER[1]))
    return tuple(renamed), tuple(misspelled), tuple(ignored)


def correct_names(members: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]] | None:
    """Return the members with valid names, and the accepted problems: those of upper-case letters first.

    Return None if two names differ only in case.
    """
    renaming = _renamings[tuple(members)]
    if renaming is None:
        return None
    names, misspelled, ignored = renaming
    if not (misspelled or ignored):
        return members, []
    named = dict(zip(names, members.values(), strict=True))
    for problem in ignored:
        del named[str(problem.attribute)]
    return named, [*misspelled, *ignored]


def lower_case_names(members: dict[str, Any], report: Report) -> dict[str, Any]:
    """Return members with their names in lower case if that makes these valid and unique."""
    text_names = current.table.text_names
    named: dict[str, Any] = {}
    for name, value in members.items():
        if name in text_names or is_name(name):
            named[name] = value
            continue
        lower = lower_name(name)
        if not is_name(lower) or lower in members:
            named[name] = value
        elif lower in named and not _is_same_scalar(named[lower], value):
            rule = f"is one of several members for {lower} that differ"
            report.refused.append(Problem(name, rule, "N-01"))
        else:
            report.tolerated.append(Problem(name, MEMBER[0] + lower, MEMBER[1]))
            named[lower] = value
    return named


def lower_name(name: str) -> str:
    """Return an ASCII name in lower case, ``""`` for other names."""
    return name.lower() if name.isascii() else ""


def _is_same_scalar(left: Any, right: Any) -> bool:
    """Return whether two scalars are equal; a nested value may be too deep to compare."""
    return type(left) is type(right) and not isinstance(left, dict | list) and bool(left == right)
