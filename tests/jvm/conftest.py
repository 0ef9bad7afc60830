"""An empty cache for each test, and a Maven repository on 127.0.0.1."""

from __future__ import annotations

import pytest

from cloudevents_kafka.jvm import CACHE_VARIABLE
from cloudevents_kafka.jvm._web import MIRROR_VARIABLE
from tests.support.maven_repository import serving


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    """Return the folder of an empty cache, which replaces the user's."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def mirror(monkeypatch, empty_cache):
    """A Maven repository, named as the mirror, and an empty cache."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as repository:
        monkeypatch.setenv(MIRROR_VARIABLE, repository.url)
        yield repository
