"""Settings for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from cloudevents_kafka import extensions

# Two shared cores: a slow moment is no failure, and the same run gives the same examples.
settings.register_profile("house", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("house")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Known extensions as they were, when a test is over."""
    for name in ("_extensions", "_ruled", "_registered"):
        monkeypatch.setattr(extensions, name, getattr(extensions, name).copy())
    yield
    for forget in extensions._on_registration:
        forget()
