"""Tests are collected without the cyclic garbage collector.

What is collected stays until the end, so that looking for garbage among it takes half the time of collecting,
and later collections, as by tests that call `gc.collect`, would each take a second.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect tests; then leave what they consist of out of each later search for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
