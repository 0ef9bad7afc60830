"""`Detached`: an object without a text, as a row of a database is after the end of its session."""

from __future__ import annotations


class Detached:
    """An object whose `repr` and `str` fail, and so those of an error that contains it."""

    def __repr__(self) -> str:
        raise RuntimeError("not bound to a session")
