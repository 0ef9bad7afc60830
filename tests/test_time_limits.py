"""A test that exceeds its limit fails, wherever it is, and no other result is lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest_plugins = "pytester"

CONFTEST = """
import time

import pytest

pytest_plugins = ["tests.support.time_limits"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    if "report" in item.name:
        time.sleep(1.2)  # longer than the limit, in pytest itself
    return (yield)
"""


@pytest.mark.parametrize("processes", ["0", pytest.param("2", marks=pytest.mark.release)])
def test_a_time_out_fails_one_test(
    processes: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a call, a set-up and a tear-down, and in code that catches exceptions; also under pytest-xdist."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile((Path(__file__).parent / "support" / "slow_phases.py").read_text())
    options = ("-q", "-n", processes, "-p", "no:cacheprovider", "-p", "no:cloudevents_kafka")
    result = pytester.run(sys.executable, "-m", "pytest", *options, timeout=60)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=3, failed=6, errors=3)
    text = result.stdout.str()
    assert "INTERNALERROR" not in text
    for name, phase in {"test_call": "call", "test_setup": "setup", "test_teardown": "teardown"}.items():
        assert f"TimedOut: Timeout (>0.5s) in {phase}" in text, name
