"""Count the function calls of a piece of work, which no load of the machine changes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from types import FrameType

_WARM_UP = 200  # caches are filled, and readers have adapted to the record


def count_calls(work: Callable[[], object]) -> int:
    """Return how many functions, in Python or C, are called by ``work``, when caches are warm."""
    for _ in range(_WARM_UP):
        work()
    return min(_count(work) for _ in range(3)) - _count(_nothing)


def count_in_order(works: Sequence[Callable[[], object]]) -> list[int]:
    """Return the function calls of each work, one after the other, when all have run before."""
    for _ in range(10):
        for work in works:
            work()
    nothing = _count(_nothing)
    return [_count(work) - nothing for work in works]


def _count(work: Callable[[], object]) -> int:
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()  # its callbacks are functions too
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count


def _nothing() -> None:
    pass
