"""A part of `make soak`: one of driver, Java, worker, executor and broker is killed under load."""

from __future__ import annotations

import secrets

import pytest

from . import soak

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.release,  # test_killed_between_commits is its sample
]


def test_killed_once() -> None:
    """Each record is in a table once, as a reader other than Spark finds; kind and seed are by chance."""
    kind = secrets.choice(soak.KINDS)
    soak.run(kills=1, seed=secrets.randbelow(1 << 31), rate=50, most_batches=1, kinds=[kind])
