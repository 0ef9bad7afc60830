"""Checks of functions that users pass as callbacks."""

from __future__ import annotations

import inspect
from types import CoroutineType


def is_coroutine_function(function: object) -> bool:
    """Return whether a call of a function, or of another object, returns a coroutine."""
    call = getattr(type(function), "__call__", None)  # noqa: B004  # an object may have a coroutine as its call
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def check_callbacks(**functions: object) -> None:
    """Raise `TypeError` if a callback is a coroutine function, because the caller would not await it."""
    for name, function in functions.items():
        if is_coroutine_function(function):
            raise TypeError(f"{name} must be a plain function, got a coroutine function")


def check_result(name: str, result: object) -> None:
    """Raise `TypeError` if a callback has returned a coroutine, because the caller does not await it."""
    if isinstance(result, CoroutineType):
        result.close()
        raise TypeError(f"{name} must be a plain function, got a function that returns a coroutine")
