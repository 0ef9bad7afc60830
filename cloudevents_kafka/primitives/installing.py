"""The command that installs the package with pip, for messages and documentation pages.

The package is not yet in the package index, where anybody could register its name. All messages and pages
take the command from this module, which alone contains it.
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = "git+https://github.com/cloudevents-kafka/cloudevents-kafka"
"""The source from which pip installs the package; empty once the package index contains the package."""


def pip_install(extras: str, source: str = SOURCE) -> str:
    """Return the command that installs the package with extras, such as ``cli,spark``."""
    place = f" @ {source}" if source else ""
    return f'pip install "cloudevents-kafka[{extras}]{place}"'
