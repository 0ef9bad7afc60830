"""`Finding`: what a check found, and `require`: one error for all that a command needs and is missing."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from cloudevents_kafka.cli.terminal.errors import BadUsage


class Finding(msgspec.Struct, frozen=True):
    """The result of a check.

    ``found`` describes what is here, ``problem`` what is missing and what to do. Both are empty if the part
    depends on another one that is missing. With ``later`` a command that needs the part fetches it.
    """

    found: str = ""
    problem: str = ""
    later: bool = False


# A check fetches jars that are missing if its argument is true; otherwise it only looks.
Check = Callable[[bool], Finding]


def require(feature: str, *checks: Check) -> None:
    """Run all checks, fetching jars; raise one `BadUsage` that has each problem and what mends it."""
    problems = [finding.problem for check in checks if (finding := check(True)).problem]
    if len(problems) == 1:
        raise BadUsage(f"{feature} needs {problems[0]}")
    if problems:
        raise BadUsage(f"{feature} needs what is missing here, and was not started:\n{as_list(problems)}")


def as_list(texts: list[str]) -> str:
    """Return texts as items of a list, the further lines of each indented."""
    return "\n".join("- " + text.replace("\n", "\n  ") for text in texts)
