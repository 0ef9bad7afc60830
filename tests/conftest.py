"""Settings for all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from cloudevents_kafka.registry import temporarily

# Two shared cores: a slow moment is no failure, and the same run gives the same examples.
settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("house")

# Who is started in the background has Ctrl-C ignored, and tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def registry() -> Iterator[None]:
    """What was registered as it was, when a test is over."""
    with temporarily():
        yield
