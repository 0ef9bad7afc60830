"""Supervise one program, so that the program never outlives the process that started this watchdog.

This file is run as ``python -I -S _watchdog.py REMOVE LOG PROGRAM ARG...`` in a new session, which Ctrl-C
does not reach. The watchdog prints the pid of the program to stdout. Each byte on the watchdog's stdin is a
command: ``T`` terminates the program, and ``K`` kills the program. The end of the watchdog's stdin means that
the parent process has ended. At the end of the parent process, the watchdog ends the program, and deletes the
folder REMOVE unless this argument is empty. The watchdog exits with the exit code of the program.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import threading

GRACE_SECONDS = 10.0  # seconds for the shutdown of a broker whose data is kept
PR_SET_PDEATHSIG = 1
NOT_STARTED = 127  # the shell's exit code for a missing program


def main(remove: str, log: str, argv: list[str]) -> int:
    """Run the program to its end; return its exit code, or 128 + n if signal n has ended the program."""
    try:
        program = start_program(log, argv)
    except OSError as error:
        with open(log, "a", encoding="utf-8") as output:  # noqa: PTH123 (pathlib costs start-up time here)
            output.write(f"{error}\n")
        return NOT_STARTED
    signal.signal(signal.SIGTERM, lambda *_: program.terminate())
    sys.stdout.write(f"{program.pid}\n")
    sys.stdout.close()
    orphaned = threading.Event()
    threading.Thread(target=run_commands, args=(program, remove, orphaned), daemon=True).start()
    code = program.wait()
    if orphaned.is_set() and remove:
        shutil.rmtree(remove, ignore_errors=True)
    return code if code >= 0 else 128 - code


def start_program(log: str, argv: list[str]) -> subprocess.Popen[bytes]:
    """Start the program, append its stdout and stderr to the log, and return the program."""
    with open(log, "ab") as output:  # noqa: PTH123 (pathlib costs start-up time here)
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Safe: this process still has one thread.
            preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
        )


def die_with_parent() -> None:
    """Make the kernel kill the program if this watchdog is killed (Linux only)."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run_commands(program: subprocess.Popen[bytes], remove: str, orphaned: threading.Event) -> None:
    """Run the commands from stdin until the parent process has ended, and then end the program."""
    parent = os.getppid()
    while True:
        # A fork of the parent may keep the pipe open, so the parent is checked too.
        ready, _, _ = select.select([0], [], [], 1.0)
        command = os.read(0, 1) if ready else b"-"
        if command == b"" or os.getppid() != parent:
            break
        if command == b"T":
            program.terminate()
        elif command == b"K":
            program.kill()
    orphaned.set()
    if not remove:
        program.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(GRACE_SECONDS)
    program.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
