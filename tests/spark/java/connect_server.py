"""A Spark Connect server in a process of its own, on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cloudevents_kafka.jvm import find_java

ROOT = Path(__file__).parents[3]
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # short runs do not benefit from more optimization
START_SECONDS = 90


def environment() -> dict[str, str]:
    """Return the environment of a server or client that imports this package and its tests."""
    return {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "spec-conformance")]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def connect_server(
    folder: Path, settings: Mapping[str, str], *options: str, variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Start a server and yield its URL; ``variables`` are its environment."""
    import pyspark

    port = free_port()
    home = Path(pyspark.__file__).parent
    properties = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.local.dir": str(folder),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        **settings,
    }
    file = folder / "spark.properties"
    file.write_text("".join(f"{name} {value}\n" for name, value in properties.items()))
    server_class = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--properties-file", str(file)]
    command += ["--class", server_class, *options, "spark-internal"]
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            cwd=folder,
            env={"SPARK_HOME": str(home), **(variables or environment())},
        )
    try:
        wait_for(port, process, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
