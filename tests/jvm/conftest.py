"""A cache of its own for each test, and a Maven repository on 127.0.0.1."""

from __future__ import annotations

import pytest
from jvm.repository import serving

from cloudevents_kafka.jvm import cache
from cloudevents_kafka.jvm.answers import MIRROR_VARIABLE


@pytest.fixture
def own_cache(monkeypatch, tmp_path):
    """Keep the user's cache out of a test."""
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def mirror(monkeypatch, own_cache):
    """A repository that is the user's own, and an empty cache."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as repository:
        monkeypatch.setenv(MIRROR_VARIABLE, repository.url)
        yield repository
