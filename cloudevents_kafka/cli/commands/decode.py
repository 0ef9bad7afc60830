"""``decode``: explain events and other records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import CORE, AttributeType
from cloudevents_kafka.attributes.validation import native_type
from cloudevents_kafka.binding import Decoded, Undecodable, sniff
from cloudevents_kafka.cli.records.inputs import read_errors, read_lines
from cloudevents_kafka.cli.records.json_lines import (
    BadLine,
    bytes_to_json,
    encode_json,
    error_object,
    event_json,
    read_record,
    value_to_json,
)
from cloudevents_kafka.cli.records.output import (
    content_lines,
    data_text,
    header_lines,
    mode_text,
    record_heading,
    row,
)
from cloudevents_kafka.cli.records.reading import event_of, read
from cloudevents_kafka.cli.terminal.errors import BAD_DATA, BadData, BadUsage
from cloudevents_kafka.cli.terminal.parameters import BYTES, FILE, header_option, output_option
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.text import Style, print_lines, styled
from cloudevents_kafka.errors import BrokenData, DecodeError, LeftOut, Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions import size_problem, unmet_recommendations
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.visible import escape
from cloudevents_kafka.record import Headers, Record

_TYPE_WIDTH: Final = len("URI-reference") + 2
Item = Decoded | Undecodable


@click.command()
@click.argument("files", nargs=-1, type=FILE, metavar="[FILES]...")
@header_option("A header of a single record. Its value is null if =VALUE is missing. Repeatable.")
@click.option("-k", "--key", type=BYTES, metavar="TEXT", help="The key of a single record.")
@click.option("--value", type=BYTES, metavar="TEXT", help="The value of a single record, as text.")
@click.option("--value-hex", metavar="HEX", help="The value of a single record, in hexadecimal digits.")
@click.option(
    "--value-file",
    type=FILE,
    metavar="FILE",
    help="A file that contains the value of a single record, byte for byte.",
)
@output_option
@click.pass_context
def command(ctx: click.Context, /, output: str, files: tuple[str, ...], **options: Any) -> None:
    """Explain a record: mode, attributes, broken rules.

    Reads JSON lines from FILES or stdin, or one record from options. A line is the output of the command
    consume, or an object {"key", "headers", "value"}; each value is text, {"base64": …} or {"hex": …}. Prints
    the content mode and the reason for it, the attributes and their types, every broken rule with its clause,
    the recommendations that the event does not follow, and the result of lenient decoding. Data that does not
    match its content type is shown with the position of the error. If a line is not a record, the number of
    the line is printed, and the line is skipped. The exit code is 0 if all records are events with valid
    data, else 1.

    \b
    cloudevents-kafka consume -b localhost:9092 -t orders --from -1 |
        cloudevents-kafka decode
    cloudevents-kafka decode --header ce_id=1 --value hello
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


def _explain(record: Record | BadData, show: Callable[[Item, Item], None]) -> bool:
    """Print the explanation of a record, or an error; return whether the record is a valid event."""
    if isinstance(record, BadData):
        record.show()
        return False
    strict = read(record)
    show(strict, read(record, lenient=True))
    return isinstance(strict, Decoded)


def _read_records(files: tuple[str, ...]) -> Iterator[Record | BadData]:
    with Interrupts() as interrupts:
        for line in read_lines(files, interrupts):
            try:
                yield read_record(line.text)
            except BadLine as error:
                yield BadData(f"{line.where}: {error}")


def _record(
    headers: Headers, key: bytes | None, value: bytes | None, value_hex: str | None, value_file: str | None
) -> Record:
    """Return the record that the options describe."""
    if sum(option is not None for option in (value, value_hex, value_file)) > 1:
        raise click.UsageError("--value, --value-hex and --value-file exclude each other")
    if value_file is not None:
        with read_errors(f"--value-file {value_file}"):
            value = Path(value_file).read_bytes()
    elif value_hex is not None:
        try:
            value = bytes.fromhex(value_hex)
        except ValueError:
            raise click.UsageError("--value-hex must be valid hex") from None
    return Record(key=key, headers=list(headers), value=value)


# --- explanations ---


def _verdict(item: Item) -> str:
    return "event" if isinstance(item, Decoded) else item.error.verdict


def _advice(record: Record, event: Event) -> list[Problem]:
    """Return the recommendations of the CloudEvents specification that an event does not follow."""
    large = size_problem(record)
    return [*unmet_recommendations(event), *([] if large is None else [large])]


