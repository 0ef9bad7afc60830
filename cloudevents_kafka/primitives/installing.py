"""The command by which pip installs the package, for messages and pages.

The package is not yet in the package index, and anybody could register its name there. So only this module
contains the command, and all messages and pages use it.
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = "git+https://github.com/cloudevents-kafka/cloudevents-kafka"
"""The source from which pip installs the package; empty once the package index contains the package."""


def pip_install(extras: str, source: str = SOURCE) -> str:
    """Return the command that installs the package with extras, such as ``cli,spark``."""
    place = f" @ {source}" if source else ""
    return f'pip install "cloudevents-kafka[{extras}]{place}"'
