"""Real old brokers, 0.8.2 to 1.1, with a ZooKeeper, on 127.0.0.1: for tests of the protocol.

As a program it fetches their jars and prepares the oldest broker without a ZooKeeper.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import find_java, resolve
from cloudevents_kafka.protocol import Client, ProtocolError
from cloudevents_kafka.testing.local import Process, free_ports, is_free, prepare
from cloudevents_kafka.testing.local._prepared import java_command
from cloudevents_kafka.testing.local._settings import COMMON_DEFAULTS, HOST, write_properties

RELEASES: Final[Mapping[str, tuple[str, ...]]] = {
    "0.8.2-beta": ("org.apache.kafka:kafka_2.10:0.8.2-beta",),
    "0.8.2.2": ("org.apache.kafka:kafka_2.11:0.8.2.2",),
    "0.9.0.1": ("org.apache.kafka:kafka_2.11:0.9.0.1",),
    # Java 8 had jaxb-api; later versions do not.
    "0.10.2.2": ("org.apache.kafka:kafka_2.12:0.10.2.2", "javax.xml.bind:jaxb-api:2.3.1"),
    # Its ZooKeeper uses classes of log4j without a dependency on it.
    "1.1.1": ("org.apache.kafka:kafka_2.12:1.1.1", "org.slf4j:slf4j-log4j12:1.7.25"),
}
"""The Maven coordinates of each release that can be started."""

OLDEST_KRAFT: Final = "3.9.1"
"""The last version that supports the first versions of all messages."""

_TICK: Final = 0.5  # seconds
# ZooKeeper keeps the registration of a dead broker for this time, rounded up to the tick.
_SESSION: Final = 2.0
# Brokers 0.8 list no broker, not even themselves, before the first topic.
_FIRST_TOPIC: Final = "first"
_LOG4J: Final = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %c{1}: %m%n
"""
_DEFAULTS: Final[dict[str, object]] = {
    **COMMON_DEFAULTS,
    "num.partitions": 1,
    "controlled.shutdown.enable": "false",
    "log.cleaner.enable": "false",
    "zookeeper.session.timeout.ms": int(_SESSION * 1000),
}


