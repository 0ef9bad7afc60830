"""Count the function calls of each shape, of what peers wrote, and of a shape after another shape.

    python benchmarks calls [-- --json]

A line has the calls and the bound. After the shapes are the median and the highest of each peer's
records in each encoding, and then each record that needs another number of calls after a record of
another shape than after one of its own. With --json all of that is one JSON object.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import permutations

from _calls import count_calls, count_in_order
from _peer_samples import peer_samples
from _shapes import PEER_CALLS, Shape, shapes

_READ = ("json", "binary", "lenient", "producers")
_EACH = 3  # of the shapes that are read: all pairs would take minutes


def main() -> None:
    """Print the counts in the form that the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    every = {f"{shape.group}, {shape.name}": shape for shape in shapes()}
    bounds = {**dict(of_shapes(every)), **dict(of_peers())}
    changed = list(after_others(every))
    if options.json:
        print(json.dumps({"counts": bounds, "neighbours": changed}))
        return
    for name, (calls, bound) in bounds.items():
        print(f"{name:<60} {calls:5} {bound:5}  {'' if calls <= bound else 'MORE'}")
    print("\n".join(changed))


def of_shapes(every: dict[str, Shape]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the name of each shape, its calls and its bound."""
    for name, shape in every.items():
        yield name, (count_calls(shape.ours), shape.calls)


def of_peers() -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield a name, the calls and the bound for the median and the highest of each kind of record."""
    kinds = defaultdict(list)
    for sample in peer_samples():
        kinds[sample.peer, sample.encoding].append(sample.read)
    for kind, works in kinds.items():
        counts = sorted(count_in_order(works))
        for name, calls, bound in zip(
            ("median", "highest"), (counts[len(counts) // 2], counts[-1]), PEER_CALLS[kind], strict=True
        ):
            yield f"{' '.join(kind)}, {name}", (calls, bound)


def after_others(every: dict[str, Shape]) -> Iterator[str]:
    """Yield a line for each shape that needs other calls after another shape than after itself."""
    read = {name: shape.ours for name, shape in every.items() if name.startswith(_READ)}
    names = list(read)[::_EACH]
    alone = {name: count_calls(read[name]) for name in names}
    for first, second in permutations(names, 2):
        _, calls = count_in_order([read[first], read[second]])
        if calls != alone[second]:
            yield f"{second} after {first}: {calls} calls, alone {alone[second]}"


if __name__ == "__main__":
    main()
