"""Packages that only some commands need, and how to get them: told before a command begins."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from cloudevents_kafka.cli.terminal.errors import BadUsage

# Extra: the packages of it without which there is no way, by the names they are imported by.
_PACKAGES: Final = {
    "protobuf": ("google.protobuf",),
    "protocol": ("cramjam",),
    "spark": ("pyspark", "py4j", "pandas", "pyarrow"),
}


def need(extra: str, what: str) -> None:
    """Raise `BadUsage` where an extra is not installed that ``what`` needs; loads nothing of it."""
    missing = [name for name in _PACKAGES[extra] if not _is_there(name)]
    if missing:
        raise BadUsage(f"{what} needs {', '.join(missing)}: pip install 'cloudevents-kafka[{extra}]'")


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False
