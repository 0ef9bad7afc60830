"""The cache folder is where the user wants it."""

from __future__ import annotations

import pytest

from cloudevents_kafka.jvm import CACHE_VARIABLE, cache_folder


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({CACHE_VARIABLE: "/own"}, "/own"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/cloudevents-kafka"),
        ({"XDG_CACHE_HOME": "relative"}, "/home/.cache/cloudevents-kafka"),
        ({}, "/home/.cache/cloudevents-kafka"),
    ],
)
def test_cache_folder(monkeypatch, env, folder):
    """The package's variable comes first, then XDG's (absolute, as XDG requires), then the home folder."""
    for name in (CACHE_VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert str(cache_folder()) == folder
