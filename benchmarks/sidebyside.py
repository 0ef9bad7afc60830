"""Measure two ways of doing one thing, in turn, in one process; compare by ratio."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable


def interleaved(
    ours: Callable[[], object], theirs: Callable[[], object], *, rounds: int, calls: int
) -> tuple[list[float], list[float]]:
    """Time both by turns: seconds a call, one figure a round each; the collector is off meanwhile."""
    timings: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for work, times in zip((ours, theirs), timings, strict=True):
                start = time.perf_counter()
                for _ in range(calls):
                    work()
                times.append((time.perf_counter() - start) / calls)
    finally:
        gc.enable()
    return timings


def row(name: str, ours: list[float], theirs: list[float], target: float | None) -> str:
    """Format one line: medians in microseconds, the median of the ratios round by round, the target."""
    ratio = statistics.median(other / own for own, other in zip(ours, theirs, strict=True))
    verdict = "" if target is None else f"   target {target:>4}x  {'met' if ratio >= target else 'MISSED'}"
    return (
        f"{name:<44} {statistics.median(ours) * 1e6:8.2f} us {statistics.median(theirs) * 1e6:8.2f} us"
        f" {ratio:6.1f}x{verdict}"
    )
