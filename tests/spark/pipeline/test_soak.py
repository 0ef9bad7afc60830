"""A sample of `make soak`: a driver, its Java, a worker, an executor and a broker are killed under load."""

from __future__ import annotations

import secrets

import pytest

from . import soak

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]


def test_killed_five_times() -> None:
    """Each record is in each kind of table once, as readers other than Spark find; the seed is printed."""
    soak.run(kills=len(soak.VICTIMS), seed=secrets.randbelow(1 << 31), rate=50, most_batches=1)
