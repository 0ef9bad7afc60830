"""Replacements for a stdin, stdout or stderr that is closed, and errors of writing to stdout.

Python sets a standard stream to None if its file descriptor is closed at the start, and the next
file or socket that is opened gets that descriptor. `standard_streams` opens such a stream on the
null device instead: reading stdin and writing to stdout then fail with the error of the operating
system, and stderr discards its output.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from cloudevents_kafka.cli.terminal._errors import BAD_USAGE, BROKEN_PIPE, BadUsage


@contextmanager
def standard_streams() -> Iterator[None]:
    """Return a context manager that opens closed streams, and exits if stdout cannot be written."""
    sys.stdin = sys.stdin or _open_null(os.O_WRONLY, "r")
    sys.stdout = sys.stdout or _open_null(os.O_RDONLY, "w")
    sys.stderr = sys.stderr or _open_null(os.O_WRONLY, "w")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        discard_stdout()
        failed = "cannot write the output" if error.filename is None else error.filename
        with suppress(OSError):  # stderr may be full, too
            BadUsage(f"{failed}: {error.strerror or error}").show()
        sys.exit(BAD_USAGE)


def _open_null(flags: int, mode: str) -> TextIO:
    """Return a stream on the null device; it gets the lowest free descriptor, which is the closed one."""
    return open(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]  # it is text


def discard_stdout() -> None:
    """Redirect stdout to the null device, so that flushing it at exit cannot fail."""
    with suppress(OSError, ValueError):  # stdout is not a file, and is not flushed at exit
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
