"""What makes a broker start fast, made once and kept in the cache.

Formatting a data folder is a start of Java, creating the internal topics takes
the first consumer three seconds, and loading classes is most of a broker's
start. So a broker is run once, used a little and shut down; kept are its
formatted and its used data folder, and an archive of its loaded classes (an
AppCDS archive, which Java ignores should it not fit).
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloudevents_kafka.jvm import Java, cache_folder, find_java, resolve
from cloudevents_kafka.jvm.cache import building, locked
from cloudevents_kafka.jvm.progress import Progress
from cloudevents_kafka.testing.local import clients
from cloudevents_kafka.testing.local.errors import BrokerFailed
from cloudevents_kafka.testing.local.ports import free_ports
from cloudevents_kafka.testing.local.process import Process
from cloudevents_kafka.testing.local.settings import HOST, Ports, server_properties, write_properties

KAFKA_VERSION = "4.3.1"

# Quick to start and small, rather than fast for hours; no files outside its folder.
JVM_OPTIONS = (
    "-Xms64m",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
_FORMATTED, _USED, _ARCHIVE = "formatted", "used", "classes.jsa"
# Of the used folder only what tells that the internal topics exist; what was in
# them, and in others, is left behind and made anew, empty.
_KEPT = frozenset({"meta.properties", "bootstrap.checkpoint", "__cluster_metadata-0"})


@dataclass(frozen=True, slots=True)
class Prepared:
    """Java, Kafka's jars, and the folder of prepared data."""

    java: Java
    jars: tuple[Path, ...]
    folder: Path

    def command(self, properties: Path, options: Sequence[str] = ()) -> list[str]:
        """Give the command line of a broker; `options` go to Java and win over ours."""
        archive = f"-XX:SharedArchiveFile={self.folder / _ARCHIVE}"
        return java_command(self.java, self.jars, [archive, *options], "kafka.Kafka", str(properties))

    def fill(self, data: Path, *, used: bool) -> None:
        """Make a data folder: `used` has the internal topics, else it is just formatted."""
        copy_data(self.folder / (_USED if used else _FORMATTED), data)


def prepare(version: str = KAFKA_VERSION) -> Prepared:
    """Give all that a broker of a version needs: at once if cached, else fetched and made (a minute).

    Raises `NoJava`, `NoJars`, or `BrokerFailed`.
    """
    java = find_java()
    jars = tuple(resolve(kafka_coordinates(version)))
    facts = "\0".join((str(java.home), java.version, *JVM_OPTIONS, *map(str, jars)))
    digest = hashlib.sha256(facts.encode()).hexdigest()[:8]
    entry = cache_folder() / "broker" / f"kafka-{version}-java-{java.version}-{digest}"
    prepared = Prepared(java, jars, entry)
    if not entry.is_dir():
        _make(prepared)
    return prepared


def kafka_coordinates(version: str) -> tuple[str, ...]:
    """Return the Maven coordinates of a Kafka that logs to its stderr."""
    return (f"org.apache.kafka:kafka_2.13:{version}", "org.slf4j:slf4j-simple:1.7.36")


def java_command(java: Java, jars: Sequence[Path], options: Sequence[str], *main: str) -> list[str]:
    """Give a Java command line; the jars in full, as the class archive depends on their order."""
    return [str(java.executable), *JVM_OPTIONS, *options, "-cp", os.pathsep.join(map(str, jars)), *main]


def copy_data(source: Path, data: Path) -> None:
    """Copy a data folder and give it a cluster id of its own."""
    shutil.copytree(source, data, dirs_exist_ok=True)
    meta = data / "meta.properties"
    text = meta.read_text(encoding="latin-1")
    meta.write_text(re.sub(r"(?m)^cluster\.id=.*$", f"cluster.id={cluster_id()}", text), encoding="latin-1")


def cluster_id() -> str:
    """Make a cluster id: 16 bytes as 22 characters of base64url, not starting with a dash."""
    # A leading dash would look like an option to the format command.
    return "k" + secrets.token_urlsafe(16)[1:]


def _make(prepared: Prepared) -> None:
    with (
        Progress() as progress,
        locked(prepared.folder, waiting=lambda: progress.say("broker: being prepared by another process")),
    ):
        if prepared.folder.is_dir():
            return
        began = time.monotonic()
        progress.say("broker: preparing a first start (once)")
        with building(prepared.folder) as scratch:
            _format(prepared, scratch)
            _use(prepared, scratch)
        progress.say(f"broker: prepared in {time.monotonic() - began:.0f} s; kept in {prepared.folder}")


def _format(prepared: Prepared, scratch: Path) -> None:
    properties = scratch / "format.properties"
    write_properties(properties, server_properties(Ports(1, 2), scratch / _FORMATTED, {}))
    main = ("kafka.tools.StorageTool", "format", "-t", cluster_id(), "-c", str(properties))
    argv = java_command(prepared.java, prepared.jars, (), *main)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    properties.unlink()
    if done.returncode != 0:
        raise BrokerFailed("Kafka could not format a data folder", scratch, done.stdout + done.stderr)


def _use(prepared: Prepared, scratch: Path) -> None:
    data, log, properties = scratch / _USED, scratch / "broker.log", scratch / "server.properties"
    copy_data(scratch / _FORMATTED, data)
    ports = Ports(*free_ports(2))
    write_properties(properties, server_properties(ports, data, {}))
    archive = f"-XX:ArchiveClassesAtExit={scratch / _ARCHIVE}"
    argv = java_command(
        prepared.java, prepared.jars, [archive, "-Xlog:cds=off"], "kafka.Kafka", str(properties)
    )
    process = Process(argv, log=log, remove=scratch)
    try:
        wait_until_ready(process, f"{HOST}:{ports.client}", log, 120.0)
        clients.exercise(f"{HOST}:{ports.client}")
    finally:
        process.terminate(60.0)
    for path in data.iterdir():
        if path.name not in _KEPT:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    log.unlink()
    properties.unlink()


def wait_until_ready(process: Process, bootstrap_servers: str, log: Path, seconds: float) -> None:
    """Wait until a broker serves; raise `BrokerFailed` if it dies or takes over `seconds`."""
    client = clients.admin(bootstrap_servers)
    wait_for(process, lambda: clients.is_ready(client, 0.25), log, seconds)


def wait_for(process: Process, is_ready: Callable[[], bool], log: Path, seconds: float) -> None:
    """Wait for a program to be ready; raise `BrokerFailed` if it dies or takes over `seconds`."""
    deadline = time.monotonic() + seconds
    while not is_ready():
        code = process.exit_code
        if code is not None:
            raise BrokerFailed(f"the broker ended while starting, with exit code {code}", log, process.tail())
        if time.monotonic() > deadline:
            raise BrokerFailed(f"the broker was not ready after {seconds:.0f} s", log, process.tail())
