"""Finds the sections of the specifications for the clauses that errors cite."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def sections() -> dict[str, str]:
    """Return the document and the section of each clause, from the file ``clauses.toml``."""
    import tomllib  # imported here because it takes milliseconds, and only errors need it

    text = (files("cloudevents_kafka.primitives") / "clauses.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
