"""`ship`: a function for the server of Spark Connect, which takes this package along.

PySpark pickles the functions of this module themselves, not their names, so the server's Python needs
no `cloudevents_kafka`: it uses the client's package if it has none.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cloudevents_kafka.spark.package_zip import write_zip

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def ship(function: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    """Return a function that calls this one on the server, and takes this package there if necessary."""
    from pyspark import cloudpickle as cloudpickle_module

    cloudpickle: Any = cloudpickle_module  # it has no types
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    pickled = cloudpickle.dumps(function)
    with TemporaryDirectory() as folder:
        file = Path(folder, "package.zip")
        write_zip(file)
        package = file.read_bytes()
    loaded: list[Any] = []

    def run(batch: Any, number: int) -> None:
        if not loaded:
            _unpack(batch.sparkSession, package)
            loaded.append(_load(pickled))
        loaded[0](batch, number)

    return run


def _unpack(spark: Any, package: bytes) -> None:
    """Add the package to this process and to the workers of the session, unless it is installed."""
    import hashlib
    import os
    import tempfile
    from importlib.util import find_spec

    found = find_spec("cloudevents_kafka")
    if found is not None and found.origin is not None:  # a folder without modules has none
        return
    folder = tempfile.mkdtemp(prefix="cloudevents-kafka-")
    path = os.path.join(folder, f"cloudevents_kafka_{hashlib.sha256(package).hexdigest()[:16]}.zip")  # noqa: PTH118
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(package)
    sys.path.insert(1, path)
    spark.addArtifacts(path, pyfile=True)


def _load(pickled: bytes) -> Any:
    """Return the function; raise `ModuleNotFoundError` with advice."""
    try:
        return pickle.loads(pickled)  # noqa: S301  # of the client, as the job itself
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise ModuleNotFoundError(
            f"{package} is missing in the Python of the server of Spark Connect: install "
            "cloudevents-kafka[spark] there, or set PYSPARK_PYTHON of the server to a Python that has it",
            name=error.name,
        ) from None
