"""The public objects of the package by their names, read from its sources."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import cloudevents_kafka

PACKAGE = "cloudevents_kafka"
ROOT = Path(cloudevents_kafka.__file__).parents[1]  # where the package is, installed or not


@cache
def identifiers(shown: tuple[str, ...]) -> dict[str, str]:
    """Return the identifiers by the names that docstrings use on a page that shows some objects.

    Names of the page are before those of the package itself, since other packages have the same ones.
    """
    found = {name: f"{PACKAGE}.{name}" for name in exports(PACKAGE)}
    for module in shown:
        found |= {name: f"{module}.{name}" for name in exports(module)}
    return found


@cache
def exports(module: str) -> tuple[str, ...]:
    """Return the names in ``__all__`` of a module; none if it has no such list or is not a module."""
    path = ROOT.joinpath(*module.split("."))
    for file in (path / "__init__.py", path.with_suffix(".py")):
        for node in ast.parse(file.read_text("utf-8")).body if file.exists() else ():
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return tuple(ast.literal_eval(node.value))
    return ()


def identifier(name: str, shown: tuple[str, ...]) -> str | None:
    """Return the identifier of the public object that a docstring names, or None."""
    first, dot, rest = name.removeprefix(f"{PACKAGE}.").partition(".")
    found = identifiers(shown).get(first)
    return None if found is None else found + dot + rest
