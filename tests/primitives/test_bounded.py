"""Caches and windows of bounded size."""

from __future__ import annotations

from cloudevents_kafka.primitives.bounded import MAX_ENTRIES, MAX_KEY_LENGTH, Window, remember


def test_a_cache_is_bounded() -> None:
    """A full cache is emptied; the value is stored and returned."""
    cache: dict[int, str] = {}
    for number in range(2 * MAX_ENTRIES + 1):
        assert remember(cache, number, str(number)) == str(number)
        assert len(cache) <= MAX_ENTRIES
    assert cache == {2 * MAX_ENTRIES: str(2 * MAX_ENTRIES)}
    remember(cache, 1, "1", max_entries=1)
    assert cache == {1: "1"}


def test_a_long_text_is_not_stored() -> None:
    """The length of a cached text is bounded; its value is returned all the same."""
    cache: dict[str, int] = {}
    for length in (MAX_KEY_LENGTH, MAX_KEY_LENGTH + 1):
        assert remember(cache, "x" * length, length) == length
    assert cache == {"x" * MAX_KEY_LENGTH: MAX_KEY_LENGTH}


def test_a_window_has_the_newest_entries() -> None:
    """An entry that is set again counts as new; the oldest one is removed."""
    window: Window[str, int] = Window(2)
    window["a"], window["b"], window["a"] = 1, 2, 3
    window["c"] = 4
    assert dict(window) == {"a": 3, "c": 4}


def test_a_window_of_no_entries() -> None:
    """A window of size 0 stores nothing."""
    window: Window[str, int] = Window(0)
    window["a"] = 1
    assert not window