def _type_name(event: Event, name: str) -> str:
    """Return the name of an attribute's type: the registered type, or else the type of the value."""
    known = type_of(name)
    if name in CORE or known is not AttributeType.STRING:
        return known.value
    return native_type(event[name]).value


# --- as JSON --


def _print_json(strict: Item, lenient: Item) -> None:
    record, sniffed = strict.record, sniff(strict.record.headers)
    result: dict[str, Any] = {"verdict": _verdict(strict)}
    if record.where:
        result["record"] = record.where
    result["sniffed"] = {
        "mode": sniffed.mode,
        "format": sniffed.format,
        "content-type": sniffed.media_type,
        "reason": sniffed.reason,
    }
    if isinstance(strict, Decoded):
        result |= _event_members(strict.event)
        if advice := _advice(record, strict.event):
            result["advice"] = _problem_objects(advice)
    else:
        result["error"] = error_object(strict.error)
        result["problems"] = _problem_objects(strict.error.problems)
        if (event := event_of(strict)) is not None:
            result |= _event_members(event)
        result["lenient"] = _lenient_object(lenient)
    click.echo(encode_json({**result, "key": bytes_to_json(record.key)}))


def _event_members(event: Event) -> dict[str, Any]:
    return {"event": event_json(event), "types": {name: _type_name(event, name) for name in event}}


def _lenient_object(item: Item) -> dict[str, Any]:
    if isinstance(item, Undecodable):
        return {"verdict": _verdict(item), "error": error_object(item.error)}
    tolerated = _problem_objects(item.tolerated)
    return {"verdict": _verdict(item), "tolerated": tolerated, **_event_members(item.event)}


def _problem_objects(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    return [
        {
            "attribute": problem.attribute,
            "rule": problem.rule,
            "seen": problem.seen,
            "clause": problem.clause,
            "section": problem.section,
            **({"value": value_to_json(problem.value)} if isinstance(problem, LeftOut) else {}),
        }
        for problem in problems
    ]


# --- as text --


def _print_text(strict: Item, lenient: Item) -> None:
    record, sniffed = strict.record, sniff(strict.record.headers)
    verdict = styled(_verdict(strict), "good" if isinstance(strict, Decoded) else "error")
    lines = [record_heading(record), row("verdict", verdict)]
    if sniffed.mode in ("binary", "structured"):
        lines += [
            row("mode", mode_text(sniffed.mode, sniffed.format)),
            row("because", escape(sniffed.reason)),
        ]
    if isinstance(strict, Decoded):
        lines += _event_lines(strict.event)
        lines += _problem_lines("advice", _advice(record, strict.event), "warning")
        lines += header_lines(record, extra_only=True)
    else:
        lines += _error_lines(strict.error)
        if (event := event_of(strict)) is not None:
            lines += _event_lines(event) + header_lines(record, extra_only=True)
        else:
            lines += content_lines(record) + _lenient_lines(lenient)
    print_lines([*lines, ""])


def _event_lines(event: Event) -> list[str]:
    lines = [_typed_row(name, _type_name(event, name), escape(str(event.text(name)))) for name in event]
    if event.payload is not None:
        lines.append(_typed_row("data", pluralize(len(event.payload), "byte"), data_text(event)))
    return lines


def _typed_row(name: str, type_name: str, text: str) -> str:
    return row(name, styled(f"{type_name:<{_TYPE_WIDTH}}", "dim") + text)


def _error_lines(error: DecodeError) -> list[str]:
    """Return lines about every rule that a record breaks, or about why the record is not an event."""
    name = "problem" if isinstance(error, BrokenData) else "because"
    reason = [row(name, styled(escape(error.reason), "error"))]
    hint = [row("hint", styled(escape(error.hint), "warning"))] if error.hint else []
    return (_problem_lines("problem", error.problems, "error") or reason) + hint


def _problem_lines(name: str, problems: Iterable[Problem], style: Style) -> list[str]:
    return [row(name, styled(escape(str(problem)), style)) for problem in problems]


def _lenient_lines(item: Item) -> list[str]:
    if isinstance(item, Undecodable):
        return [row("lenient", f"also {_verdict(item)}")]
    lines = [row("lenient", styled("an event, tolerating:", "good"))]
    return lines + _problem_lines("", item.tolerated, "warning") + _event_lines(item.event)
