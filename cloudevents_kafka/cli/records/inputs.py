"""Input of the commands: lines from files or stdin, and one event from options."""

from __future__ import annotations

import select
import sys
import uuid
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.timestamps import from_datetime
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.cli.terminal.errors import BadData, BadUsage
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.codecs.json import is_json
from cloudevents_kafka.codecs.payload import encode_text
from cloudevents_kafka.errors import DataError, InvalidEvent, Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.visible import escape

_STDIN: Final = "-"
_CHUNK: Final = 64 * 1024  # bytes, the size of a pipe
_WAIT_SECONDS: Final = 0.02  # for input, between two calls of ``while_waiting``


class InputLine(msgspec.Struct, frozen=True):
    """A line of the input, and its position, such as ``stdin:3``."""

    where: str
    text: bytes


def read_lines(
    files: Sequence[str],
    interrupts: Interrupts,
    *,
    expected: str = "JSON lines",
    while_waiting: Callable[[], bool] = lambda: False,
) -> Iterator[InputLine]:
    """Yield the non-empty lines of files, or of stdin if the name is ``-``; a signal ends a wait for input.

    While the command waits for input, the function ``while_waiting`` is called repeatedly until the function
    returns False.
    """
    for path in files or (_STDIN,):
        with ExitStack() as stack:
            stream, name = _open(path, stack, expected)
            lines = _lines(stream, name, interrupts, while_waiting)
            for number, line in enumerate(lines, 1):
                text = line
                if number == 1:
                    text = text.removeprefix(BOM_UTF8)  # programs on Windows begin files with it
                    _refuse_utf16(text, name)
                    _refuse_long_document(text, name, path)
                if text.strip():
                    yield InputLine(f"{name}:{number}", text)


def _lines(
    stream: BufferedIOBase, name: str, interrupts: Interrupts, while_waiting: Callable[[], bool]
) -> Iterator[bytes]:
    begin: list[bytes] = []  # of a line whose end was not read yet
    while True:
        while not _has_input(stream, interrupts) and while_waiting():
            pass
        with interrupts.waiting(), read_errors(name):
            chunk = stream.read1(_CHUNK)
        *ends, last = chunk.split(b"\n")
        for end in ends:
            interrupts.check()
            yield b"".join([*begin, end, b"\n"])
            begin.clear()
        begin.append(last)
        if not chunk:
            if text := b"".join(begin):
                yield text
            return


def _has_input(stream: BufferedIOBase, interrupts: Interrupts) -> bool:
    """Wait a short time for input, and return whether the input stream can be read.

    The result is also True if the stream has ended, or if waiting is not possible.
    """
    try:
        with interrupts.waiting():
            return bool(select.select([stream], [], [], _WAIT_SECONDS)[0])
    except (OSError, ValueError):  # the stream is not a file of the system, or is a pipe on Windows
        return True


def _refuse_utf16(text: bytes, name: str) -> None:
    """If a file is in UTF-16, such as a file of PowerShell, raise one `BadData` for the whole file."""
    if text.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise BadData(
            f"{name}:1: the file must be UTF-8, got UTF-16; save it as UTF-8, or convert it by iconv"
        )


def _refuse_long_document(text: bytes, name: str, path: str) -> None:
    """If a file is one JSON document of several lines, raise one `BadData` for the whole file."""
    start = text.strip()
    if start[:1] in (b"{", b"[") and start[-1:] in (b"{", b"[", b",") and not is_json(start):
        each = ".[]" if start[:1] == b"[" else "."
        file = "" if path == _STDIN else f" {name}"
        raise BadData(
            f"{name}:1: each line must be a JSON object, got JSON of several lines; "
            f"first write each object on one line: jq -c {each}{file}"
        )


def _open(path: str, stack: ExitStack, expected: str) -> tuple[BufferedIOBase, str]:
    if path == _STDIN:
        _announce_stdin(expected)
        return cast("BufferedIOBase", sys.stdin.buffer), "stdin"
    with read_errors(path):
        return stack.enter_context(Path(path).open("rb")), escape(path)


def read_stdin(expected: str) -> bytes:
    """Return all bytes of stdin."""
    _announce_stdin(expected)
    with read_errors("stdin"):
        return sys.stdin.buffer.read()


def _announce_stdin(expected: str) -> None:
    if sys.stdin.isatty():
        print(f"reading {expected} from the terminal; end with Ctrl-D", file=sys.stderr)


@contextmanager
def read_errors(name: str) -> Iterator[None]:
    """Return a context manager that converts errors of reading a file to `BadUsage`."""
    try:
        yield
    except OSError as error:
        raise BadUsage(f"cannot read {name}: {error.strerror}") from None


def event_from_options(
    *,
    content_type: str | None = None,
    data: str | None = None,
    data_file: str | None = None,
    extensions: Sequence[tuple[str, str]] = (),
    **attributes: str,
) -> Event:
    """Return the event that the options of a command describe.

    Raises `BadUsage`, which lists all rules that the event breaks.
    """
    if data is not None and data_file is not None:
        raise BadUsage("--data and --data-file exclude each other")
    if core := [name for name, _ in extensions if name in CORE]:
        raise BadUsage(f"--ext must name an extension, got the core attribute {core[0]}; use its own option")
    time = attributes.get("time")
    core_attributes: dict[str, Any] = {
        "id": attributes.get("id") or str(uuid.uuid4()),
        "source": attributes.get("source"),
        "type": attributes.get("type"),
        "datacontenttype": content_type,
        "dataschema": attributes.get("dataschema"),
        "subject": attributes.get("subject"),
        "time": from_datetime(datetime.now(UTC)) if time == "now" else time,
    }
    payload = None if data is None else _data_from_text(data, content_type)
    if data_file is not None:
        payload = _read_data_file(data_file, content_type)
    try:
        return Event(**core_attributes, **dict(extensions), data=payload)
    except InvalidEvent as error:
        raise BadUsage(str(InvalidEvent(list(map(_with_option, error.problems))))) from None


def _with_option(problem: Problem) -> Problem:
    """Return a problem whose hint names an option of the command instead of an argument of `Event`."""
    name, hint = problem.attribute, problem.hint or ""
    argument = f"pass {name}="
    if name == "time":
        hint = "pass --time now, or a text such as --time 2026-01-31T12:00:00Z"
    elif hint.startswith(argument):
        option = "content-type" if name == "datacontenttype" else name
        hint = f"pass --{option} {hint.removeprefix(argument)}"
    return msgspec.structs.replace(problem, hint=hint or None)


def _data_from_text(text: str, content_type: str | None) -> Any:
    """Return the value of --data: JSON text unchanged, or other text in the charset of the content type."""
    if content_type is not None and not media_type(content_type).is_json:
        try:
            return encode_text(text, content_type)
        except DataError as error:
            raise BadUsage(f"--data: {error}") from None
    raw = text.encode("utf-8", "surrogateescape")
    if is_json(raw):
        return msgspec.Raw(raw)
    reason = "without --content-type" if content_type is None else f"for {content_type}"
    raise BadUsage(
        f"--data must be JSON {reason}; quote it, or set --content-type to another type, such as text/plain"
    )


def _read_data_file(path: str, content_type: str | None) -> Any:
    """Return the bytes of a file as data; without a content type, JSON text becomes JSON data."""
    with read_errors(f"--data-file {path}"):
        raw = read_stdin("the data") if path == _STDIN else Path(path).read_bytes()
    return msgspec.Raw(raw) if content_type is None and is_json(raw) else raw
