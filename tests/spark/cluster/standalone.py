"""A standalone cluster of Spark on loopback: a master and two workers, from PySpark's own jars."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .spark_home import QUICK

SECONDS = 60


class Cluster:
    """A running cluster; ``url`` is its master."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def start(self) -> None:
        """Start all processes, and wait until the workers are registered."""
        _, log = self._run("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1")
        self.url = self._wait(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        for number in range(2):
            self.start_worker(f"worker-{number}")

    def start_worker(self, name: str) -> None:
        """Start a worker of one core, and wait until it is registered."""
        options = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
        where = ("--work-dir", str(self._folder / name))
        process, log = self._run(name, "org.apache.spark.deploy.worker.Worker", *options, *where, self.url)
        self.workers.append(process)
        self._wait(log, "Successfully registered with master")

    def _run(self, name: str, main: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
        java = Path(self._environment["JAVA_HOME"], "bin", "java")
        jars = Path(self._environment["SPARK_HOME"], "jars", "*")
        opened = ["java.base/java.nio", "java.base/sun.nio.ch", "java.base/java.lang", "java.base/java.util"]
        argv = [str(java), *QUICK.split(), *(f"--add-opens={name}=ALL-UNNAMED" for name in opened)]
        # Without the web page, whose port another process may have.
        argv += ["-Dspark.ui.enabled=false", "-cp", f"{self._folder}{os.pathsep}{jars}", main]
        argv += ["--port", "0", "--webui-port", "0", *arguments]
        log = self._folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                argv, stdout=output, stderr=output, cwd=self._folder, env=self._environment
            )
        self._processes.append(process)
        return process, log

    def _wait(self, log: Path, pattern: str) -> str:
        """Return the last group of a pattern in a log as soon as it is there."""
        deadline = time.monotonic() + SECONDS
        while not (found := re.search(pattern, log.read_text())):
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.1)
        return found[found.re.groups]

    def stop(self) -> None:
        """Kill what is still running; executors end with their workers."""
        for process in reversed(self._processes):
            process.kill()
            process.wait(30)


@contextmanager
def standalone(folder: Path, environment: Mapping[str, str]) -> Iterator[Cluster]:
    """Start a cluster, yield it and stop it."""
    info = "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\nappender.out.type = Console\n"
    info += "appender.out.name = out\nappender.out.layout.type = PatternLayout\n"
    (folder / "log4j2.properties").write_text(f"{info}appender.out.layout.pattern = %p %c: %m%n%ex\n")
    cluster = Cluster(folder, environment)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
