"""Settings for all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, Phase, settings

from cloudevents_kafka.registry import temporarily
from tests.support.spark_classes import share_classes
from tests.support.strategies import scaled

# On two shared cores a slow example is not a failure; each run tries the same examples.
settings.register_profile("house", max_examples=scaled(100), deadline=None, derandomize=True, print_blob=True)
settings.load_profile("house")
# Before a release, examples are others each time.
settings.register_profile("random", max_examples=scaled(100), deadline=None, print_blob=True)
# Of a mutant's failure only the exit status matters, and a busy machine is not a failure.
settings.register_profile(
    "first",
    settings.get_profile("house"),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)

# A process started in the background ignores Ctrl-C, and tests of Ctrl-C would wait without end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


pytest_plugins = [
    "tests.support.collecting",
    "tests.support.groups",
    "tests.support.one_broker",
    "tests.support.quick_spark",
    "tests.support.time_limits",
]

# Modules that import PySpark are not collected where it is not installed.
collect_ignore = [] if find_spec("pyspark") else ["cli/demo", "spark"]
share_classes()


@pytest.fixture(autouse=True)
def sigterm() -> Iterator[None]:
    """Fail a test that leaves a handler of SIGTERM: a run of another test would not end at the signal."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    after = signal.signal(signal.SIGTERM, before)
    assert after == before, f"the test must restore the handler of SIGTERM, got {after}"


@pytest.fixture
def registry() -> Iterator[None]:
    """Restore the registrations after a test."""
    with temporarily():
        yield
