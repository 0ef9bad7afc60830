"""No shape of an event is slow: its function calls stay near a bound, on any machine.

A slow path calls many functions, so it fails these tests without a clock. The shapes and their
bounds are in `benchmarks/_shapes.py`; `python benchmarks calls` prints the counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

# A change may need some calls more without being slow; before a release the bounds are raised or met.
ROOMS = [1.2, pytest.param(1.0, marks=pytest.mark.release)]


@pytest.fixture(scope="module")
def found() -> Any:
    """Return what `python benchmarks calls` counts in a new process."""
    command = [sys.executable, str(BENCHMARKS), "calls", "--", "--json"]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=110).stdout
    return json.loads(output[output.index("{") :])


@pytest.mark.parametrize("room", ROOMS)
def test_calls_stay_within_the_bounds(found: Any, room: float) -> None:
    """Each shape, and the median and highest of the records of each peer, stay within their bounds."""
    counts = found["counts"]
    assert {name: count for name, count in counts.items() if count[0] > room * count[1]} == {}


def test_shapes_are_many(found: Any) -> None:
    """There are at least 40 shapes, and records of six SDKs."""
    assert len(found["counts"]) >= 40
    assert {"go binary, median", "rust binary, highest"} <= found["counts"].keys()


def test_calls_do_not_depend_on_neighbours(found: Any) -> None:
    """A record needs as many function calls after one of another kind as after one of its own."""
    assert found["neighbours"] == []
