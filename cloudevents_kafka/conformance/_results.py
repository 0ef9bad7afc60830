"""The result of a case or a test, and the results of tests from the JUnit XML that pytest writes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal
from xml.etree import ElementTree as ET

import msgspec

from cloudevents_kafka.errors import CloudEventsKafkaError

Status = Literal["accepted", "refused", "passed", "FAILED", "not run"]
"""A case that holds is accepted or refused, by what it is of; a test that holds is passed."""

_WORST_FIRST: Final[tuple[Status, ...]] = ("FAILED", "not run", "passed")
_FUNCTION: Final = re.compile(r"\w*")  # before "[parameters]" and pytest-xdist's "@group"
_LONGEST: Final = 400  # characters of a detail
_MISSING_PACKAGE: Final = re.compile("No module named |pip install ")
"""How Python and this library report a missing package; a clause does not fail because of it."""


class Result(msgspec.Struct, frozen=True):
    """The result of a case, or of a test, which has no ``about``; ``detail`` says why it does not hold."""

    name: str
    status: Status
    about: str = ""
    detail: str = ""


class ResultsError(CloudEventsKafkaError):
    """A file of test results cannot be read or is not JUnit XML."""


def failure(name: str, message: str, about: str = "") -> Result:
    """Return the result of a case or test that failed, or was not run because a package is missing."""
    line = " ".join(message.split())
    detail = line if len(line) <= _LONGEST else f"{line[:_LONGEST]} …"
    return Result(name, "not run" if _MISSING_PACKAGE.search(message) else "FAILED", about, detail)


def read_results(path: Path) -> dict[str, Result]:
    """Return the results of tests in a JUnit XML file by name, ``path::function``.

    The cases of a parametrized test count as one test: it failed if one of them failed, and
    was not run if one of them was skipped. Raises `ResultsError`.
    """
    try:
        elements = list(ET.parse(path).iter("testcase"))  # noqa: S314  # expat limits the expansion of entities
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror or error}; make test writes it") from None
    except (ET.ParseError, LookupError, ValueError) as error:
        raise ResultsError(f"{path} must be JUnit XML as pytest writes it: {error}") from None
    if not elements:
        raise ResultsError(f"{path} must be JUnit XML as pytest writes it, got no <testcase>")
    return worst_of(map(_result, elements))


def worst_of(results: Iterable[Result]) -> dict[str, Result]:
    """Return the worst result of each name."""
    worst: dict[str, Result] = {}
    for result in results:
        other = worst.setdefault(result.name, result)
        worst[result.name] = min(other, result, key=lambda one: _WORST_FIRST.index(one.status))
    return worst


def _result(element: ET.Element) -> Result:
    path = f"{element.get('classname', '').replace('.', '/')}.py"
    function = _FUNCTION.match(element.get("name", ""))
    name = f"{path}::{function[0] if function else ''}"
    bad = next((child for child in element if child.tag in {"failure", "error", "skipped"}), None)
    if bad is None:
        return Result(name, "passed")
    result = failure(name, f"{bad.tag}: {bad.get('message', '')}")
    return msgspec.structs.replace(result, status="not run") if bad.tag == "skipped" else result
