"""Exchanges with a real broker of Kafka 0.7.2, and a server that replays them."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from cloudevents_kafka.jvm import find_java, resolve
from cloudevents_kafka.testing.local import JVM_OPTIONS, Process, free_ports

VECTORS = Path(__file__).parents[1] / "protocol" / "vectors" / "0.7.2.json"


class Exchange(NamedTuple):
    """The frames of request and response, with their lengths; ``response`` may be None."""

    name: str
    request: bytes
    response: bytes | None
    closed: bool


def _exchange(row: Mapping[str, str]) -> Exchange:
    response = bytes.fromhex(row["response"]) if row["response"] else None
    return Exchange(row["name"], bytes.fromhex(row["request"]), response, "outcome" in row)


EXCHANGES = [_exchange(row) for row in json.loads(VECTORS.read_text())["exchanges"]]


class Replay:
    """A server that returns the recorded response to a request, or closes the connection.

    It also closes the connection for an unknown request. ``requests`` has all requests.
    """

    def __init__(self, answers: Mapping[bytes, bytes | None]) -> None:
        self.answers = dict(answers)
        self.requests: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                connected, _ = self._listening.accept()
            except OSError:
                return
            with connected, connected.makefile("rb") as incoming:
                self._serve(connected, incoming)

    def _serve(self, connected, incoming) -> None:
        while len(size := incoming.read(4)) == 4:
            request = size + incoming.read(int.from_bytes(size, "big"))
            self.requests.append(request)
            if request not in self.answers:
                return
            if (answer := self.answers[request]) is not None:
                connected.sendall(answer)


@contextmanager
def zookeeper_server(folder: Path) -> Iterator[str]:
    """Run the ZooKeeper of Kafka 0.8.2.2, and yield its address; sessions may last only 0.2 s."""
    (port,) = free_ports(1)
    (folder / "zoo.cfg").write_text(
        f"tickTime=100\ndataDir={folder / 'data'}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
    )
    (folder / "log4j.properties").write_text(
        "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.layout=org.apache.log4j.SimpleLayout\n"
    )
    options = [*JVM_OPTIONS, f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}"]
    jars = os.pathsep.join(map(str, resolve(["org.apache.kafka:kafka_2.11:0.8.2.2"])))
    main = ["org.apache.zookeeper.server.ZooKeeperServerMain", str(folder / "zoo.cfg")]
    argv = [str(find_java().executable), *options, "-cp", jars, *main]
    process = Process(argv, log=folder / "log")
    try:
        process.wait_until(lambda: _is_answering(port), 60)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()


def _is_answering(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as asking:
        asking.sendall(b"ruok")
        if asking.recv(4) == b"imok":
            return True
    time.sleep(0.05)
    return False
