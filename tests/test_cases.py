"""A loop of cases names each case that fails, and hides none."""

from __future__ import annotations

import re
import sys
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import IN_FULL, check_each, each
from tests.support.time_limits import TimedOut


def failure_of(cases: Any, check: Any) -> str:
    with pytest.raises(pytest.fail.Exception) as caught:
        check_each(cases, check)
    return str(caught.value)


def is_even(number: int) -> None:
    halves = divmod(number, 2)
    assert halves[1] == 0


def test_each_case_is_checked() -> None:
    """The cases of a mapping or of pairs are checked, in order."""
    seen: list[int] = []
    check_each({"a": 1, "b": 2}, seen.append)
    check_each(((name, 3) for name in "cd"), seen.append)
    assert seen == [1, 2, 3, 3]


def test_all_failures_are_named() -> None:
    """Each failure has its name, its values as pytest shows them, and the line that failed."""
    text = failure_of({"one": 1, "two": 2, "three": 3}, is_even)
    assert text.startswith("2 of 3 cases failed\n  one: AssertionError: assert 1 == 0\n  three: Assertion")
    assert "--- one ---\nTraceback" in text
    assert "--- three ---\nTraceback" in text
    assert text.count("    assert halves[1] == 0\n") == 2
    assert text.count("test_cases.py") == 2
    assert "support/cases.py" not in text
    assert "two" not in text


def test_a_traceback_ends_where_the_error_is() -> None:
    """An error of the library has the frames from the check to its own line, its notes and its cause."""

    def check(_case: object) -> None:
        try:
            int("x")
        except ValueError as error:
            error.add_note("of a note")
            raise LookupError("second") from error

    text = failure_of({"a": 1}, check)
    expected = ['int("x")', "ValueError: invalid", "of a note", "raise LookupError", "LookupError: second"]
    assert re.search(".*".join(map(re.escape, expected)) + "\n$", text, re.DOTALL)


def test_many_failures_are_named() -> None:
    """Beyond the first failures, each has a line and is named; the text says how many they are."""
    text = failure_of([(f"n{number}", 1) for number in range(IN_FULL + 7)], is_even)
    assert text.count("Traceback") == IN_FULL
    assert all(f"\n  n{number}: AssertionError" in text for number in range(IN_FULL + 7))
    assert text.endswith("7 others are not shown in full")


def test_the_same_name_twice() -> None:
    """Of two cases with one name, both are checked, and the text says which one failed."""
    text = failure_of([("a", 2), ("a", 1)], is_even)
    assert "  a #2: AssertionError" in text
    assert text.startswith("1 of 2 cases failed")


@pytest.mark.parametrize("cases", [{}, [], iter(())])
def test_no_cases_are_a_failure(cases: Any) -> None:
    """A loop without cases shows nothing, and fails."""
    assert failure_of(cases, is_even) == "there must be cases"


def ask_in_vain() -> None:
    with pytest.raises(KeyError):
        int("7")


@pytest.mark.parametrize(
    ("work", "line"),
    [
        (lambda: pytest.fail("because"), "Failed: because"),
        (lambda: pytest.skip("later"), "Skipped: later"),
        (lambda: pytest.xfail("known"), "_pytest.outcomes.XFailed: known"),
        (lambda: pytest.importorskip("no_such_module"), "Skipped: could not import 'no_such_module'"),
        (lambda: sys.exit(3), "SystemExit: 3"),
        (ask_in_vain, "Failed: DID NOT RAISE"),
    ],
)
def test_each_kind_of_failure(work: Any, line: str) -> None:
    """Failures of pytest, a skip and the end of a program fail the case, and the next ones are checked."""
    seen: list[str] = []

    def check(case: str) -> None:
        seen.append(case)
        if case == "b":
            work()

    text = failure_of({"a": "a", "b": "b", "c": "c"}, check)
    assert seen == ["a", "b", "c"]
    assert text.startswith(f"1 of 3 cases failed\n  b: {line}")


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), TimedOut("Timeout (>1s)"), pytest.exit.Exception("end")]
)
def test_what_ends_a_test_ends_the_loop(error: BaseException) -> None:
    """Ctrl-C, the limit of time and the end of the run pass; a note says where, and what failed before."""

    def check(number: int) -> None:
        if number == 4:
            raise error
        is_even(number)

    with pytest.raises(type(error)) as caught:
        check_each([(f"n{number}", number) for number in (2, 3, 4, 5)], check)
    assert caught.value is error
    [note] = error.__notes__
    assert note == "in the case n4, after 2 others\n  n3: AssertionError: assert 1 == 0"


