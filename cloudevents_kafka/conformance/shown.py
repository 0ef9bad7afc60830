"""Run everything that shall show a clause: cases of vectors here, tests by pytest in a checkout."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import msgspec

from cloudevents_kafka.conformance.judging import Unmet
from cloudevents_kafka.conformance.kinds import accepts, run
from cloudevents_kafka.conformance.library import Case, Clause, Library, clauses_of

LEVELS: Final[Mapping[str, str]] = {
    "MUST": "MUST",
    "MUST NOT": "MUST",
    "SHOULD": "SHOULD",
    "SHOULD NOT": "SHOULD",
    "RECOMMENDED": "SHOULD",
    "MAY": "MAY",
    "derived": "derived",
    "advice": "derived",
}
"""The column of the report for each level that a clause can have."""

Progress = Callable[[str], None]


class Failure(msgspec.Struct, frozen=True):
    """A case or a test that does not hold, and what was seen."""

    name: str
    seen: str


class Shown(msgspec.Struct, frozen=True):
    """What came of a clause: how many cases of each side and tests hold, and what does not."""

    clause: Clause
    accepted: int = 0
    refused: int = 0
    tests: int = 0
    failures: tuple[Failure, ...] = ()
    not_run: tuple[str, ...] = ()

    @property
    def column(self) -> str:
        """MUST, SHOULD, MAY or derived."""
        return LEVELS[self.clause.level]

    @property
    def holds(self) -> bool:
        """Whether something shows the clause, and nothing speaks against it."""
        return not self.failures and self.accepted + self.refused + self.tests > 0


def show_all(
    library: Library, *, with_tests: bool = True, progress: Progress = lambda _: None
) -> list[Shown]:
    """Run all cases and, in a checkout, the named tests; one `Shown` for each clause, in order."""
    progress(f"running {len(library.all_cases):,} cases")
    cases = [(case, _failure(case)) for _, case in library.all_cases]
    names = sorted({name for clause in library.clauses for name in clause.tests})
    results: Mapping[str, Failure | None] = {}
    if with_tests and library.checkout is not None:
        progress(f"running {len(names)} tests")
        results = run_tests(library.checkout, names)
    return [_shown(clause, cases, results) for clause in library.clauses]


def _failure(case: Case) -> Failure | None:
    try:
        run(case)
    except Unmet as error:
        return Failure(case["id"], str(error))
    return None


def _shown(
    clause: Clause, cases: Iterable[tuple[Case, Failure | None]], tests: Mapping[str, Failure | None]
) -> Shown:
    own = [(case, failure) for case, failure in cases if clause.id in clauses_of(case)]
    good = [accepts(case) for case, failure in own if failure is None]
    ran = {name: tests[name] for name in clause.tests if name in tests}
    failures = [
        failure for failure in [*(failure for _, failure in own), *ran.values()] if failure is not None
    ]
    return Shown(
        clause,
        accepted=sum(good),
        refused=len(good) - sum(good),
        tests=sum(failure is None for failure in ran.values()),
        failures=tuple(failures),
        not_run=tuple(name for name in clause.tests if name not in tests),
    )


def run_tests(checkout: Path, names: list[str]) -> dict[str, Failure | None]:
    """Run tests by name, ``path::function``; what failed for each, None for those that passed.

    A name is not in the result where pytest did not get to it: its last words are then
    the failure of all.
    """
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "results.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={told}",
            *names,
        ]
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
        if not told.is_file():
            last = (done.stdout + done.stderr).strip().splitlines()[-1:]
            return {name: Failure(name, f"pytest did not run: {' '.join(last)}") for name in names}
        return _results(told, names)


def _results(told: Path, names: list[str]) -> dict[str, Failure | None]:
    results: dict[str, Failure | None] = {}
    for element in ET.parse(told).iter("testcase"):  # noqa: S314  # written by the pytest just run
        path = str(element.get("classname")).replace(".", "/") + ".py"
        name = f"{path}::{str(element.get('name')).partition('[')[0]}"
        bad = next((child for child in element if child.tag in {"failure", "error", "skipped"}), None)
        if bad is not None:
            results[name] = Failure(name, f"{bad.tag}: {bad.get('message')}")
        else:
            results.setdefault(name, None)
    return {name: results.get(name, Failure(name, "pytest found no such test")) for name in names}
