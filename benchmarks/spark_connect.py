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

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "spark" / "fast")]

from connect_server import connect_server, environment  # noqa: E402
from spark_decode import generate  # noqa: E402

from cloudevents_kafka.jvm import CACHE_VARIABLE  # noqa: E402

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
        for part, server_jar in (("plain", ()), ("jar", ("--jars", str(jar)))):
            scratch = folder / part
            scratch.mkdir()
            added = settings if server_jar else {}
            with connect_server(scratch, {**SERVER, **added}, *server_jar) as url:
                ways = ["server"] if server_jar else ["raw", "cache", "setting", "udf"]
                command = [sys.executable, __file__, "--client", url, str(folder), *ways]
                command += [f"--rows={options.rows}", f"--udf-rows={options.udf_rows}"]
                command += [f"--rounds={options.rounds}"]
                subprocess.run(command, check=True, env=environment())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--udf-rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--client", nargs="+", metavar=("URL", "FOLDER"), help=argparse.SUPPRESS)
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
    from pyspark.sql import SparkSession

    from cloudevents_kafka.spark import decode_events

    logging.disable(logging.WARNING)
    url, name, *ways = options.client
    folder = Path(name)
    caches = {"cache": folder / "cache"}
    for mode in ("binary", "structured"):
        for way in ways:
            os.environ[CACHE_VARIABLE] = str(caches.get(way, folder / "no-cache"))
            spark = SparkSession.builder.remote(url).create()
            if way == "setting":
                spark.conf.set(JAR_SETTING, str(folder / "cache" / "ce.jar"))
            rows = options.udf_rows if way == "udf" else options.rows
            df = generate(spark, mode, rows, 2, folder)
            figures = []
            for turn in range(-WARM_UPS, options.rounds):
                start = time.perf_counter()
                result = df if way == "raw" else decode_events(df)
                result.write.format("noop").mode("overwrite").save()
                if turn >= 0:
                    figures.append(rows / (time.perf_counter() - start))
            in_java = way != "raw" and "Functions$Read" in result._explain_string()  # noqa: SLF001
            print(
                f"  {spark.version}  {mode:<11} {way:<8} {'Java' if in_java else '':<5}"
                f"{statistics.median(figures):12,.0f}",
                flush=True,
            )
            spark.stop()


if __name__ == "__main__":
    main()
