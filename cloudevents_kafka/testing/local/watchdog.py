"""Supervise one program so that it never outlives the process that wanted it.

A script of its own, run as ``python -I -S watchdog.py REMOVE LOG PROGRAM ARG...``
in a new session, where Ctrl-C does not reach it. The pid of the program goes to
stdout. Orders come by stdin: ``T`` terminate, ``K`` kill. The end of stdin means
that the parent is gone, whatever killed it: then the program is ended and the
folder REMOVE (if not empty text) is deleted. The exit code is the program's.
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

# A broker whose data is kept gets this long to write it down.
GRACE_SECONDS = 10.0
PR_SET_PDEATHSIG = 1
# The shell's exit code for a program that is not there.
NOT_STARTED = 127


def main(remove: str, log: str, argv: list[str]) -> int:
    """Run the program to its end; give its exit code, or 128 + the signal's number."""
    try:
        program = launch(log, argv)
    except OSError as error:
        with open(log, "a", encoding="utf-8") as output:  # noqa: PTH123 (pathlib costs start-up time here)
            output.write(f"{error}\n")
        return NOT_STARTED
    signal.signal(signal.SIGTERM, lambda *_: program.terminate())
    sys.stdout.write(f"{program.pid}\n")
    sys.stdout.close()
    orphaned = threading.Event()
    threading.Thread(target=obey, args=(program, remove, orphaned), daemon=True).start()
    code = program.wait()
    if orphaned.is_set() and remove:
        shutil.rmtree(remove, ignore_errors=True)
    return code if code >= 0 else 128 - code


def launch(log: str, argv: list[str]) -> subprocess.Popen[bytes]:
    """Start the program with both outputs added to the log."""
    with open(log, "ab") as output:  # noqa: PTH123 (pathlib costs start-up time here)
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Safe: this process has one thread yet.
            preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
        )


def die_with_parent() -> None:
    """Let the kernel kill the program should this watchdog itself be killed (Linux only)."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def obey(program: subprocess.Popen[bytes], remove: str, orphaned: threading.Event) -> None:
    """Carry out orders until the parent is gone, then end the program."""
    parent = os.getppid()
    while True:
        # A fork of the parent may hold the pipe open, so look at the parent too.
        ready, _, _ = select.select([0], [], [], 1.0)
        order = os.read(0, 1) if ready else b"-"
        if order == b"" or os.getppid() != parent:
            break
        if order == b"T":
            program.terminate()
        elif order == b"K":
            program.kill()
    orphaned.set()
    end(program, GRACE_SECONDS if not remove else 0.0)


def end(program: subprocess.Popen[bytes], grace: float) -> None:
    """End the program, with time to write down its data or without."""
    if grace:
        program.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(grace)
    program.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
