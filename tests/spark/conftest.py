"""One Spark session for all tests of this folder."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloudevents_kafka.jvm import find_java
from cloudevents_kafka.spark.table_formats import table_jars
from tests.support.quick_spark import COMPILED, SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"  # short runs need no more
_QUIET = "rootLogger.level = off\n"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder; those of ``pipeline`` have marks of their own."""
    for item in items:
        if item.nodeid.startswith("tests/spark/") and not item.nodeid.startswith("tests/spark/pipeline/"):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.timeout(300))
            # PySpark leaves the sockets of results to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(params=["java", pytest.param("python", marks=pytest.mark.release)])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read records by the Java function, then by Python workers."""
    if request.param == "python":
        monkeypatch.setattr("cloudevents_kafka.spark.decode.reader_sql", lambda df, **options: None)


@pytest.fixture(scope="package")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark without the Kafka connector: two threads, in UTC, quiet, on loopback."""
    pytest.importorskip("pyspark", minversion="4.0")
    from pyspark.sql import SparkSession

    folder = tmp_path_factory.mktemp("spark")
    log4j = folder / "log4j2.properties"
    log4j.write_text(_QUIET)
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j.as_uri()} {_QUICK}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # Else each call on a column asks Java for the place of the call; runs of pipelines keep the default.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.jars": ",".join(map(str, table_jars(["avro"]))),
        "spark.local.dir": str(folder),
        "spark.python.daemon.module": "tests.spark.worker_daemon",
    }
    if request.config.option.quick_spark:
        settings |= SETTINGS
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(find_java().home))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        root = Path(__file__).parents[2]
        paths = [str(root), str(root / "spec-conformance"), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        builder = SparkSession.builder.master("local[2]").appName("tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        with chdir(folder):  # Spark creates the folder artifacts where it starts
            session = builder.getOrCreate()
        yield session
        session.stop()
        _end_java()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()  # close the last sockets here, and not in another test


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Compile the queries of a test, as Spark does by default, also with the option ``--quick-spark``."""
    before = {name: spark.conf.get(name) for name in COMPILED}
    for name, value in COMPILED.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def _end_java() -> None:
    """Wait until the Java process has ended, and reset PySpark's references to it."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
    SparkContext._gateway = SparkContext._jvm = None
