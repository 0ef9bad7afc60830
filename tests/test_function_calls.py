"""No shape of an event is slow: its function calls stay within a bound, on any machine.

A slow path calls many functions, so it fails these tests without a clock. The shapes and their
bounds are in `benchmarks/_shapes.py`; `python benchmarks shapes -- --calls` prints the counts.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from itertools import permutations
from pathlib import Path

import pytest

from cloudevents_kafka import register_format
from cloudevents_kafka.attributes import extension_types
from cloudevents_kafka.formats.json import JsonFormat

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

sys.path.insert(0, str(BENCHMARKS))
try:
    from _calls import count_calls, count_in_order
    from _peer_samples import peer_samples
    from _shapes import GROUPS, PEER_CALLS, shapes
finally:
    sys.path.remove(str(BENCHMARKS))
    for name in ("converters", "formats"):  # tests has folders of these names
        sys.modules.pop(name, None)

SHAPES = {f"{shape.group}, {shape.name}": shape for shape in shapes()}


@pytest.fixture(autouse=True)
def new_process(registry):
    """Forget the extensions that other modules registered, and the names that JSON of their events had."""
    extension_types.restore({})
    register_format("json", JsonFormat)


@pytest.mark.parametrize("name", SHAPES)
def test_calls_stay_within_the_bound(name):
    """A shape needs no more function calls than its bound."""
    shape = SHAPES[name]
    assert count_calls(shape.ours) <= shape.calls


def test_calls_of_what_peers_wrote():
    """The records of each peer need no more function calls than its bounds: most of them, and the slowest."""
    kinds = defaultdict(list)
    for sample in peer_samples():
        kinds[sample.peer, sample.encoding].append(sample.read)
    assert kinds.keys() == PEER_CALLS.keys()
    for kind, works in kinds.items():
        counts = sorted(count_in_order(works))
        assert counts[len(counts) // 2] <= PEER_CALLS[kind][0], kind
        assert counts[-1] <= PEER_CALLS[kind][1], kind


READ = [name for name in SHAPES if name.startswith(("json", "binary", "lenient", "producers"))]


def test_calls_do_not_depend_on_neighbours():
    """A record needs as many function calls after one of another kind as after one of its own."""
    alone = {name: count_calls(SHAPES[name].ours) for name in READ[::3]}
    for first, second in permutations(alone, 2):
        _, calls = count_in_order([SHAPES[first].ours, SHAPES[second].ours])
        assert calls == alone[second], (first, second)


def test_shapes_are_many():
    """There are at least 40 shapes, of each group some, with different names."""
    assert len(SHAPES) == len(shapes()) >= 40
    assert {shape.group for shape in SHAPES.values()} == GROUPS.keys()
