"""Settings for all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from hypothesis import settings

from cloudevents_kafka.registry import temporarily
from tests.support.spark_classes import share_classes

# On two shared cores a slow example is not a failure; each run tries the same examples.
settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("house")
# Before a release, examples are others each time.
settings.register_profile("random", deadline=None, print_blob=True)

# A process started in the background ignores Ctrl-C, and tests of Ctrl-C would wait without end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


pytest_plugins = ["tests.support.time_limits"]

# Modules that import PySpark are not collected where it is not installed.
collect_ignore = [] if find_spec("pyspark") else ["cli/demo", "spark"]
share_classes()


# What tests share on one worker of pytest-xdist, the longest first, so that the others run at the same time.
GROUPS = ("broker", "tables", "landing", "pipeline", "spark", "program", "old brokers", "")

# Folders of the pipeline whose tests have sessions of their own, as together they would take longest.
SESSIONS = {
    "landing": "landing",
    **dict.fromkeys(("backfill", "batches", "replays", "tables"), "tables"),
}


@pytest.hookimpl(tryfirst=True)  # before that of pytest-xdist, which reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share a broker or a Spark session on one worker, and begin with the longest."""
    kinds = {item: group(item) for item in items}
    for item, kind in kinds.items():
        if kind:
            item.add_marker(pytest.mark.xdist_group(item.path.stem if kind == "program" else kind))
    items.sort(key=lambda item: GROUPS.index(kinds[item]))


def group(item: pytest.Item) -> str:
    """Return what a test shares with others."""
    fixtures = set(getattr(item, "fixturenames", ()))
    if "spark" in fixtures:
        return "spark"
    if "session" in fixtures:
        return next((SESSIONS[part] for part in item.path.parts if part in SESSIONS), "pipeline")
    if "spark" in item.path.parts or item.get_closest_marker("spark"):
        return "program"
    if item.get_closest_marker("legacy"):
        return "old brokers"
    return "broker" if "kafka_broker" in fixtures or item.get_closest_marker("broker") else ""


@pytest.fixture
def registry() -> Iterator[None]:
    """Restore the registrations after a test."""
    with temporarily():
        yield
