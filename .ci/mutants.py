"""Mutants: whether the tests of a module fail if its code is changed in one place.

    python .ci/mutants.py [MODULE...] [--places N] [--seed N] [--workers N] [--minutes N]

cosmic-ray makes the changes: it replaces an operator or a keyword, changes a number by one, negates a
condition, empties a loop. Modules that decide are mutated in all places, and some packages in places drawn
by chance. Annotations and bounds of caches are not mutated, and texts are not either.

A mutant is killed if one of the tests fails that `mutant_tests` chooses: those that call functions of its
module. A survivor that differs in nothing that a user may rely on is in `mutants.toml`, by its code and the
reason. After the minutes, no more mutants are tried. Print each other survivor and a table, and exit with
status 1 if more than `ALLOWED` of all mutants are neither killed nor judged, or if the minutes do not suffice
for the modules that decide.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import os
import random
import re
import secrets
import shutil
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from mutant_tests import (
    BUILD,
    FORK,
    IMPORTED,
    PACKAGE,
    ROOT,
    SAMPLED,
    cpu_seconds,
    files_of,
    is_killed,
    record,
)

WHOLE = (
    "attributes/timestamps.py",
    "binding/_binary.py",
    "binding/_sniffer.py",
    "clients/_schedule.py",
    "formats/json_decoder.py",
    "spark/pipeline/notes/_ledger.py",
)
ALLOWED = 0.05
# One neighbour of each operator, and for an order the opposite, too: all pairs would be ten times as many.
SWAPS = {
    "ReplaceBinaryOperator": "Add_Sub Sub_Add Mul_FloorDiv Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul "
    "LShift_RShift RShift_LShift BitAnd_BitOr BitOr_BitAnd BitXor_BitAnd",
    "ReplaceComparisonOperator": "Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is "
    "Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt",
    "ReplaceUnaryOperator": "Delete_Not Delete_USub Delete_Invert",
}
OTHERS = (
    "AddNot",
    "ExceptionReplacer",
    "NumberReplacer",
    "RemoveDecorator",
    "ReplaceAndWithOr",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "ReplaceFalseWithTrue",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ZeroIterationForLoop",
)
OPERATORS = (*(f"{kind}_{swap}" for kind, swaps in SWAPS.items() for swap in swaps.split()), *OTHERS)
# A line with one of these bounds a cache, whose size and contents no result shows.
CACHES = re.compile(r"\b(MAX_KEY_LENGTH|MAX_ENTRIES|_MOST_NAMES|_MOST_TEXTS|_LONGEST_NAME|lru_cache)\b")
OF_BOUNDS = ("NumberReplacer", "ReplaceComparisonOperator")
NOT_COPIED = (".git", ".*_cache", ".venv*", "build", "node_modules", "target")
OUTCOMES = ("killed", "judged", "unjudged", "untried")


class Mutant(NamedTuple):
    """A change of a module: the occurrence of what an operator can change, counted from 0."""

    module: str
    operator: str
    occurrence: int


class Change(NamedTuple):
    """The lines of a mutant that differ from the module, before and after."""

    module: str
    code: str
    mutant: str


def main(arguments: list[str]) -> int:
    """Test the mutants that the arguments name, or all, and return the exit status."""
    parser = argparse.ArgumentParser(prog=".ci/mutants.py", description="Test mutants of the package.")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"such as {WHOLE[0]} (default: all)")
    parser.add_argument("--places", type=int, default=300, help="of the packages' others (%(default)s)")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31), help="of these places")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="at the same time (%(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="of all work (%(default)s)")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    groups = {module: list(mutants_of(module)) for module in options.modules or WHOLE}
    if not options.modules:
        print(f"--places {options.places} --seed {options.seed}", flush=True)
        groups["others"] = sample(options.places, options.seed)
    for folder in (PACKAGE, "tests"):
        compileall.compile_dir(ROOT / folder, quiet=2)
    try:
        with ProcessPoolExecutor(options.workers, FORK, prepare) as pool:
            return report(groups, pool, started + 60 * options.minutes)
    finally:
        minutes = (time.monotonic() - started) / 60
        print(f"{minutes:.0f} minutes, with {cpu_seconds() / 60:.0f} minutes of CPU")
        shutil.rmtree(BUILD, ignore_errors=True)


def sample(places: int, seed: int) -> list[Mutant]:
    """Return mutants of the packages' other modules, drawn by chance."""
    paths = [path for name in SAMPLED for path in sorted((ROOT / PACKAGE / name).rglob("*.py"))]
    modules = [path.relative_to(ROOT / PACKAGE).as_posix() for path in paths]
    found = [mutant for module in modules if module not in WHOLE for mutant in mutants_of(module)]
    return sorted(random.Random(seed).sample(found, places))


