"""What Spark's Python workers must know before they run a function of ours."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from cloudevents_kafka.registry import register_all, registered

_Result = TypeVar("_Result")


def informed(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return the function as one that brings along the extensions and formats registered here, now.

    A worker is a process of its own: what the driver's has registered is unknown there.
    """
    known = registered()

    @functools.wraps(function)  # PySpark reads the types of a UDF
    def run(*given: Any) -> _Result:
        register_all(known)
        return function(*given)

    return run
