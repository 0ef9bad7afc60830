"""The cost of a record next to records of another kind: each two shapes of reading, alone and by turns.

The ratio is the processor time of both by turns divided by that of each alone, best of 12. The 20
highest pairs are measured again seven times; the median counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from itertools import combinations

from _shapes import Shape, shapes

_GROUPS = ("json", "binary", "lenient", "producers")
_ROUNDS = 12
_TARGET = 1.15


def main() -> None:
    """Print the highest pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=100, help="of each shape in a round")
    options = parser.parse_args()
    chosen = [shape for shape in shapes() if shape.group in _GROUPS]
    print(f"load {os.getloadavg()[0]:.1f}, {len(chosen)} shapes")
    first = {pair: ratio(*pair, options.calls) for pair in combinations(chosen, 2)}
    highest = sorted(first, key=lambda pair: first[pair])[-20:]
    again = {pair: statistics.median(ratio(*pair, 3 * options.calls) for _ in range(7)) for pair in highest}
    for pair in sorted(again, key=lambda pair: -again[pair]):
        names = ", ".join(f"{shape.group} {shape.name}" for shape in pair)
        print(f"{again[pair]:6.2f}x  {names}")
    worst = max(again.values())
    print(
        f"of {len(first):,} pairs: median {statistics.median(first.values()):.2f}x, highest {worst:.2f}x",
        end="",
    )
    print(f"  target {_TARGET}x {'met' if worst <= _TARGET else 'MISSED'}")


def ratio(one: Shape, other: Shape, calls: int) -> float:
    """Return the time of both by turns, divided by that of each alone."""
    alone, by_turns = [], []
    for _ in range(_ROUNDS):
        alone.append(seconds([one], calls) + seconds([other], calls))
        by_turns.append(seconds([one, other], calls))
    return min(by_turns) / min(alone)


def seconds(chosen: list[Shape], calls: int) -> float:
    """Return the processor time of calls, after some that are not counted."""
    works = [shape.ours for shape in chosen]
    for work in works * 3:
        work()
    start = time.process_time()
    for _ in range(calls):
        for work in works:
            work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
