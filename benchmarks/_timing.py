"""Time two functions by turns in one process and compare them by ratio."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable


def time_by_turns(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    rounds: int,
    calls: int,
    their_calls: int | None = None,
    collect: bool = True,
) -> tuple[list[float], list[float]]:
    """Return the seconds per call of both functions in each round; the garbage collector is off.

    On a busy machine a longer turn is interrupted more often: ``their_calls`` makes turns equally long.
    ``collect`` collects garbage first.
    """
    timings: tuple[list[float], list[float]] = ([], [])
    turns = ((ours, calls, timings[0]), (theirs, their_calls or calls, timings[1]))
    if collect:
        gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for work, count, times in turns:
                start = time.perf_counter()
                for _ in range(count):
                    work()
                times.append((time.perf_counter() - start) / count)
    finally:
        gc.enable()
    return timings


def calls_for(work: Callable[[], object], seconds: float) -> int:
    """Return how many calls take about so many seconds, at least one."""
    times, _ = time_by_turns(work, _nothing, rounds=9, calls=3)
    return max(1, round(seconds / min(times)))


def _nothing() -> None:
    pass


def ratio_of(ours: list[float], theirs: list[float]) -> float:
    """Return the median of the ratios of the rounds, their time divided by ours."""
    return statistics.median(other / own for own, other in zip(ours, theirs, strict=True))


def row(name: str, ours: list[float], theirs: list[float], target: float | None) -> str:
    """Return one line: medians in microseconds, the median of the ratios of the rounds, the target."""
    ratio = ratio_of(ours, theirs)
    verdict = "" if target is None else f"   target {target:>4}x  {'met' if ratio >= target else 'MISSED'}"
    return (
        f"{name:<44} {statistics.median(ours) * 1e6:8.2f} us {statistics.median(theirs) * 1e6:8.2f} us"
        f" {ratio:6.1f}x{verdict}"
    )
