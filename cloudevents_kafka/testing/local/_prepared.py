"""Prepared data with which a broker starts fast; the data is created once and stored in the cache.

Without prepared data, each broker would need an additional start of Java, which formats the data folder. The
first consumer of each broker would wait three seconds until the broker has created the internal topics.
Without an archive of Java classes, a broker would spend most of its start time on loading classes. To avoid
these delays, one broker is started in advance, used as tests use brokers, and shut down. The cache then
contains a formatted data folder, a data folder with the internal topics, and an archive of the loaded classes
(AppCDS). Java ignores an archive that does not match the Java installation or the jars.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cloudevents_kafka.jvm import Java, Progress, building, cache_folder, find_java, locked, resolve
from cloudevents_kafka.testing.local._process import BrokerFailed, Process
from cloudevents_kafka.testing.local._settings import HOST, Ports, free_ports, write_server_properties

KAFKA_VERSION: Final = "4.3.1"

# For a fast start and little memory, not for a high throughput; without files outside the broker's folder.
JVM_OPTIONS: Final = (
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
_FORMATTED, _WARM, _ARCHIVE = "formatted", "used", "classes.jsa"
# These files stay in the folder of the used broker: the metadata of the internal topics. A broker creates the
# empty partitions of these topics again.
_KEPT: Final = frozenset({"meta.properties", "bootstrap.checkpoint", "__cluster_metadata-0"})


@dataclass(frozen=True, slots=True)
class PreparedBroker:
    """The Java installation, Kafka's jars, and the folder of the prepared data with which a broker starts."""

    java: Java
    jars: tuple[Path, ...]
    folder: Path

    def command(self, properties: Path, options: Sequence[str] = ()) -> list[str]:
        """Return the command line of a broker; the Java options in `options` replace the defaults."""
        archive = f"-XX:SharedArchiveFile={self.folder / _ARCHIVE}"
        return java_command(self.java, self.jars, [archive, *options], "kafka.Kafka", str(properties))

    def create_data(self, data: Path, *, internal_topics: bool) -> None:
        """Create a data folder for a broker, with or without the internal topics."""
        _copy_data(self.folder / (_WARM if internal_topics else _FORMATTED), data)


def prepare(version: str = KAFKA_VERSION) -> PreparedBroker:
    """Return a `PreparedBroker` for a version of Kafka, from the cache if the cache contains its data.

    If the cache does not contain the prepared data, Kafka is downloaded and the data is prepared, in about a
    minute. Raises `NoJava`, `NoJars`, or `BrokerFailed` if the broker cannot run.
    """
    java = find_java()
    jars = tuple(resolve(kafka_coordinates(version)))
    facts = "\0".join((str(java.home), java.version, *JVM_OPTIONS, *map(str, jars)))
    digest = hashlib.sha256(facts.encode()).hexdigest()[:8]
    entry = cache_folder() / "broker" / f"kafka-{version}-java-{java.version}-{digest}"
    prepared = PreparedBroker(java, jars, entry)
    if not entry.is_dir():
        _prepare_once(prepared)
    return prepared


def kafka_coordinates(version: str) -> tuple[str, ...]:
    """Return the Maven coordinates of Kafka, and of a logger that writes to stderr."""
    return (f"org.apache.kafka:kafka_2.13:{version}", "org.slf4j:slf4j-simple:1.7.36")


def java_command(java: Java, jars: Sequence[Path], options: Sequence[str], *main: str) -> list[str]:
    """Return a Java command line that lists each jar; the class archive depends on the order of the jars."""
    return [str(java.executable), *JVM_OPTIONS, *options, "-cp", os.pathsep.join(map(str, jars)), *main]


def _copy_data(source: Path, data: Path) -> None:
    """Copy a data folder and write a new cluster id into the copy."""
    shutil.copytree(source, data, dirs_exist_ok=True)
    meta = data / "meta.properties"
    text = re.sub(r"(?m)^cluster\.id=.*$", f"cluster.id={_new_cluster_id()}", meta.read_text("latin-1"))
    meta.write_text(text, "latin-1")


def _new_cluster_id() -> str:
    """Return a cluster id: 16 bytes as 22 characters of base64url."""
    # The format command would read a leading dash as an option.
    return "k" + secrets.token_urlsafe(16)[1:]


def _prepare_once(prepared: PreparedBroker) -> None:
    with (
        Progress() as progress,
        locked(prepared.folder, waiting=lambda: progress.log("broker: another process prepares it")),
    ):
        if prepared.folder.is_dir():
            return
        started = time.monotonic()
        progress.log("broker: preparing the first start (only once)")
        with building(prepared.folder) as scratch:
            _format(prepared, scratch)
            _warm_up(prepared, scratch)
        progress.log(f"broker: prepared in {time.monotonic() - started:.0f} s; kept in {prepared.folder}")


def _format(prepared: PreparedBroker, scratch: Path) -> None:
    properties = scratch / "format.properties"
    write_server_properties(properties, Ports(1, 2), scratch / _FORMATTED, {})
    main = ("kafka.tools.StorageTool", "format", "-t", _new_cluster_id(), "-c", str(properties))
    argv = java_command(prepared.java, prepared.jars, (), *main)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    properties.unlink()
    if done.returncode != 0:
        raise BrokerFailed("Kafka could not format a data folder", scratch, done.stdout + done.stderr)


def _warm_up(prepared: PreparedBroker, scratch: Path) -> None:
    from cloudevents_kafka.testing.local import clients

    data, log, properties = scratch / _WARM, scratch / "broker.log", scratch / "server.properties"
    _copy_data(scratch / _FORMATTED, data)
    ports = Ports(*free_ports(2))
    write_server_properties(properties, ports, data, {})
    options = [f"-XX:ArchiveClassesAtExit={scratch / _ARCHIVE}", "-Xlog:cds=off"]
    argv = java_command(prepared.java, prepared.jars, options, "kafka.Kafka", str(properties))
    process = Process(argv, log=log, remove=scratch)
    try:
        clients.wait_until_ready(process, f"{HOST}:{ports.client}", 120.0)
        clients.warm_up(f"{HOST}:{ports.client}")
    finally:
        process.terminate(60.0)
    for path in (log, properties, *data.iterdir()):
        if path.name not in _KEPT:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
