"""Every input of the corpus runs through its target."""

from __future__ import annotations

import pytest

from tests.fuzz import archive, converters, targets
from tests.support.cases import each
from tests.support.samples import one_in


@each("name", targets.TARGETS)
def test_corpus(name):
    """An input of the corpus raises only errors of this library."""
    inputs = list(targets.corpus(name))
    assert inputs
    for data in inputs:
        targets.run(targets.TARGETS[name], data)


@pytest.mark.parametrize("name", one_in(6, converters.TARGETS))
def test_first_inputs(name):
    """The conformance vectors are first inputs of each target and raise only errors of this library."""
    first = list(converters.seeds(name))
    assert first
    for data in first:
        targets.run(targets.TARGETS[name], data)


def test_inputs_are_added(tmp_path):
    """The archive has its inputs, and those that are added, and the same bytes for the same inputs."""
    folder, path = tmp_path / "found" / "record", tmp_path / "corpus.zip"
    folder.mkdir(parents=True)
    (folder / "new").write_bytes(b"\x00")
    inputs = {**archive.read(), **dict(archive.found(tmp_path / "found"))}
    archive.write(inputs, path)
    assert archive.read(path) == inputs
    assert inputs["record/new"] == b"\x00"
    before = path.read_bytes()
    archive.write(dict(reversed(inputs.items())), path)
    assert path.read_bytes() == before
