"""The groups of tests: what shares a broker or a Spark session runs on one worker of pytest-xdist.

The longest group begins first. ``--shuffle any`` draws the order of files in a group, and of tests in a file,
by chance, from a seed that is printed; ``--shuffle SEED`` draws that order again. With pytest-xdist the
summary has the seconds of each group; ``--budget SECONDS`` warns if the whole run takes longer.
``--pipeline-groups N`` makes N groups of the tests of pipelines, by file, each with its own session of Spark.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

import pytest

# The longest first, so that the others run at the same time.
GROUPS = ("pipeline", "broker", "clients", "spark", "old brokers", "program", "")
OTHERS = "others"
PROGRAMS = "program"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plug-in."""
    options = parser.getgroup("groups")
    options.addoption("--shuffle", metavar="SEED", help="draw the order in groups; any: by a new seed")
    options.addoption("--pipeline-groups", type=int, default=1, metavar="N", help="share pipelines' tests")
    options.addoption("--budget", type=float, metavar="SECONDS", help="warn if the run takes longer")


def pytest_configure(config: pytest.Config) -> None:
    """Draw a seed if none is chosen, and register what counts seconds."""
    if config.option.shuffle == "any":
        drawn = str(random.randrange(1 << 31))
        config.option.shuffle = getattr(config, "workerinput", {}).get("shuffle", drawn)
    if getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondsByGroup(config.option.budget))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the seed to a worker of pytest-xdist, as all must have the same order."""
    node.workerinput["shuffle"] = node.config.option.shuffle


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return the line with the seed."""
    seed = config.option.shuffle
    return None if seed is None else f"order within groups: --shuffle {seed}"


@pytest.hookimpl(tryfirst=True)  # before that of pytest-xdist, which reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Name the group of each test, and order the tests by their groups."""
    groups = {item: group(item) for item in items}
    files = {path: path.relative_to(config.rootpath).as_posix() for path in {item.path for item in items}}
    of_pipelines = sorted({item.path for item, name in groups.items() if name == "pipeline"})
    count = config.option.pipeline_groups
    parts = {path: f"pipeline {number % count}" for number, path in enumerate(of_pipelines)}
    for item, name in groups.items():
        if item.get_closest_marker("xdist_group") is None:
            # So is a file: a message of pytest-xdist for each test would take longer than most tests.
            own = {"": files[item.path], PROGRAMS: files[item.path], "pipeline": parts.get(item.path)}
            item.add_marker(pytest.mark.xdist_group(own.get(name, name)))
    if config.option.shuffle is not None:
        shuffle(items, random.Random(config.option.shuffle))
    items.sort(key=lambda item: GROUPS.index(groups[item]))


def shuffle(items: list[pytest.Item], chance: random.Random) -> None:
    """Draw the order of files, and of the tests in each: fixtures of a file are made once."""
    chance.shuffle(items)
    files = list(dict.fromkeys(item.path for item in items))
    items.sort(key=lambda item: files.index(item.path))


def group(item: pytest.Item) -> str:
    """Return the name of what a test shares with others, or an empty string."""
    fixtures = set(getattr(item, "fixturenames", ()))
    if "spark" in fixtures:
        return "spark"
    if "session" in fixtures:
        return "pipeline"
    if "spark" in item.path.parts or item.get_closest_marker("spark"):
        return PROGRAMS
    if item.get_closest_marker("legacy"):
        return "old brokers"
    if "kafka_broker" not in fixtures and item.get_closest_marker("broker") is None:
        return ""
    return "clients" if "clients" in item.path.parts else "broker"


class SecondsByGroup:
    """The seconds of each group, from the names that pytest-xdist appends to those of tests."""

    def __init__(self, budget: float | None) -> None:
        self._budget = budget
        self._started = time.monotonic()
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test, _, name = report.nodeid.rpartition("@")
        is_file = not test or name.endswith(".py") or "]" in name
        self._seconds[OTHERS if is_file else name] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        taken = time.monotonic() - self._started
        parts = [f"{name} {seconds:.0f}" for name, seconds in self._seconds.most_common()]
        terminalreporter.write_line(f"seconds by group: {', '.join(parts)}; together in {taken:.0f}")
        if self._budget is not None and taken > self._budget:
            terminalreporter.write_line(
                f"WARNING: tests must take {self._budget:.0f} s or less on 2 idle cores, took {taken:.0f} s; "
                "move what takes longest to make release, and leave a sample of it",
                yellow=True,
            )
