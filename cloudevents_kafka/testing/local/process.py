"""A program under the watchdog's eye: started with a log file, ended with its parent."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cloudevents_kafka.testing.local import watchdog

# What of a log helps a reader; more hides the cause.
TAIL_LINES = 25


class Process:
    """Runs ``argv`` in the background; both outputs go to the file `log`.

    It ends when this process ends, however that happens, and then `remove` (a
    folder) is deleted. No ``preexec_fn`` is used here, so threads are no danger.
    """

    def __init__(self, argv: Sequence[str], *, log: Path, remove: Path | None = None) -> None:
        self._log = log
        guard = [sys.executable, "-I", "-S", watchdog.__file__, str(remove or ""), str(log), *argv]
        self._watchdog = subprocess.Popen(
            guard,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._watchdog.stdout is not None
        with self._watchdog.stdout as output:
            line = output.readline()
        # 0 if the program could not even be started; the exit code tells then.
        self.pid = int(line or 0)

    @property
    def exit_code(self) -> int | None:
        """Give the exit code (128 + n after signal n), or None while it runs."""
        code = self._watchdog.poll()
        if code is not None:
            self._close()
        return code

    def tail(self, lines: int = TAIL_LINES) -> str:
        """Give the last lines of the log."""
        return tail(self._log, lines)

    def terminate(self, seconds: float = 20.0) -> None:
        """Ask the program to end; kill it when it has not after `seconds`."""
        self._order(b"T")
        try:
            self._watchdog.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self._close()

    def kill(self) -> None:
        """End the program at once, as ``kill -9`` does."""
        self._order(b"K")
        self._watchdog.wait()
        self._close()

    def _order(self, order: bytes) -> None:
        pipe = self._watchdog.stdin
        if self._watchdog.poll() is not None or pipe is None or pipe.closed:
            return
        # It may end by itself in the meantime, which is what is wanted.
        with suppress(BrokenPipeError):
            pipe.write(order)
            pipe.flush()

    def _close(self) -> None:
        if self._watchdog.stdin is not None:
            with suppress(BrokenPipeError):
                self._watchdog.stdin.close()


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """Give the last lines of a log file; nothing if there is none."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""
