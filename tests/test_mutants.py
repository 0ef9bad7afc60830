"""The mutants of `make release`: each survivor that the list judges is one of code that is there."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def mutants() -> ModuleType:
    spec = spec_from_file_location("mutants", ROOT / ".ci" / "mutants.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_judged_code_is_there(mutants: ModuleType) -> None:
    """A reason whose code has changed is no longer one."""
    for module, code, mutant in sorted(mutants.judged()):
        source = (ROOT / mutants.PACKAGE / module).read_text("utf-8")
        assert code in mutants.squeezed(source.splitlines()), f"{module}: judge again, or remove: {code}"
        assert mutant != code


def test_modules_that_decide_have_tests_of_their_own(mutants: ModuleType) -> None:
    """The first tests of a mutant are the file that mirrors its module."""
    for module in mutants.WHOLE:
        assert (ROOT / mutants.PACKAGE / module).exists()
        [mirror], *others = mutants.tests_of(module)
        assert Path(mirror).name == f"test_{Path(module).name.removeprefix('_')}"
        assert all((ROOT / file).exists() for files in others for file in files if file.endswith(".py"))
        assert (ROOT / mirror).exists()


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
