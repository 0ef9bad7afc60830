"""`with_registry`: registered extensions and formats in Spark's Python workers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from cloudevents_kafka.registry import register_all, registered

_Result = TypeVar("_Result")


def with_registry(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return a function that first registers the extensions and formats that are registered here now.

    A worker is a separate process, which does not have the registry of the driver.
    """
    registry = registered()

    @functools.wraps(function)  # PySpark reads the types of a UDF
    def run(*args: Any) -> _Result:
        register_all(registry)
        return function(*args)

    return run
