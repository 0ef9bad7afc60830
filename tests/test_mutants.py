"""The mutants of `make release`: each survivor that the list judges is one of code that is there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def mutants() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / ".ci")
        yield import_module("mutants")


@pytest.fixture(scope="module")
def mutant_tests(mutants: ModuleType) -> ModuleType:
    return import_module("mutant_tests")


def test_judged_code_is_there(mutants: ModuleType) -> None:
    """A reason whose code has changed is no longer one."""
    for module, code, mutant in sorted(mutants.judged()):
        source = (ROOT / mutants.PACKAGE / module).read_text("utf-8")
        assert code in mutants.squeezed(source.splitlines()), f"{module}: judge again, or remove: {code}"
        assert mutant != code


def test_modules_that_decide_have_tests_of_their_own(mutants: ModuleType, mutant_tests: ModuleType) -> None:
    """A file of tests mirrors each of them, and is among those that run for its mutants."""
    files = mutant_tests.files_of({*mutants.WHOLE})
    assert all((ROOT / file).exists() for file in files)
    for module in mutants.WHOLE:
        assert (ROOT / mutants.PACKAGE / module).exists()
        mirror = mutant_tests.mirror_of(module)
        assert Path(mirror).name == f"test_{Path(module).name.removeprefix('_')}"
        assert mirror in files
    assert mutant_tests.files_of({"clients/_schedule.py"}) == ["tests/clients/test_schedule.py"]


def test_no_mutant_is_tried_after_the_minutes(
    mutants: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are counted, and the run fails if one of a module that decides is among them."""
    monkeypatch.setattr(mutants, "files_of", lambda _: [])
    one = mutants.Mutant(mutants.WHOLE[0], "AddNot", 0)
    with ThreadPoolExecutor(1) as pool:
        assert mutants.report({one.module: [one], "others": [one, one]}, pool, until=0.0) == 1
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[-1] for line in lines] == ["untried", "1", "2", "3"]
        assert mutants.report({"others": [one, one]}, pool, until=0.0) == 0


CALLED = {
    "tests/binding/test_keys.py::test_slow": (2.0, {"binding/_keys.py": [[1, 9], [20, 29]]}),
    "tests/binding/test_keys.py::test_quick": (1.0, {"binding/_keys.py": [[20, 29]]}),
    "tests/test_properties.py::test_all": (
        0.5,
        {"binding/_keys.py": [[20, 22]], "binding/_mode.py": [[1, 3]]},
    ),
    "tests/test_properties.py::test_mode": (0.1, {"binding/_mode.py": [[1, 3]]}),
    "tests/test_slow_path.py::test_calls": (0.1, {}),
}


@pytest.mark.parametrize(
    ("module", "line", "expected"),
    [
        ("binding/_keys.py", 25, [["quick", "slow"], ["all", "calls"]]),
        ("binding/_keys.py", 5, [["slow", "quick"], ["all", "calls"]]),
        ("binding/_mode.py", 2, [["mode", "all"], ["calls"]]),
        ("binding/_keys.py", 15, [["quick", "slow"], ["all", "mode", "calls"]]),
        ("binding/_binary.py", 2, [["mode", "calls", "all", "quick", "slow"]]),
    ],
)
def test_tests_that_call_the_line_run_first(
    mutant_tests: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    line: int,
    expected: list[list[str]],
) -> None:
    """First is the file that mirrors the module, or calls the line most; in it first what calls the line."""
    tests = {name: mutant_tests.Called(*called) for name, called in CALLED.items()}
    monkeypatch.setattr(mutant_tests, "recorded", lambda: tests)
    found = mutant_tests.tests_of(module, line)
    assert [[name.rpartition("_")[2] for name in part] for part in found] == expected


def test_annotations_are_left_out(mutants: ModuleType) -> None:
    """They, and what only type checkers read, are places in which no mutant is made."""
    source = "if TYPE_CHECKING:\n    N = 1\ndef f(x: int | None = 1) -> int | str:\n    y: int | None = x\n"
    lines = source.splitlines()
    found = [lines[start[0] - 1][start[1] :] for start, _ in mutants.annotations(source)]
    assert sorted(found) == [
        "if TYPE_CHECKING:",
        "int | None = 1) -> int | str:",
        "int | None = x",
        "int | str:",
    ]


@pytest.mark.parametrize(
    ("after", "line", "code", "mutant"),
    [
        (["a = 1", "b  =  3", "c = 2"], 2, "b = 2", "b = 3"),
        (["a = 1", "c = 2"], 2, "b = 2", ""),
        (["a = 1", "b = 2", "c  = not (", "  2)"], 3, "c = 2", "c = not ( 2)"),
    ],
)
def test_a_change_is_the_lines_that_differ(
    mutants: ModuleType, after: list[str], line: int, code: str, mutant: str
) -> None:
    """Blanks within them do not matter, and a removed line has none after."""
    found = mutants.change_of("m.py", ["a = 1", "b = 2", "c = 2"], after)
    assert found == (line, mutants.Change("m.py", code, mutant))
