"""Run a program with a log file; a watchdog process ends the program when this process ends."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.testing.local import _watchdog

_TAIL_LINES: Final = 25


class BrokerFailed(CloudEventsKafkaError):
    """A local broker did not start, or has ended. `log` contains the last lines of the file `log_file`.

    Examples:
        >>> from cloudevents_kafka.testing import BrokerFailed, LocalBroker
        >>> try:
        ...     LocalBroker(properties={"num.io.threads": "none"}).start()
        ... except BrokerFailed as error:
        ...     print(error.log.splitlines()[-1].strip())
        at kafka.Kafka.main(Kafka.scala)
    """

    def __init__(self, reason: str, log_file: Path, log: str) -> None:
        super().__init__(reason, log_file, log)
        self.reason = reason
        self.log_file = log_file
        self.log = log

    def __str__(self) -> str:
        return f"{self.reason}\nLast lines of {self.log_file}:\n{self.log or '(empty)'}"


class Process:
    """A program in the background; its stdout and stderr are appended to the file `log`.

    When this process ends for any reason, the program is ended too, and then the folder `remove` is deleted.
    Programs may be started from several threads at once.
    """

    def __init__(self, argv: Sequence[str], *, log: Path, remove: Path | None = None) -> None:
        self._log = log
        command = [sys.executable, "-I", "-S", _watchdog.__file__, str(remove or ""), str(log), *argv]
        self._watchdog = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._watchdog.stdin is not None
        assert self._watchdog.stdout is not None
        self._commands = self._watchdog.stdin
        with self._watchdog.stdout as output:
            # The pid is 0 if the program could not be started; the exit code is then 127.
            self.pid = int(output.readline() or 0)

    @property
    def exit_code(self) -> int | None:
        """The exit code of the program (128 + n after signal n), or None while the program runs."""
        code = self._watchdog.poll()
        if code is not None:
            self._commands.close()
        return code

    def wait_until(self, is_ready: Callable[[], bool], seconds: float) -> None:
        """Wait until the function `is_ready` returns True; raise `BrokerFailed` if the program ends before.

        Also raises `BrokerFailed` if the wait takes longer than `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not is_ready():
            if (code := self.exit_code) is not None:
                reason = f"the broker ended while starting, with exit code {code}"
            elif time.monotonic() > deadline:
                reason = f"the broker was not ready after {seconds:.0f} s"
            else:
                continue
            raise BrokerFailed(reason, self._log, tail(self._log))

    def terminate(self, seconds: float = 20.0) -> None:
        """End the program with SIGTERM, or with SIGKILL if it still runs after `seconds`."""
        self._send(b"T")
        try:
            self._watchdog.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self._commands.close()

    def kill(self) -> None:
        """End the program with SIGKILL."""
        self._send(b"K")
        self._watchdog.wait()
        self._commands.close()

    def _send(self, command: bytes) -> None:
        # The program may have ended by itself.
        with suppress(BrokenPipeError):
            if not self._commands.closed:
                self._commands.write(command)


def tail(log: Path) -> str:
    """Return the last 25 lines of a log file, or an empty string if the file does not exist."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:])
    except FileNotFoundError:
        return ""
