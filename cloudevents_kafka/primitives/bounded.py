"""Caches and windows of limited size, because their keys are untrusted input."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MAX_ENTRIES: Final = 4096
MAX_KEY_LENGTH: Final = 256
OTHERS: Final = "(others)"
"""The label under which all labels without a count of their own are counted."""


def remember(cache: dict[K, V], key: K, value: V, max_entries: int = MAX_ENTRIES) -> V:
    """Store a value in a cache, and return the value; a full cache is emptied first.

    If the key is a text longer than `MAX_KEY_LENGTH`, the value is not stored. The cache is an ordinary
    dictionary, because no other object is faster to read.
    """
    if not isinstance(key, str) or len(key) <= MAX_KEY_LENGTH:
        if len(cache) >= max_entries:
            cache.clear()
        cache[key] = value
    return value


def remember_text(cache: set[str], text: str) -> None:
    """Store a text in a set of texts, with the same limits as `remember`."""
    if len(text) <= MAX_KEY_LENGTH:
        if len(cache) >= MAX_ENTRIES:
            cache.clear()
        cache.add(text)


class Window(OrderedDict[K, V]):
    """A dictionary of limited size; if it is full, a new entry removes the oldest entry."""

    def __init__(self, max_entries: int) -> None:
        super().__init__()
        self._max_entries = max_entries

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._max_entries:
            self.popitem(last=False)