def test_a_text_without_utf_8() -> None:
    """A text that UTF-8 does not have is escaped, so that each process can report it."""
    text = failure_of({"a": "\ud800"}, pytest.fail)
    assert text.startswith("1 of 1 cases failed\n  a: Failed: \\ud800\n")
    assert text.encode()


# --- the decorator -------------------------------------------------------------------


class Color(Enum):
    RED = 1


def failing_names(names: Any, values: Any, **more: Any) -> list[str]:
    def fail(**_values: Any) -> None:
        pytest.fail("always")

    members = names.split(",") if isinstance(names, str) else names
    namespace = {"fail": fail}
    exec(f"def test({', '.join(members)}): fail()", namespace)
    with pytest.raises(pytest.fail.Exception) as caught:
        each(names, values, **more)(namespace["test"])()
    return re.findall(r"^  (.*): Failed: always$", str(caught.value), re.MULTILINE)


@pytest.mark.parametrize(
    ("names", "values", "ids", "expected"),
    [
        ("a", ["x", 1, None, b"\xff", int, Color.RED], None, ["x", "1", "None", r"\xff", "int", "Color.RED"]),
        ("a", [["x"], "", "\ud800"], None, ["a0", "a1", r"\ud800"]),
        ("a,b", [("x", 1), ("y", [])], None, ["x-1", "y-b1"]),
        (("a", "b"), [("x", 1)], None, ["x-1"]),
        (("a",), [("x",)], None, ["x"]),
        ("a", [1, 2], ["one", "two"], ["one", "two"]),
        ("a", [1, 2], iter(["one", "two"]), ["one", "two"]),
        ("a", [1, 2], lambda number: f"n{number}", ["n1", "n2"]),
        (("a", "b"), [pytest.param(1, 2, id="own"), (3, 4)], None, ["own", "3-4"]),
        ("a", [pytest.param((1, 2), id="own"), pytest.param(5)], None, ["own", "5"]),
        ("a", ["x", "x"], None, ["x", "x #2"]),
    ],
)
def test_names_of_cases(names: Any, values: Any, ids: Any, expected: list[str]) -> None:
    """A case has its own name, or the one that pytest would make of its values."""
    assert failing_names(names, values, ids=ids) == expected


@each(("letter", "number"), product("ab", [2, 4]))
def test_fixtures(letter: str, number: int, tmp_path: Path) -> None:
    """A test has its values by name, and fixtures as any other, which all cases share."""
    (tmp_path / f"{letter}{number}").touch()
    assert len([*tmp_path.iterdir()]) == "ab".index(letter) * 2 + number // 2


def test_a_test_runs_with_each_case() -> None:
    """The decorated function runs with all cases, and is the test in all else."""
    seen: list[tuple[str, int]] = []

    @pytest.mark.slow
    @each("letter, number", product("ab", [1, 2]))
    def test(letter: str, number: int) -> None:
        """Say what holds."""
        seen.append((letter, number))

    test()
    assert seen == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert (test.__name__, test.__doc__) == ("test", "Say what holds.")


def test_wrong_cases_are_refused() -> None:
    """Cases with marks, with other members or with too few values are errors of the collection."""
    with pytest.raises(TypeError, match="no marks"):
        each("a", [pytest.param(1, marks=pytest.mark.slow)])
    with pytest.raises(TypeError, match="must have the parameters b"):
        each("b", [1])(lambda a: a)
    with pytest.raises(ValueError, match="zip"):
        each(("a", "b"), [(1,)])
