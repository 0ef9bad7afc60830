"""The process from which Spark forks the Python workers of a test session.

PySpark reads the directories of the zip files on the path again before each task, for 0.2 s of CPU time
with Python 3.11, and each worker imports pandas and this package. Here no zip file is on the path, as
PySpark is installed, and the workers inherit the imported packages. Pipelines in processes of their own
use Spark's daemon.
"""

# ruff: noqa: E402  # the path comes first
from __future__ import annotations

import sys

sys.path[:] = [path for path in sys.path if not path.endswith((".zip", ".jar"))]
sys.path_importer_cache.clear()

import pandas as pd  # noqa: F401
import pyspark.daemon

import cloudevents_kafka.spark.udf  # noqa: F401

if __name__ == "__main__":
    pyspark.daemon.manager()
