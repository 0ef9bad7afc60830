"""The command by which pip installs the package, for messages and pages.

The package index does not have the package yet, and anybody could register its name there. So the command is
only in this module.
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = "git+https://github.com/cloudevents-kafka/cloudevents-kafka"
"""Where pip finds the package; empty once the package index has it."""


def pip_install(extras: str, source: str = SOURCE) -> str:
    """Return the command that installs the package with extras, such as ``cli,spark``."""
    place = f" @ {source}" if source else ""
    return f'pip install "cloudevents-kafka[{extras}]{place}"'