class LegacyBroker:
    """One broker of a `LegacyKafka`; it can be killed and started again."""

    def __init__(self, node_id: int, port: int, launch: Callable[[], Process]) -> None:
        self.node_id = node_id
        self.port = port
        self._launch = launch
        self._process: Process | None = None
        self._killed_at = -_SESSION * 2

    @property
    def address(self) -> str:
        """The broker's ``host:port``; a restart keeps it."""
        return f"{HOST}:{self.port}"

    def launch(self) -> None:
        """Start the broker without waiting for it; after `kill`, when ZooKeeper's session has expired."""
        expires_at = self._killed_at + _SESSION + 2 * _TICK
        time.sleep(max(0.0, expires_at - time.monotonic()))
        self._process = self._launch()

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until it serves its partitions. Raises `BrokerFailed` with the end of its log."""
        assert self._process is not None, "the broker was not started"
        self._process.wait_until(self._is_ready, seconds)

    def start(self) -> None:
        """Start the broker with its data, and wait until it serves."""
        self.launch()
        self.wait()

    def kill(self) -> None:
        """End the broker as a power cut would (SIGKILL); `start` continues with its data."""
        if self._process is not None:
            self._process.kill()
            self._killed_at = time.monotonic()

    def _is_ready(self) -> bool:
        try:
            with Client(self.address, request_api_versions=False, timeout=0.25) as client:
                metadata = client.metadata()
                if not metadata.brokers:
                    client.metadata([_FIRST_TOPIC])
        except ProtocolError:
            return False
        partitions = [part for topic in metadata.topics for part in topic.partitions]
        has_leaders = all(part.leader_id >= 0 for part in partitions if self.node_id in part.replica_nodes)
        return has_leaders and any(broker.node_id == self.node_id for broker in metadata.brokers)


class LegacyKafka:
    """Brokers of an old release and their ZooKeeper; a context manager.

    `release` is one of `RELEASES`; `properties` are broker settings, which replace the
    defaults. All brokers serve when the block begins. At its end they and their data are
    removed; also when this process is killed. The first use of a release downloads it (15 to 20 MB).
    """

    def __init__(
        self, release: str, *, brokers: int = 1, properties: Mapping[str, object] | None = None
    ) -> None:
        if release not in RELEASES:
            raise ValueError(f"release must be one of {', '.join(RELEASES)}, got {release!r}")
        self._release = release
        self._count = brokers
        self._properties = dict(properties or {})
        self._zookeeper: Process | None = None
        self._folder: Path | None = None
        self.brokers: list[LegacyBroker] = []

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers; a restart keeps them."""
        return ",".join(broker.address for broker in self.brokers)

    def start(self) -> Self:
        """Start ZooKeeper and the brokers, wait until they serve, and return self.

        Raises `NoJava`, `NoJars`, or `BrokerFailed` with the end of the log.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="cloudevents-kafka-"))
        zookeeper_port, *ports = free_ports(1 + self._count)
        try:
            self._start_zookeeper(self._folder, zookeeper_port)
            for node_id, port in enumerate(ports, 1):
                self.brokers.append(self._broker(self._folder, zookeeper_port, node_id, port))
                self.brokers[-1].launch()
            for broker in self.brokers:
                broker.wait()
        except BaseException:
            # Ctrl-C too: without started brokers, the caller has nothing to stop.
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the brokers, then ZooKeeper, without which a broker hangs; remove their data."""
        for broker in self.brokers:
            broker.kill()
        if self._zookeeper is not None:
            self._zookeeper.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._zookeeper, self._folder, self.brokers = None, None, []

    def _start_zookeeper(self, folder: Path, port: int) -> None:
        (folder / "log4j.properties").write_text(_LOG4J, encoding="ascii")
        settings = {
            "tickTime": int(_TICK * 1000),
            "dataDir": folder / "zookeeper",
            "clientPort": port,
            "clientPortAddress": HOST,
            "admin.enableServer": "false",
        }
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        self._zookeeper = self._run(main, folder / "zookeeper.properties", settings)
        self._zookeeper.wait_until(lambda: _listens(port), 60.0)

    def _broker(self, folder: Path, zookeeper_port: int, node_id: int, port: int) -> LegacyBroker:
        is_old = self._release.startswith("0.8.")
        listener = (
            {"host.name": HOST, "port": port} if is_old else {"listeners": f"PLAINTEXT://{HOST}:{port}"}
        )
        settings = {
            **_DEFAULTS,
            "broker.id": node_id,
            **listener,
            "zookeeper.connect": f"{HOST}:{zookeeper_port}",
            "log.dirs": folder / f"data-{node_id}",
            "default.replication.factor": self._count,
            **self._properties,
        }
        properties = folder / f"broker-{node_id}.properties"
        return LegacyBroker(node_id, port, lambda: self._run("kafka.Kafka", properties, settings))

    def _run(self, main: str, properties: Path, settings: Mapping[str, object]) -> Process:
        write_properties(properties, settings)
        jars = resolve(RELEASES[self._release])
        options = ("-Xmx256m", f"-Dlog4j.configuration=file:{properties.parent / 'log4j.properties'}")
        argv = java_command(find_java(), jars, options, main, str(properties))
        return Process(argv, log=properties.with_suffix(".log"), remove=self._folder)


def _listens(port: int) -> bool:
    time.sleep(0.02)
    return not is_free(port)


if __name__ == "__main__":
    try:
        for coordinates in RELEASES.values():
            resolve(coordinates)
        prepare(OLDEST_KRAFT)
    except CloudEventsKafkaError as error:
        sys.exit(str(error))
