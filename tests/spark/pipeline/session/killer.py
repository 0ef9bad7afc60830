"""The command line with a Java process that is killed: ``killer.py NUMBER before|after|never …``."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from py4j.clientserver import ClientServerConnection

from cloudevents_kafka.cli import main
from cloudevents_kafka.spark.pipeline.session import _session


class Killer:
    """Kills Java at the n-th call of all threads: before it is sent, or half a millisecond after it."""

    def __init__(self, at: int, moment: str) -> None:
        self._calls = 0
        self._at = at
        self._moment = moment
        self._pid: int | None = None
        self._lock = threading.Lock()

    def launch(self, *args: Any) -> Any:
        gateway = launch(*args)
        self._pid = gateway.proc.pid
        return gateway

    def send(self, command: str) -> None:
        with self._lock:
            self._calls += self._pid is not None
            now = self._calls == self._at and self._pid is not None
        if now and self._moment == "before":
            self._kill()
        elif now and self._moment == "after":
            threading.Timer(0.0005, self._kill).start()

    def _kill(self) -> None:
        assert self._pid is not None
        os.kill(self._pid, signal.SIGKILL)


def send(connection: Any, command: str) -> Any:
    killer.send(command)
    return send_command(connection, command)


killer = Killer(int(sys.argv[1]), sys.argv[2])
launch, _session._launch = _session._launch, killer.launch
send_command, ClientServerConnection.send_command = ClientServerConnection.send_command, send
sys.argv[1:3] = []
main()
