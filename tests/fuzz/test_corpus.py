"""What the fuzzer found stays found: every kept input runs through its target."""

from __future__ import annotations

import pytest
from fuzz import converters, targets


@pytest.mark.parametrize("name", targets.TARGETS)
def test_kept_inputs(name):
    """Nothing but errors of ours, on inputs that reach every corner."""
    inputs = list(targets.corpus(name))
    assert inputs
    for data in inputs:
        targets.run(targets.TARGETS[name], data)


@pytest.mark.parametrize("name", converters.TARGETS)
def test_first_inputs(name):
    """The vectors, in all their notations, are something to begin with, and run through, too."""
    first = list(converters.seeds(name))
    assert first
    for data in first:
        targets.run(targets.TARGETS[name], data)
