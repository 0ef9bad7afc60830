"""What `produce` sends: lines of files or stdin, or one event made from options."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.timestamps import from_datetime
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.escape import visible
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.codecs.json import is_json
from cloudevents_kafka.codecs.payload import encode_text
from cloudevents_kafka.errors import DataError, InvalidEvent
from cloudevents_kafka.event import Event

_STDIN: Final = "-"


class Text(msgspec.Struct, frozen=True):
    """A line, and where it came from."""

    where: str
    text: bytes


def read_texts(
    files: Sequence[str], interrupts: Interrupts, *, awaited: str = "JSON lines"
) -> Iterator[Text]:
    """Read the lines of files, ``-`` for stdin, leaving out empty ones; a signal ends the wait."""
    for path in files or (_STDIN,):
        with ExitStack() as stack:
            stream, name = _open(path, stack, awaited)
            number = 0
            while True:
                with interrupts.waiting(), reading(name):
                    text = stream.readline()
                if not text:
                    break
                number += 1
                if text.strip():
                    yield Text(f"{name}:{number}", text)


def _open(path: str, stack: ExitStack, awaited: str) -> tuple[BinaryIO, str]:
    if path == _STDIN:
        if sys.stdin.isatty():
            print(f"reading {awaited} from the terminal; Ctrl-D ends them", file=sys.stderr)
        return sys.stdin.buffer, "stdin"
    with reading(path):
        return stack.enter_context(Path(path).open("rb")), visible(path)


def read_stdin(awaited: str) -> bytes:
    """Read all of stdin."""
    if sys.stdin.isatty():
        print(f"reading {awaited} from the terminal; Ctrl-D ends it", file=sys.stderr)
    with reading("stdin"):
        return sys.stdin.buffer.read()


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Raise `BadUsage` where the system does not let a file be read."""
    try:
        yield
    except OSError as error:
        raise BadUsage(f"cannot read {name}: {error.strerror}") from None


class Given(msgspec.Struct, kw_only=True):
    """One event, as options give it."""

    id: str | None = None
    source: str | None = None
    type: str | None = None
    subject: str | None = None
    time: str | None = None
    dataschema: str | None = None
    content_type: str | None = None
    data: str | None = None
    data_file: str | None = None
    extensions: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is given at all."""
        return any(value not in (None, ()) for value in msgspec.structs.astuple(self))


def make_event(given: Given) -> Event:
    """Make the event that options give; raises `BadUsage`, which names every broken rule."""
    if given.data is not None and given.data_file is not None:
        raise BadUsage("--data and --data-file exclude each other")
    core = [name for name, _ in given.extensions if name in CORE]
    if core:
        raise BadUsage(f"--ext {core[0]}: that is no extension; it has an option of its own")
    attributes: dict[str, Any] = {
        "id": given.id or str(uuid.uuid4()),
        "source": given.source,
        "type": given.type,
        "datacontenttype": given.content_type,
        "dataschema": given.dataschema,
        "subject": given.subject,
        "time": from_datetime(datetime.now(UTC)) if given.time == "now" else given.time,
    }
    try:
        return Event(**attributes, **dict(given.extensions), data=_data(given))
    except InvalidEvent as error:
        raise BadUsage(str(error)) from None


def _data(given: Given) -> Any:
    if given.data_file is not None:
        return _read_file(given.data_file, given.content_type)
    return None if given.data is None else _typed(given.data, given.content_type)


def _typed(text: str, content_type: str | None) -> Any:
    """Take the text of --data for what --content-type says: JSON in its exact text, or a text."""
    if content_type is not None and not media_type(content_type).is_json:
        try:
            return encode_text(text, content_type)
        except DataError as error:
            raise BadUsage(f"--data: {error}") from None
    raw = text.encode("utf-8", "surrogateescape")
    if is_json(raw):
        return msgspec.Raw(raw)
    hint = "quote it, or say what it is with --content-type, such as text/plain"
    raise BadUsage(f"--data is not JSON, which it must be {_because(content_type)}: {hint}")


def _because(content_type: str | None) -> str:
    return "without a --content-type" if content_type is None else f"to be {content_type}"


def _read_file(path: str, content_type: str | None) -> Any:
    """Read a file as data: bytes as they are, or a JSON text where nothing else is said."""
    with reading(f"--data-file {path}"):
        raw = read_stdin("the data") if path == _STDIN else Path(path).read_bytes()
    return msgspec.Raw(raw) if content_type is None and is_json(raw) else raw
