"""Settings for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from cloudevents_kafka.registry import temporarily

# Two shared cores: a slow moment is no failure, and the same run gives the same examples.
settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("house")


@pytest.fixture
def registry() -> Iterator[None]:
    """What was registered as it was, when a test is over."""
    with temporarily():
        yield
