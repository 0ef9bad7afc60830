"""Every input of the corpus runs through its target."""

from __future__ import annotations

import pytest
from fuzz import converters, targets


@pytest.mark.parametrize("name", targets.TARGETS)
def test_corpus(name):
    """An input of the corpus raises only errors of this library."""
    inputs = list(targets.corpus(name))
    assert inputs
    for data in inputs:
        targets.run(targets.TARGETS[name], data)


@pytest.mark.parametrize("name", converters.TARGETS)
def test_first_inputs(name):
    """The conformance vectors are first inputs of each target and raise only errors of this library."""
    first = list(converters.seeds(name))
    assert first
    for data in first:
        targets.run(targets.TARGETS[name], data)
