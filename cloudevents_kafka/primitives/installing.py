"""The command that installs the package with pip, for messages and documentation pages.

The package is not yet in the package index, and anybody could register its name in the index. Only this
module contains the command, and all messages and pages get the command from this module.
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = "git+https://github.com/cloudevents-kafka/cloudevents-kafka"
"""The source from which pip installs the package; empty once the package index contains the package."""


def pip_install(extras: str, source: str = SOURCE) -> str:
    """Return the command that installs the package with extras, such as ``cli,spark``."""
    place = f" @ {source}" if source else ""
    return f'pip install "cloudevents-kafka[{extras}]{place}"'
