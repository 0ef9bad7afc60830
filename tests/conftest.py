"""Settings for all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from hypothesis import settings

from cloudevents_kafka.registry import temporarily

# On two shared cores a slow example is not a failure; each run tries the same examples.
settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("house")

# A process started in the background ignores Ctrl-C, and tests of Ctrl-C would wait without end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Modules that import PySpark are not collected where it is not installed.
collect_ignore = [] if find_spec("pyspark") else ["demo", "spark"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share a broker or a Spark session on one worker of pytest-xdist."""
    for item in items:
        if name := group(item):
            item.add_marker(pytest.mark.xdist_group(name))


def group(item: pytest.Item) -> str | None:
    """Return the name of what a test shares with others, or None."""
    fixtures = set(getattr(item, "fixturenames", ()))
    if fixtures & {"spark", "no_other_spark"} or item.get_closest_marker("spark"):
        return "spark" if "spark" in fixtures or item.path.parent.name == "spark" else "pipeline"
    if item.get_closest_marker("legacy"):
        return "old brokers"
    if "kafka_broker" in fixtures or item.get_closest_marker("broker"):
        return "broker"
    return None


@pytest.fixture
def registry() -> Iterator[None]:
    """What was registered as it was, when a test is over."""
    with temporarily():
        yield
