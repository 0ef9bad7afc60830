"""Tests that share a broker or a Spark session run on one worker of pytest-xdist."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def test_a_group_runs_on_one_worker(pytester: pytest.Pytester) -> None:
    """The tests of a group run on one worker."""
    pytester.makepyfile(
        """
        import os
        import time
        from pathlib import Path

        import pytest

        @pytest.mark.parametrize("number", range(12))
        @pytest.mark.xdist_group("one")
        def test_in_a_group(number):
            time.sleep(0.02)
            Path(os.environ["PYTEST_XDIST_WORKER"]).touch()
        """
    )
    done = pytester.runpytest_subprocess("-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=12)
    assert len(list(pytester.path.glob("gw*"))) == 1
