"""Names of test cases that are the same in each run: `pytest-xdist` and reports compare them."""

from __future__ import annotations


def stable(value: object) -> str:
    """Return the value's repr, with sets sorted and without addresses in memory."""
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(stable, value)))}}}"
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text
