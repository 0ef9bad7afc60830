"""``decode``: explain records, events or not."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from cloudevents_kafka.cli.records import (
    BadLine,
    Explanation,
    StyledPrinter,
    bytes_from_json,
    encode_json,
    explain,
    explanation_lines,
    explanation_object,
    read_errors,
    read_lines,
    read_record,
)
from cloudevents_kafka.cli.terminal import BAD_DATA, BYTES, FILE, BadData, BadUsage, Interrupts, header_option
from cloudevents_kafka.record import Headers, Record


@click.command()
@click.argument("files", nargs=-1, type=FILE, metavar="[FILES]...")
@header_option("One record: a header; null without =VALUE. Repeatable.")
@click.option("-k", "--key", type=BYTES, metavar="TEXT", help="One record: its key.")
@click.option("--value", type=BYTES, metavar="TEXT", help="One record: its value, as text.")
@click.option("--value-hex", metavar="HEX", help="One record: its value, in hexadecimal digits.")
@click.option(
    "--value-file", type=FILE, metavar="FILE", help="One record: its value, from a file, byte for byte."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text, or JSON lines.",
)
@click.pass_context
def command(ctx: click.Context, /, output: str, files: tuple[str, ...], **options: Any) -> None:
    """Explain a record: mode, attributes, broken rules.

    Reads lines of consume, or {"key", "headers", "value"} with text, {"base64": …} or
    {"hex": …}, from FILES or stdin; or one record from options. Prints the content mode and
    the reason for it, the attributes and their types, every broken rule with its clause,
    the recommendations that the event does not follow, and the result of lenient decoding.
    A line that is not a record is reported with its number and skipped. The exit code is 0
    if all records are events, else 1.

    \b
    cloudevents-kafka consume -b localhost:9092 -t orders --from 1741 -n 1 | cloudevents-kafka decode
    cloudevents-kafka decode --header ce_id=1 --header content-type=text/plain --value hello
    """
    is_one = any(value not in (None, ()) for value in options.values())
    if is_one and files:
        raise click.UsageError("FILES and the options of one record exclude each other")
    show = _print_json if output == "json" else _print_text
    records = [_record(**options)] if is_one else _read_records(files)
    events = Counter(_explain(record, show) for record in records)
    if not events:
        raise BadUsage("a record is missing: pass JSON lines on stdin or in a file, or --header and --value")
    ctx.exit(BAD_DATA if events[False] else 0)


def _explain(record: Record | BadData, show: Callable[[Explanation], None]) -> bool:
    """Print the explanation of a record, or the error of a line; return whether it is an event."""
    if isinstance(record, BadData):
        record.show()
        return False
    explanation = explain(record)
    show(explanation)
    return explanation.is_event


def _print_json(explanation: Explanation) -> None:
    click.echo(encode_json(explanation_object(explanation)))


def _print_text(explanation: Explanation) -> None:
    printer = StyledPrinter(sys.stdout, color=sys.stdout.isatty())
    printer.print_lines([*explanation_lines(explanation), []])
    printer.flush()


def _read_records(files: tuple[str, ...]) -> Iterator[Record | BadData]:
    with Interrupts() as interrupts:
        for line in read_lines(files, interrupts):
            try:
                yield read_record(line.text)
            except BadLine as error:
                yield BadData(f"{line.where}: {error}")


def _record(
    headers: Headers,
    key: bytes | None,
    value: bytes | None,
    value_hex: str | None,
    value_file: str | None,
) -> Record:
    """Return the record of the options."""
    if sum(option is not None for option in (value, value_hex, value_file)) > 1:
        raise click.UsageError("--value, --value-hex and --value-file exclude each other")
    if value_file is not None:
        with read_errors(f"--value-file {value_file}"):
            value = Path(value_file).read_bytes()
    elif value_hex is not None:
        try:
            value = bytes_from_json({"hex": value_hex}, "--value-hex")
        except BadLine as error:
            raise click.UsageError(str(error)) from None
    return Record(key=key, headers=list(headers), value=value)
