r"""Standard streams that accept any text, errors of writing to stdout, and a count that is updated on stderr.

If the encoding of stdout or stderr does not contain a character, the character is written as an escape such
as ``\u2026``.

If the file descriptor of a standard stream is closed at the start, Python sets the stream to None. The next
file or socket that is opened then receives the descriptor of the closed stream. Therefore, `standard_streams`
opens a closed standard stream on the null device. Reading from such a stdin, or writing to such a stdout,
then fails with the error of the operating system. Such a stderr discards its output.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Self, TextIO

from cloudevents_kafka.cli.terminal.errors import BAD_USAGE, BROKEN_PIPE, BadUsage
from cloudevents_kafka.primitives.plural import pluralize

_INTERVAL: Final = 0.2  # seconds between updates of the count


@contextmanager
def standard_streams() -> Iterator[None]:
    """Return a context manager in which the standard streams are open and accept any text.

    The program exits if stdout cannot be written.
    """
    sys.stdin = sys.stdin or _open_null(os.O_WRONLY, "r")
    sys.stdout = sys.stdout or _open_null(os.O_RDONLY, "w")
    sys.stderr = sys.stderr or _open_null(os.O_WRONLY, "w")
    sys.stdout, sys.stderr = _escaping(_writing_all(sys.stdout)), _escaping(sys.stderr)
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
    finally:
        try:
            sys.stderr.flush()
        except OSError:
            _discard(sys.stderr)


class _AsciiText(io.TextIOWrapper):
    """A text stream that escapes characters outside ASCII; click would replace an ASCII stream."""

    def __init__(self, stream: io.TextIOWrapper) -> None:
        modes = {name: getattr(stream, name) for name in ("line_buffering", "write_through")}
        super().__init__(stream.buffer, "latin-1", **modes)
        self._stream = stream  # the stream would close its buffer if nothing referred to the stream

    def write(self, text: str) -> int:
        """Write text, and return the text's length."""
        super().write(text.encode("ascii", "backslashreplace").decode())
        return len(text)


class _WholeWriter(io.BufferedWriter):
    """A binary stream that writes all bytes of a call before the call returns."""

    def write(self, data: Any) -> int:
        """Write and flush bytes, and return the number of bytes."""
        number = super().write(data)
        self.flush()
        return number

    def close(self) -> None:
        """Do nothing, because another stream of the program owns the file."""


def _writing_all(stream: TextIO) -> TextIO:
    """Return a stream that either writes all of a text or raises an error.

    With ``PYTHONUNBUFFERED``, Python's stream may write only a part of a text without an error, if the reader
    of a pipe leaves or a signal arrives during the write.
    """
    raw = getattr(stream, "buffer", None)
    if not (isinstance(stream, io.TextIOWrapper) and isinstance(raw, io.RawIOBase)):
        return stream
    whole = io.TextIOWrapper(_WholeWriter(raw), stream.encoding, stream.errors, write_through=True)
    whole.unbuffered = stream  # type: ignore[attr-defined]  # it would close the file if nothing referred to it
    return whole


def _escaping(stream: TextIO) -> TextIO:
    """Return a stream that escapes all characters that its encoding does not contain."""
    if not isinstance(stream, io.TextIOWrapper):  # a stream of a program that calls the command line
        return stream
    if codecs.lookup(stream.encoding).name == "ascii":
        stream.flush()
        return _AsciiText(stream)
    stream.reconfigure(errors="backslashreplace")
    return stream


def _open_null(flags: int, mode: str) -> TextIO:
    """Open the null device with the file descriptor of a closed stream, and return the new stream."""
    return open(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]  # it is text


def discard_stdout() -> None:
    """Redirect stdout to the null device, so that a flush at exit cannot fail."""
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    with suppress(OSError, ValueError):  # the stream is not a file, and is not flushed at exit
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def can_redraw() -> bool:
    """Return whether stderr is a terminal on which a line can be updated in place."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class Waiting:
    """A line such as ``starting Spark … 12 s``, which a thread updates each second until it is cleared."""

    def __init__(self, text: Callable[[], str], *, enabled: bool) -> None:
        self._text = text
        self._enabled = enabled and can_redraw()
        self._ended = threading.Event()

    def _run(self) -> None:
        started = time.monotonic()
        while not self._ended.wait(1):
            sys.stderr.write(f"\r{self._text()} … {time.monotonic() - started:.0f} s\x1b[K")
            sys.stderr.flush()

    def erase(self) -> None:
        """Erase the line on stderr; it is drawn again in the next second."""
        if self._enabled and not self._ended.is_set():
            sys.stderr.write("\r\x1b[K")

    def clear(self) -> None:
        """Erase the line permanently."""
        self.erase()
        self._ended.set()

    def __enter__(self) -> Self:
        if self._enabled:
            threading.Thread(target=self._run, name="waiting", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()


class Progress:
    """A line such as ``2,000 records`` on stderr, which is updated in place and erased at the end."""

    def __init__(self, label: str, *, enabled: bool = True) -> None:
        self._label = label
        self._enabled = enabled and can_redraw()
        self._updated = time.monotonic()
        self._on_screen = False

    def update(self, done: int) -> None:
        """Show a count on stderr, unless the last count was shown very recently."""
        now = time.monotonic()
        if self._enabled and now - self._updated >= _INTERVAL:
            sys.stderr.write(f"\r{pluralize(done, self._label.removesuffix('s'), self._label)}")
            sys.stderr.flush()
            self._updated = now
            self._on_screen = True

    def clear(self) -> None:
        """Erase the line."""
        if self._on_screen:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._on_screen = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()
