"""Parts of `make soak`: one program is killed under load; each kind of table lands on a cluster."""

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


@pytest.mark.parametrize("compared", ["", "-upsert", "-distinct"])
def test_landing_on_a_cluster(compared: str) -> None:
    """An executor in a process of its own lands each kind of table, and no start ends with an error."""
    soak.run_on_cluster([f"{to}{compared}" for to in ("delta", "iceberg")])


def test_killed_once() -> None:
    """Each record is in a table once, as a reader other than Spark finds; kind and seed are by chance."""
    kind = secrets.choice(soak.KINDS)
    soak.run(kills=1, seed=secrets.randbelow(1 << 31), rate=50, most_batches=1, kinds=[kind])
