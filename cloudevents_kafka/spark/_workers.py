"""`with_registry` prepares functions for Python workers; a worker imports this package only if necessary.

PySpark pickles the code of the functions in this module, rather than their names. So a job runs on workers
without this package as long as no row needs the package. If a row needs the package, the job fails with
advice.
"""

from __future__ import annotations

import functools
import inspect
import pickle
import sys
import zipimport
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

from cloudevents_kafka.registry import registered

_Result = TypeVar("_Result")


def with_registry(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """Return a function that registers this process's extensions and formats, then calls ``function``.

    A worker is a separate process, which does not have the driver's registry. A batch that contains only
    nulls is returned unchanged.
    """
    from pyspark import cloudpickle as cloudpickle_module

    cloudpickle: Any = cloudpickle_module  # it has no types
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    pickled = cloudpickle.dumps((registered(), function))
    loaded: list[Any] = []
    is_first = True  # the first call in a task: each task unpickles the function again

    @functools.wraps(function)
    def run(*args: Any) -> _Result:
        nonlocal is_first
        result: _Result = args[0]
        if not hasattr(result, "notna") or result.notna().any():
            if not loaded:
                loaded.extend(_load(pickled))
            register_all, registry, run_here = loaded
            register_all(registry)
            result = run_here(*args)
        if is_first:
            is_first = False
            _speed_up_next_task()
        return result

    # The function must not refer to this package. PySpark reads the type hints of an Arrow UDF. If another
    # function had type hints, PySpark would treat it as an Arrow UDF.
    del run.__wrapped__  # type: ignore[attr-defined]  # set by functools.wraps
    hints = get_type_hints(function)
    is_arrow = getattr(hints.get("return"), "__name__", "") == "Series"
    run.__annotations__ = hints if is_arrow else {}
    run.__signature__ = _signature(function, typed=is_arrow)  # type: ignore[attr-defined]
    return run


def _signature(function: Callable[..., Any], *, typed: bool) -> inspect.Signature:
    signature = inspect.signature(function, eval_str=True)
    if typed:
        return signature
    none = inspect.Parameter.empty
    parameters = [parameter.replace(annotation=none) for parameter in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=none)


def _load(pickled: bytes) -> tuple[Callable[[Any], None], Any, Callable[..., Any]]:
    """Return `register_all` and the two objects in ``pickled``.

    The first object contains the extensions and formats that are registered in the driver. The second object
    is the function that the Python worker calls with rows. Raises `ModuleNotFoundError` with advice if a
    package is missing.
    """
    try:
        registry, function = pickle.loads(pickled)  # noqa: S301  # from the driver, as the job itself
        from cloudevents_kafka.registry import register_all
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package == "cloudevents_kafka":
            advice = (
                "write the package to a zip by `cloudevents-kafka spark-zip FILE` and start Spark with "
                "--py-files FILE (spark.submit.pyFiles), or"
            )
        else:
            advice = "to decode and encode records,"
        raise ModuleNotFoundError(
            f"{package} is missing in the Python workers of Spark: {advice} install the package with "
            "the extra spark where the workers run, or set PYSPARK_PYTHON to a Python that has it",
            name=error.name,
        ) from None
    return register_all, registry, function


def _speed_up_next_task() -> None:
    """Shorten the next task of this Python worker by about 0.2 s.

    Before each task, PySpark calls `importlib.invalidate_caches`, which reads the directory of pyspark.zip
    once for each package in the zip. This function removes the cached finders, so that PySpark reads no
    directory; the next import creates the finders again.
    """
    cache = sys.path_importer_cache
    for path in [path for path, finder in cache.items() if isinstance(finder, zipimport.zipimporter)]:
        del cache[path]
