"""A real Apache Kafka on this machine, for tests, demos and experiments."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self, TypeVar

from cloudevents_kafka.testing.local._prepared import KAFKA_VERSION, PreparedBroker, prepare
from cloudevents_kafka.testing.local._process import BrokerFailed, Process
from cloudevents_kafka.testing.local._settings import (
    HOST,
    Ports,
    can_use_internal_topics,
    free_ports,
    is_free,
    write_server_properties,
)

# Java's message if another program took the port after it was chosen.
_PORT_TAKEN: Final = "Address already in use"
_ATTEMPTS: Final = 5

# The controller keeps the registration of a killed broker for nine seconds by default;
# on a busy machine, the next start could time out before the end of this time.
_SETTINGS_AFTER_KILL: Final = {"broker.session.timeout.ms": 1500, "broker.heartbeat.interval.ms": 300}

_Value = TypeVar("_Value")


class LocalBroker:
    """A single-node Apache Kafka (KRaft) on 127.0.0.1, as a context manager.

    ::

        with LocalBroker() as broker:
            broker.create_topic("orders", partitions=3)
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    The broker is ready when the block of the ``with`` statement begins. At the end of the block, after
    Ctrl-C, or if this process is killed, the broker is stopped and the broker's data is removed. When a
    machine uses `LocalBroker` for the first time, Kafka (45 MB) is downloaded into the cache.

    `properties` are broker settings, which replace the defaults. `data_dir` is a folder for the broker's
    data; this folder stays when the broker is stopped. `port` is a fixed port for clients. `jvm_options` are
    Java options, such as ``-Xmx1g``. `start_seconds` is the longest time in seconds that the start of the
    broker may take. `version` is the version of Kafka, 3.9.1 or later.

    Examples:
        >>> from confluent_kafka import Producer
        >>> from cloudevents_kafka.testing import LocalBroker
        >>> with LocalBroker() as broker:
        ...     topic = broker.create_topic("orders", partitions=3)
        ...     client = Producer({"bootstrap.servers": broker.bootstrap_servers})
        ...     client.produce(topic, b"17")
        ...     client.flush()
        0
    """

    def __init__(
        self,
        *,
        properties: Mapping[str, object] | None = None,
        data_dir: str | Path | None = None,
        port: int | None = None,
        jvm_options: Sequence[str] = (),
        start_seconds: float = 180.0,
        version: str = KAFKA_VERSION,
    ) -> None:
        self._properties = dict(properties or {})
        self._data_dir = None if data_dir is None else Path(data_dir).absolute()
        self._fixed_port = port
        self._jvm_options = tuple(jvm_options)
        self._start_seconds = start_seconds
        self._version = version
        self._folder: Path | None = None
        self._ports: Ports | None = None
        self._process: Process | None = None
        self._killed = False

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """The address ``host:port`` of the broker; the address stays the same after a restart."""
        return f"{HOST}:{self.port}"

    @property
    def port(self) -> int:
        """The port for clients."""
        return _of_started(self._ports).client

    @property
    def running(self) -> bool:
        """Whether the process of the broker is running."""
        return self._process is not None and self._process.exit_code is None

    @property
    def pid(self) -> int:
        """The process id of the broker."""
        return _of_started(self._process).pid

    @property
    def folder(self) -> Path:
        """The folder of the broker's data, settings and log."""
        return _of_started(self._folder)

    @property
    def log_file(self) -> Path:
        """The path of the broker's log of warnings and errors; `jvm_options` can change the log level."""
        return self.folder / "broker.log"

    def start(self) -> Self:
        """Start the broker, wait until the broker is ready, and return this `LocalBroker`.

        After a call of `kill`, `start` starts the broker with the same data and port.

        Raises `NoJava`, `NoJars` or `BrokerFailed`; the text of a `BrokerFailed` contains the last lines of
        the broker's log.
        """
        if self.running:
            return self
        prepared = prepare(self._version)
        try:
            self._create_folder(prepared)
            self._launch(prepared)
        except BaseException:
            # Also after Ctrl-C: the caller cannot stop a broker that did not start.
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the broker and delete its data; with a `data_dir`, shut it down properly and keep the data."""
        if self._process is not None:
            self._process.kill() if self._data_dir is None else self._process.terminate()
            self._process = None
        if self._data_dir is None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        self._ports = None

    def restart(self) -> None:
        """Shut the broker down properly, then start it again with the same data and port."""
        if self._process is not None:
            self._process.terminate()
        self.start()

    def kill(self) -> None:
        """Kill the broker with SIGKILL, like a power cut; `start` then continues with the broker's data."""
        if self._process is not None:
            self._process.kill()
            self._killed = True

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None) -> str:
        """Create a topic and return its name; raise KafkaException if the broker refuses the topic."""
        from cloudevents_kafka.testing.local import clients

        clients.create_topic(self.bootstrap_servers, name, partitions, config or {})
        return name

    def delete_topic(self, name: str) -> None:
        """Delete a topic; raise KafkaException if the broker refuses to delete it."""
        from cloudevents_kafka.testing.local import clients

        clients.delete_topic(self.bootstrap_servers, name)

    def _create_folder(self, prepared: PreparedBroker) -> None:
        if self._folder is None:
            self._folder = self._data_dir or Path(tempfile.mkdtemp(prefix="cloudevents-kafka-"))
            self._folder.mkdir(parents=True, exist_ok=True)
        data = self._folder / "data"
        if not (data / "meta.properties").exists():
            prepared.create_data(data, internal_topics=can_use_internal_topics(self._properties))

    def _launch(self, prepared: PreparedBroker) -> None:
        restarting = self._ports is not None
        for attempt in range(1, _ATTEMPTS + 1):
            ports = self._ports or self._choose_ports()
            try:
                self._run(prepared, ports)
            except BrokerFailed as error:
                if _PORT_TAKEN not in error.log or restarting or attempt == _ATTEMPTS:
                    raise
            else:
                self._ports = ports
                return

    def _choose_ports(self) -> Ports:
        if self._fixed_port is None:
            return Ports(*free_ports(2))
        if not is_free(self._fixed_port):
            raise BrokerFailed(f"port {self._fixed_port} must be free", self.log_file, "")
        return Ports(self._fixed_port, free_ports(1)[0])

    def _run(self, prepared: PreparedBroker, ports: Ports) -> None:
        from cloudevents_kafka.testing.local import clients

        properties = self.folder / "server.properties"
        overrides = {**(_SETTINGS_AFTER_KILL if self._killed else {}), **self._properties}
        write_server_properties(properties, ports, self.folder / "data", overrides)
        command = prepared.command(properties, self._jvm_options)
        self._process = Process(command, log=self.log_file, remove=None if self._data_dir else self.folder)
        clients.wait_until_ready(self._process, f"{HOST}:{ports.client}", self._start_seconds)


def _of_started(value: _Value | None) -> _Value:
    if value is None:
        raise RuntimeError("the broker must be started: use it in a with statement, or call start()")
    return value
