"""Spark Connect: events decoded per second with each way to get the Java function, and without it.

A server in a process of its own reads Parquet with the columns of Spark's Kafka source and writes to
a sink that discards rows. The ways: the server was started with the jar; the client adds the jar from
the cache folder; the client adds the jar that a setting names; no jar, so that an Arrow UDF decodes.

python benchmarks spark_connect [-- --rows 500000 --udf-rows 50000 --rounds 3]
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from spark_decode import generate

from cloudevents_kafka.jvm import CACHE_VARIABLE
from tests.spark.java.connect_server import connect_server, environment

JAR_SETTING = "spark.sql.catalog.cloudevents_kafka.jar"
WARM_UPS = 2
# Not the options of tests, which limit the optimization of short runs.
SERVER = {"spark.driver.memory": "4g", "spark.driver.extraJavaOptions": "-Dfile.encoding=UTF-8"}


def main() -> None:
    """Start the servers, measure, print."""
    options = _options()
    if options.client:
        _run_client(options)
        return
    with tempfile.TemporaryDirectory(prefix="spark-connect-") as name:
        folder = Path(name)
        jar = folder / "cache" / "ce.jar"
        settings = _write_jar(jar)
        print(f"{options.rows:,} rows ({options.udf_rows:,} for the UDF), 2 cores, rows/s:", flush=True)
        for part in ("plain", "jar"):
            (folder / part).mkdir()
        with (
            connect_server(folder / "plain", SERVER) as plain,
            connect_server(folder / "jar", {**SERVER, **settings}, "--jars", str(jar)) as with_jar,
        ):
            command = [sys.executable, __file__, "--client", plain, with_jar, str(folder)]
            command += [f"--rows={options.rows}", f"--udf-rows={options.udf_rows}"]
            command += [f"--rounds={options.rounds}"]
            subprocess.run(command, check=True, env=environment())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--udf-rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--client", nargs=3, metavar="URL", help=argparse.SUPPRESS)
    return parser.parse_args()


def _write_jar(jar: Path) -> dict[str, str]:
    """Write the jar by the command, also to a cache folder next to it, and return its settings."""
    jar.parent.mkdir()
    command = [sys.executable, "-c", "from cloudevents_kafka.cli import main; main()", "spark-jar", str(jar)]
    variables = {**environment(), CACHE_VARIABLE: str(jar.parent)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=variables)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


# --- in the client's process ---------------------------------------------------------


def _run_client(options: argparse.Namespace) -> None:
    """Measure all ways by turns, so that other load on the machine slows each of them."""
    from pyspark.sql import SparkSession

    logging.disable(logging.WARNING)
    plain, with_jar, name = options.client
    urls = dict.fromkeys(("raw", "cache", "setting", "udf"), plain) | {"server": with_jar}
    for mode in ("binary", "structured"):
        frames = {}
        for way, url in urls.items():
            spark = SparkSession.builder.remote(url).create()
            if way == "setting":
                spark.conf.set(JAR_SETTING, str(Path(name) / "cache" / "ce.jar"))
            rows = options.udf_rows if way == "udf" else options.rows
            frames[way] = (rows, generate(spark, mode, rows, 2, Path(name)))
        rates: dict[str, list[float]] = {way: [] for way in urls}
        for turn in range(-WARM_UPS, options.rounds):
            for way, (rows, df) in frames.items():
                rate = _measure(way, df, rows, Path(name))
                if turn >= 0:
                    rates[way].append(rate)
        for way, (_, df) in frames.items():
            low, high = min(rates[way]), max(rates[way])
            version, median = df.sparkSession.version, statistics.median(rates[way])
            print(
                f"  {version}  {mode:<11} {way:<8} {median:12,.0f}  ({low:,.0f} to {high:,.0f})", flush=True
            )
            df.sparkSession.stop()


def _measure(way: str, df: Any, rows: int, folder: Path) -> float:
    """Return the rows per second of one way."""
    from cloudevents_kafka.spark import decode_events

    os.environ[CACHE_VARIABLE] = str(folder / ("cache" if way == "cache" else "no-cache"))
    start = time.perf_counter()
    result = df if way == "raw" else decode_events(df)
    result.write.format("noop").mode("overwrite").save()
    rate = rows / (time.perf_counter() - start)
    in_java = "Functions$Read" in result._explain_string()  # noqa: SLF001
    assert in_java == (way in {"cache", "setting", "server"}), way
    return rate


if __name__ == "__main__":
    main()