def report(groups: dict[str, list[Mutant]], pool: ProcessPoolExecutor, until: float) -> int:
    """Test mutants, print the survivors and a row for each group, and return the exit status."""
    files = files_of({mutant.module for mutants in groups.values() for mutant in mutants})
    for file, code in zip(files, pool.map(record, files), strict=True):
        if code:
            sys.exit(f"without a change {file} must pass, got the exit status {code} of pytest")
    test_one = partial(outcome_of, judged=judged(), until=until)
    print(f"{'':34}{'mutants':>9}{''.join(f'{each:>9}' for each in OUTCOMES)}")
    together, is_whole = Counter[str](), True
    for name, mutants in groups.items():
        outcomes = Counter[str]()
        for outcome, line, change in pool.map(test_one, mutants):
            outcomes[outcome] += 1
            if outcome == "unjudged":
                print(f"{change.module}:{line}\n  - {change.code}\n  + {change.mutant}", flush=True)
        print(row(name, outcomes), flush=True)
        together += outcomes
        is_whole &= name == "others" or not outcomes["untried"]
    print(row("together", together))
    return int(not is_whole or together["unjudged"] > ALLOWED * (together.total() - together["untried"]))


def row(name: str, outcomes: Counter[str]) -> str:
    """Return a line of the table."""
    return f"{name:34}{outcomes.total():>9}{''.join(f'{outcomes[each]:>9}' for each in OUTCOMES)}"


def judged() -> frozenset[Change]:
    """Return the survivors that `mutants.toml` judges."""
    entries = tomllib.loads((ROOT / ".ci" / "mutants.toml").read_text("utf-8"))["judged"]
    return frozenset(Change(each["module"], each["code"], one) for each in entries for one in each["mutants"])


def mutants_of(module: str) -> Iterator[Mutant]:
    """Yield the mutants of a module but for annotations and bounds of caches."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    source = (ROOT / PACKAGE / module).read_text("utf-8")
    lines, nodes, left_out = source.splitlines(), list(ast_nodes(get_ast(source))), annotations(source)
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        for number, (start, end) in enumerate(places):
            line = lines[start[0] - 1]
            is_bound = name.startswith(OF_BOUNDS) and CACHES.search(line)
            # cosmic-ray 8.7 raises an error where it replaces an exception of a module.
            is_dotted = name == "ExceptionReplacer" and "." in line[start[1] : end[1]]
            if not is_bound and not is_dotted and not any(first <= start < last for first, last in left_out):
                yield Mutant(module, name, number)


def annotations(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where annotations, and what only type checkers read, begin and end: lines and columns."""
    found: list[ast.AST | None] = []
    for node in ast.walk(ast.parse(source)):
        found += [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found.append(node)
    return [((one.lineno, one.col_offset), (one.end_lineno, one.end_col_offset)) for one in found if one]


def prepare() -> None:
    """Enter a copy of the repository for this worker alone, and import what its mutants have in common."""
    BUILD.mkdir(parents=True, exist_ok=True)
    tree = Path(tempfile.mkdtemp(dir=BUILD)) / "tree"
    # With compiled modules and their times, by which Python finds that they are those of the sources.
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*NOT_COPIED))
    os.chdir(tree)
    for name in IMPORTED:
        import_module(name)


def outcome_of(mutant: Mutant, judged: frozenset[Change], until: float) -> tuple[str, int, Change]:
    """Return one of `OUTCOMES`, the line, and what the mutant changes; after ``until``, try nothing."""
    if time.monotonic() > until:
        return "untried", 0, Change(mutant.module, "", "")
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    path = Path(PACKAGE, mutant.module)
    before = path.read_text("utf-8")
    after = mutate_code(before, get_operator(f"core/{mutant.operator}")(), mutant.occurrence)
    line, change = change_of(mutant.module, before.splitlines(), after.splitlines())
    if change in judged:
        return "judged", line, change
    times = path.stat()
    path.write_text(after, "utf-8")
    try:
        return "killed" if is_killed(mutant.module, line) else "unjudged", line, change
    finally:
        path.write_text(before, "utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # by which Python finds it compiled


def change_of(module: str, before: list[str], after: list[str]) -> tuple[int, Change]:
    """Return the number of the first line that differs, and the change without blanks that do not matter."""
    start = next(n for n, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
    end = next(n for n, pair in enumerate(zip(before[::-1], after[::-1], strict=False)) if len(set(pair)) > 1)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    return start + 1, Change(module, squeezed(old), squeezed(new))


def squeezed(lines: list[str]) -> str:
    """Return lines as one, with one blank where there are several."""
    return " ".join(" ".join(lines).split())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
