"""Recorded messages of many producers are read as the SDK reads them; each difference has its judgement."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import pytest

from tests.support import sdk_reads

RECORDED: dict[str, Any] = json.loads(sdk_reads.READS.read_text("utf-8"))


IS_RECORDED = version("cloudevents") == RECORDED["sdk"]


@pytest.mark.skipif(not IS_RECORDED, reason="the reads of this release are not recorded")
def test_the_recorded_reads_are_those_of_both() -> None:
    """The SDK and the functions here read as the file says; write it by python -m tests.support.sdk_reads."""
    assert sdk_reads.compare() == RECORDED


def test_the_functions_here_read_as_recorded() -> None:
    """What the functions here return and raise does not depend on the release of the SDK."""
    by_name = dict(sdk_reads.records())
    for read in RECORDED["reads"]:
        _, ours = sdk_reads.READERS[read["version"]]
        assert sdk_reads.outcome(ours, by_name[read["record"]]) == read["here"], read["record"]


def test_each_difference_is_judged() -> None:
    """Each read that differs has kinds, each kind has a judgement, and what is refused has clauses."""
    used = set()
    for read in RECORDED["reads"]:
        assert read["kinds"]
        used.update(read["kinds"])
        if "error" in read["here"]:
            assert read["kinds"] == ["refused"]
            assert read["here"]["clauses"]
    assert used == RECORDED["kinds"].keys() == sdk_reads.KINDS.keys()
