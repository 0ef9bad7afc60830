"""A real Apache Kafka on this machine, for tests, demos and trying things out."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from cloudevents_kafka.testing.local import clients
from cloudevents_kafka.testing.local.errors import BrokerFailed
from cloudevents_kafka.testing.local.ports import free_ports, is_free
from cloudevents_kafka.testing.local.prepared import KAFKA_VERSION, Prepared, prepare, wait_until_ready
from cloudevents_kafka.testing.local.process import Process
from cloudevents_kafka.testing.local.settings import (
    HOST,
    Ports,
    fits_prepared,
    server_properties,
    write_properties,
)

# Java's words for a port that somebody took between our look and its use.
_PORT_TAKEN = "Address already in use"
_TRIES = 5

# After a crash the controller holds a broker's old registration for nine seconds.
# A start after `kill` shortens that; else a busy machine could lose its broker to it.
_AFTER_KILL = {"broker.session.timeout.ms": 1500, "broker.heartbeat.interval.ms": 300}


class LocalBroker:
    """A single-node Apache Kafka (KRaft) on 127.0.0.1; a context manager.

    ::

        with LocalBroker() as broker:
            broker.create_topic("orders", partitions=3)
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    It is ready when the block begins and gone after it, with its data; also
    after Ctrl-C and when this process is killed. The first use on a machine
    fetches Kafka (45 MB) into the cache.

    `properties` are broker settings that win over ours. `data_dir` is a folder
    to keep the data in; `port` a fixed port for clients. `jvm_options` go to
    Java, such as ``-Xmx1g``. `start_seconds` is how long a start may take.
    `version` is Kafka's, from 3.9.1 on; for older ones see `legacy`.
    """

    def __init__(
        self,
        *,
        properties: Mapping[str, object] | None = None,
        data_dir: str | Path | None = None,
        port: int | None = None,
        jvm_options: Sequence[str] = (),
        start_seconds: float = 60.0,
        version: str = KAFKA_VERSION,
    ) -> None:
        self._overrides = dict(properties or {})
        self._kept = None if data_dir is None else Path(data_dir).absolute()
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """Give ``host:port`` for clients; the same over restarts."""
        return f"{HOST}:{self.port}"

    @property
    def port(self) -> int:
        """Give the port for clients."""
        if self._ports is None:
            raise RuntimeError("the broker was not started: use it in a with statement, or call start()")
        return self._ports.client

    @property
    def running(self) -> bool:
        """Say whether the broker's process lives."""
        return self._process is not None and self._process.exit_code is None

    @property
    def pid(self) -> int:
        """Give the process id of the broker."""
        if self._process is None:
            raise RuntimeError("the broker does not run")
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Give the folder with the broker's data, settings and log."""
        if self._folder is None:
            raise RuntimeError("the broker was not started, or its data is gone")
        return self._folder

    @property
    def log_file(self) -> Path:
        """Name the broker's log: warnings and errors, unless `jvm_options` say otherwise."""
        return self.folder / "broker.log"

    def start(self) -> Self:
        """Start the broker and wait until it serves; after `kill`, on the same data and port.

        Raises `NoJava`, `NoJars`, or `BrokerFailed` with the end of the log.
        """
        if self.running:
            return self
        prepared = prepare(self._version)
        try:
            self._make_folder(prepared)
            self._launch(prepared)
        except BaseException:
            # Ctrl-C as well: nothing may stay behind that nobody has a name for.
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the broker. Data in a `data_dir` is written down and kept, else it is gone."""
        if self._process is not None:
            self._process.kill() if self._kept is None else self._process.terminate()
            self._process = None
        if self._kept is None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None
        self._ports = None

    def restart(self) -> None:
        """Shut down in order, then start on the same data and port."""
        if self._process is not None:
            self._process.terminate()
        self.start()

    def kill(self) -> None:
        """End the broker as a power cut would (SIGKILL); `start` goes on from its data."""
        if self._process is not None:
            self._process.kill()
            self._killed = True

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None) -> str:
        """Create a topic and give its name; KafkaException if the broker refuses."""
        clients.create_topic(self.bootstrap_servers, name, partitions, config or {})
        return name

    def delete_topic(self, name: str) -> None:
        """Delete a topic; KafkaException if the broker refuses."""
        clients.delete_topic(self.bootstrap_servers, name)

    def _make_folder(self, prepared: Prepared) -> None:
        if self._folder is None:
            self._folder = self._kept or Path(tempfile.mkdtemp(prefix="cloudevents-kafka-"))
            self._folder.mkdir(parents=True, exist_ok=True)
        data = self._folder / "data"
        if not (data / "meta.properties").exists():
            prepared.fill(data, used=fits_prepared(self._overrides))

    def _launch(self, prepared: Prepared) -> None:
        restarting = self._ports is not None
        for attempt in range(1, _TRIES + 1):
            ports = self._ports or self._choose_ports()
            try:
                self._run(prepared, ports)
            except BrokerFailed as error:
                if _PORT_TAKEN not in error.log or restarting or attempt == _TRIES:
                    raise
            else:
                self._ports = ports
                return

    def _choose_ports(self) -> Ports:
        if self._fixed_port is None:
            return Ports(*free_ports(2))
        if not is_free(self._fixed_port):
            raise BrokerFailed(f"port {self._fixed_port} is taken by another program", self.log_file, "")
        return Ports(self._fixed_port, free_ports(1)[0])

    def _run(self, prepared: Prepared, ports: Ports) -> None:
        properties = self.folder / "server.properties"
        overrides = {**(_AFTER_KILL if self._killed else {}), **self._overrides}
        write_properties(properties, server_properties(ports, self.folder / "data", overrides))
        command = prepared.command(properties, self._jvm_options)
        self._process = Process(command, log=self.log_file, remove=None if self._kept else self.folder)
        wait_until_ready(self._process, f"{HOST}:{ports.client}", self.log_file, self._start_seconds)
