"""Parameters of a test of which a sample runs each time, and the others in ``make release``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(number: int, values: Iterable[Any], *, members: int = 1) -> list[Any]:
    """Return the values as parameters; the first of each `number` of them runs each time.

    A value of a test with several members is a tuple of that length.
    """
    return [
        pytest.param(
            *(value if members > 1 else (value,)), marks=[pytest.mark.release] * (place % number > 0)
        )
        for place, value in enumerate(values)
    ]
