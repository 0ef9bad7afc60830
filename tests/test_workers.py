"""Tests that share a broker or a Spark session run on one worker of pytest-xdist, in any order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
TESTS = """
    import os
    from pathlib import Path

    import pytest

    @pytest.fixture
    def {fixture}():
        return None

    @pytest.mark.parametrize("number", range(12))
    def test_in_a_group({fixture}, number):
        with open(os.environ["PYTEST_XDIST_WORKER"] + "-{fixture}", "a") as file:
            print(number, file=file)
    """


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Return a function that runs tests of two groups, and returns the order of each, and the output."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for fixture in ("kafka_broker", "spark"):
        pytester.makepyfile(**{f"test_{fixture}": TESTS.format(fixture=fixture)})

    def run(*options: str) -> tuple[dict[str, list[int]], str]:
        done = pytester.runpytest_subprocess(
            *("-p", "tests.support.groups", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadgroup"),
            *options,
        )
        done.assert_outcomes(passed=24)
        files = list(pytester.path.glob("gw*"))
        order = {file.name.partition("-")[2]: list(map(int, file.read_text().split())) for file in files}
        assert len(files) == len(order) == 2  # one file for each group: one worker
        for file in files:
            file.unlink()
        return order, done.stdout.str()

    return run


@pytest.mark.release
def test_a_group_runs_on_one_worker(run) -> None:
    """The tests of a group run on one worker in their order; the summary has the seconds of each."""
    order, output = run()
    assert order == {"kafka_broker": list(range(12)), "spark": list(range(12))}
    assert re.search(
        r"^seconds by group: (broker|spark) \d+, (broker|spark) \d+; together in \d+$", output, re.MULTILINE
    )
    assert "WARNING" not in output


@pytest.mark.release
def test_the_order_in_groups_is_drawn_by_a_seed(run) -> None:
    """A seed that is drawn is printed, and draws the same order again."""
    order, output = run("--shuffle", "any")
    seed = re.search(r"--shuffle (\d+)", output)
    assert seed
    assert all(sorted(numbers) == list(range(12)) for numbers in order.values())
    assert any(numbers != list(range(12)) for numbers in order.values())
    assert run(*seed[0].split())[0] == order


@pytest.mark.release
def test_a_run_that_takes_too_long_is_named(run) -> None:
    """The warning has the seconds that are allowed and those that were taken."""
    assert "WARNING: tests must take 0 s or less on 2 idle cores, took" in run("--budget=0")[1]
