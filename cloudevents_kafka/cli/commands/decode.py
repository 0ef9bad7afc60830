"""``decode``: say what a record is, and why."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from cloudevents_kafka.cli.records.explain import Explanation, explain, lines, members
from cloudevents_kafka.cli.records.inputs import read_texts, reading
from cloudevents_kafka.cli.records.json_lines import BadLine, as_bytes, encoded, read_record
from cloudevents_kafka.cli.records.text import Painter
from cloudevents_kafka.cli.terminal.errors import BAD_DATA, BadData, BadUsage
from cloudevents_kafka.cli.terminal.parameters import BYTES, FILE, Header
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.record import Record

_HELP: Final = """Say what a record is, and why.

Takes a line of consume, or {"key", "headers", "value"} with text, {"base64": …} or
{"hex": …} in it, from FILES or stdin; or one record from options. Tells which mode it
was taken for and why, its attributes and their types, every rule that it breaks with
its clause, what it does otherwise than recommended, and what lenient reading makes of
it. A line that is no record is told with its number, and left out. Exit code 0 where
all are events, else 1.

\b
cloudevents-kafka consume -b localhost:9092 -t orders --from 1741 -n 1 | cloudevents-kafka decode
cloudevents-kafka decode --header ce_id=1 --header content-type=text/plain --value hello
"""


class Given(msgspec.Struct, kw_only=True):
    """One record, as options give it."""

    headers: tuple[tuple[str, bytes | None], ...]
    key: bytes | None
    value: bytes | None
    value_hex: str | None
    value_file: str | None


@click.command(help=_HELP, short_help="Say what a record is, and why.")
@click.argument("files", nargs=-1, type=FILE, metavar="[FILES]...")
@click.option(
    "--header",
    "headers",
    multiple=True,
    type=Header(valueless=True),
    metavar="NAME[=VALUE]",
    help="One record: a header; null without =VALUE. Repeatable.",
)
@click.option("-k", "--key", type=BYTES, metavar="TEXT", help="One record: its key.")
@click.option("--value", type=BYTES, metavar="TEXT", help="One record: its value, as text.")
@click.option("--value-hex", metavar="HEX", help="One record: its value, in hexadecimal digits.")
@click.option(
    "--value-file", type=FILE, metavar="FILE", help="One record: its value, from a file, byte for byte."
)
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="text, or a JSON line."
)
@click.pass_context
def command(ctx: click.Context, /, output: str, files: tuple[str, ...], **options: Any) -> None:
    """Explain records."""
    given = Given(**options)
    from_options = any(value not in (None, ()) for value in msgspec.structs.astuple(given))
    if from_options and files:
        raise click.UsageError("give FILES, or the options of one record")
    tell = _tell_json if output == "json" else _tell_text
    found = [_record(given)] if from_options else _records(files)
    events = Counter(_take(item, tell) for item in found)
    if not events:
        raise BadUsage("no record: give a line of JSON on stdin or in a file, or --header and --value")
    ctx.exit(BAD_DATA if events[False] else 0)


def _take(item: Record | BadData, tell: Callable[[Explanation], None]) -> bool:
    """Explain a record, or tell a line that is none; return whether it is an event."""
    if isinstance(item, BadData):
        item.show()
        return False
    explanation = explain(item)
    tell(explanation)
    return explanation.is_event


def _tell_json(explanation: Explanation) -> None:
    click.echo(encoded(members(explanation)))


def _tell_text(explanation: Explanation) -> None:
    painter = Painter(sys.stdout, colours=sys.stdout.isatty())
    painter.paint([*lines(explanation), []])
    painter.flush()


def _records(files: tuple[str, ...]) -> Iterator[Record | BadData]:
    with Interrupts() as interrupts:
        for text in read_texts(files, interrupts):
            try:
                yield read_record(text.text)
            except BadLine as error:
                yield BadData(f"{text.where}: {error}")


def _record(given: Given) -> Record:
    return Record(key=given.key, headers=list(given.headers), value=_value(given))


def _value(given: Given) -> bytes | None:
    if sum(value is not None for value in (given.value, given.value_hex, given.value_file)) > 1:
        raise click.UsageError("--value, --value-hex and --value-file exclude each other")
    if given.value_file is not None:
        with reading(f"--value-file {given.value_file}"):
            return Path(given.value_file).read_bytes()
    if given.value_hex is not None:
        try:
            return as_bytes({"hex": given.value_hex}, "--value-hex")
        except BadLine as error:
            raise click.UsageError(str(error)) from None
    return given.value
