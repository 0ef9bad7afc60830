"""stdin, stdout and stderr where they are closed, or cannot be written to.

Python has None for a stream that was closed when it began, and the next file that is
opened, perhaps a socket, gets its number. So such a stream is opened anew, in such a way
that whatever wants to read stdin or to write to stdout meets the system's error, while
stderr takes all and shows nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from cloudevents_kafka.cli.terminal.errors import BAD_USAGE, BROKEN_PIPE, BadUsage


@contextmanager
def standard_streams() -> Iterator[None]:
    """Have all three streams in this block; a stdout that is not written ends it with a message."""
    sys.stdin = sys.stdin or _opened(os.O_WRONLY, "r")
    sys.stdout = sys.stdout or _opened(os.O_RDONLY, "w")
    sys.stderr = sys.stderr or _opened(os.O_WRONLY, "w")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        let_go_of_stdout()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        let_go_of_stdout()
        _tell(error)
        sys.exit(BAD_USAGE)


def _opened(flags: int, mode: str) -> TextIO:
    """Open nothing; the system gives it the lowest number that is free, the one that was closed."""
    return open(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]  # it is text


def _tell(error: OSError) -> None:
    what = "cannot write the output" if error.filename is None else error.filename
    with suppress(OSError):  # stderr may be full, too
        BadUsage(f"{what}: {error.strerror or error}").show()


def let_go_of_stdout() -> None:
    """Point stdout at nothing: Python writes what is left in its buffers when it ends."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        pass  # it is no file: nobody will write it
