"""Cases in one test: a loop that runs each of them, and fails with the names of all that fail.

pytest collects, schedules and reports each case of a parametrized test for itself, in each of its
processes, which takes longer than most cases do. A case in a loop costs nothing of that. Subtests of
pytest cost half of it, as each of them is reported to the process that collects the results.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import wraps
from traceback import TracebackException
from typing import Any, Final, TypeVar

import pytest

from tests.support.time_limits import TimedOut

_Case = TypeVar("_Case")

IN_FULL: Final = 20  # failures with their traceback; each other one has a line
_LINE: Final = 300  # characters
_STOPS: Final = (KeyboardInterrupt, pytest.exit.Exception, TimedOut)
"""What ends a test, or the run, whichever case it reaches."""


def check_each(
    cases: Mapping[str, _Case] | Iterable[tuple[str, _Case]], check: Callable[[_Case], object]
) -> None:
    """Check each case; fail with the name and the error of each one that fails, or if there are none.

    A case that skips has failed, since the others of its test cannot be reported as skipped.
    """
    __tracebackhide__ = True
    number = 0
    failures: list[tuple[str, TracebackException]] = []
    for number, (name, case) in enumerate(_named(cases), 1):
        try:
            check(case)
        except _STOPS as error:
            error.add_note(f"in the case {name}, after {number - 1} others{_listed(failures)}")
            raise
        except BaseException as error:  # noqa: BLE001  # pytest's own failures and SystemExit are none other
            failures.append((name, _traceback(error)))
    if not number:
        pytest.fail("there must be cases", pytrace=False)
    if failures:
        text = f"{len(failures)} of {number} cases failed{_listed(failures)}{_in_full(failures)}"
        pytest.fail(text.encode("utf-8", "backslashreplace").decode(), pytrace=False)


def _named(cases: Mapping[str, _Case] | Iterable[tuple[str, _Case]]) -> Iterator[tuple[str, _Case]]:
    """Yield the cases; one with the name of an earlier one has a number after it."""
    seen: Counter[str] = Counter()
    for name, case in cases.items() if isinstance(cases, Mapping) else cases:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} #{seen[name]}", case


def _traceback(error: BaseException) -> TracebackException:
    """Return the traceback of an error, which holds no objects of the case, from the check on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return TracebackException(type(error), error, frames)


def _listed(failures: Collection[tuple[str, TracebackException]]) -> str:
    return "".join(f"\n  {name}: {_message(error)[:_LINE]}" for name, error in failures)


def _message(error: TracebackException) -> str:
    return "".join(error.format_exception_only()).partition("\n")[0]


def _in_full(failures: Sequence[tuple[str, TracebackException]]) -> str:
    texts = [f"\n\n--- {name} ---\n{''.join(error.format())}" for name, error in failures[:IN_FULL]]
    left = len(failures) - len(texts)
    return "".join(texts) + (f"\n\n{left} others are not shown in full" if left else "")


def each(
    names: str | Sequence[str],
    values: Iterable[Any],
    *,
    ids: Iterable[str] | Callable[[Any], Any] | None = None,
) -> Callable[[Callable[..., object]], Callable[..., None]]:
    """Return a decorator that runs a test with each of these values, as one item of pytest.

    It is used like ``pytest.mark.parametrize``. All cases have the same fixtures, which must
    therefore keep nothing that a case does.
    """
    members = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    if isinstance(names, str) and len(members) == 1:
        values = [_one_member(value) for value in values]
    texts = ids if ids is None or callable(ids) else list(ids)
    cases = [_named_case(number, members, one, texts) for number, one in enumerate(values)]

    def decorate(test: Callable[..., object]) -> Callable[..., None]:
        signature = inspect.signature(test)
        if unknown := set(members) - signature.parameters.keys():
            raise TypeError(f"{test.__name__} must have the parameters {', '.join(sorted(unknown))}")

        @wraps(test)
        def run(**fixtures: Any) -> None:
            __tracebackhide__ = True
            check_each(cases, lambda case: test(**case, **fixtures))

        fixtures = [one for name, one in signature.parameters.items() if name not in members]
        run.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


def _one_member(value: Any) -> Any:
    """Return the value of a test's only member in the form of the values of several."""
    return value if _is_param(value) else (value,)


def _is_param(value: object) -> bool:
    return isinstance(value, type(pytest.param()))


def _named_case(
    number: int, members: Sequence[str], one: Any, ids: Sequence[str] | Callable[[Any], Any] | None
) -> tuple[str, dict[str, Any]]:
    """Return the name of a case, and the values of its members."""
    name = None
    if _is_param(one):
        if one.marks:
            raise TypeError(f"a case in a loop must have no marks, got {one.marks}")
        name, one = one.id, one.values
    case = dict(zip(members, one, strict=True))
    if name is not None:
        return str(name), case
    if ids is not None and not callable(ids):
        return ids[number], case
    return "-".join(_part(f"{member}{number}", value, ids) for member, value in case.items()), case


def _part(place: str, value: Any, ids: Callable[[Any], Any] | None) -> str:
    """Return the text of a value, or its place if it has no short text."""
    found = value if ids is None else ids(value)
    if isinstance(found, str | bytes):
        return ascii(found)[1 if isinstance(found, str) else 2 : -1] or place
    if found is None or isinstance(found, bool | int | float | Enum):
        return str(found)
    return getattr(found, "__name__", place)
