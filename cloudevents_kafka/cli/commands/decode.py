"""``decode``: explain records, events or not."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import CORE, AttributeType
from cloudevents_kafka.attributes.validation import native_type
from cloudevents_kafka.binding import Decoded, Undecodable, Verdict, decode, sniff
from cloudevents_kafka.clauses import SECTIONS
from cloudevents_kafka.cli.records.inputs import read_errors, read_lines
from cloudevents_kafka.cli.records.json_lines import (
    BadLine,
    bytes_from_json,
    bytes_to_json,
    encode_json,
    error_object,
    event_json,
    read_record,
)
from cloudevents_kafka.cli.records.output import (
    Style,
    StyledLine,
    StyledPrinter,
    bytes_text,
    data_text,
    header_lines,
    mode_text,
    record_heading,
    row,
)
from cloudevents_kafka.cli.terminal.errors import BAD_DATA, BadData, BadUsage
from cloudevents_kafka.cli.terminal.escape import escape
from cloudevents_kafka.cli.terminal.parameters import BYTES, FILE, header_option
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.errors import Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions import size_problem, unmet_recommendations
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Headers, Record

_TYPE_WIDTH: Final = len("URI-reference") + 2


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
    explanation = Explanation(record, sniff(record.headers), decode(record), decode(record, lenient=True))
    show(explanation)
    return explanation.verdict == "event"


def _print_json(explanation: Explanation) -> None:
    click.echo(encode_json(_explanation_object(explanation)))


def _print_text(explanation: Explanation) -> None:
    printer = StyledPrinter(sys.stdout, color=sys.stdout.isatty())
    printer.print_lines([*_explanation_lines(explanation), []])
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


# --- explanations ---


class Explanation(msgspec.Struct, frozen=True):
    """A record, its content mode, and the results of strict and lenient decoding."""

    record: Record
    sniffed: Verdict
    strict: Decoded | Undecodable
    lenient: Decoded | Undecodable

    @property
    def verdict(self) -> str:
        """``event``, or the verdict of the error."""
        return "event" if isinstance(self.strict, Decoded) else self.strict.error.verdict

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every rule that a broken event breaks; empty for other records."""
        return self.strict.error.problems if isinstance(self.strict, Undecodable) else ()

    @property
    def advice(self) -> list[Problem]:
        """The recommendations of the specification that an event does not follow."""
        large = size_problem(self.record)
        advice = unmet_recommendations(self.strict.event) if isinstance(self.strict, Decoded) else []
        return advice if large is None else [*advice, large]


def _type_name(event: Event, name: str) -> str:
    """Return the name of an attribute's type: the registered one, else that of its value."""
    known = type_of(name)
    if name in CORE or known is not AttributeType.STRING:
        return known.value
    return native_type(event[name]).value


# --- as JSON --


def _explanation_object(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as a JSON object."""
    result: dict[str, Any] = {"verdict": explanation.verdict}
    if explanation.record.where:
        result["record"] = explanation.record.where
    sniffed = explanation.sniffed
    result["sniffed"] = {
        "mode": sniffed.mode,
        "format": sniffed.format,
        "content-type": sniffed.media_type,
        "reason": sniffed.reason,
    }
    if isinstance(explanation.strict, Decoded):
        result |= _event_members(explanation.strict.event)
        if explanation.advice:
            result["advice"] = _problem_objects(explanation.advice)
    else:
        result["error"] = error_object(explanation.strict.error)
        result["problems"] = _problem_objects(explanation.problems)
        result["lenient"] = _lenient_object(explanation.lenient)
    result["key"] = bytes_to_json(explanation.record.key)
    return result


def _event_members(event: Event) -> dict[str, Any]:
    return {"event": event_json(event), "types": {name: _type_name(event, name) for name in event}}


def _lenient_object(item: Decoded | Undecodable) -> dict[str, Any]:
    if isinstance(item, Undecodable):
        return {"verdict": item.error.verdict, "error": error_object(item.error)}
    return {"verdict": "event", "tolerated": _problem_objects(item.tolerated)} | _event_members(item.event)


def _problem_objects(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    return [
        {
            "attribute": problem.attribute,
            "rule": problem.rule,
            "seen": problem.value,
            "clause": problem.clause,
            "section": SECTIONS[problem.clause],
        }
        for problem in problems
    ]


# --- as text --


def _explanation_lines(explanation: Explanation) -> list[StyledLine]:
    """Return an explanation as lines of text."""
    record, strict = explanation.record, explanation.strict
    verdict_style = Style.GOOD if isinstance(strict, Decoded) else Style.ERROR
    lines = [record_heading(record), row("verdict", explanation.verdict, verdict_style)]
    if explanation.sniffed.mode in ("binary", "structured"):
        lines.append(row("mode", mode_text(explanation.sniffed)))
        lines.append(row("because", escape(explanation.sniffed.reason)))
    if isinstance(strict, Decoded):
        lines += _event_lines(strict.event)
        lines += _problem_lines("advice", explanation.advice, Style.WARNING)
        lines += header_lines(record, extra_only=True)
        return lines
    lines += _problem_lines("problem", explanation.problems) or [
        row("because", escape(strict.error.reason), Style.ERROR)
    ]
    if strict.error.hint:
        lines.append(row("hint", escape(strict.error.hint), Style.WARNING))
    lines += header_lines(record, extra_only=False)
    lines.append(row("value", bytes_text(record.value)))
    return lines + _lenient_lines(explanation.lenient)


def _event_lines(event: Event) -> list[StyledLine]:
    lines = [_typed_row(name, _type_name(event, name), escape(str(event.text(name)))) for name in event]
    if event.payload is not None:
        lines.append(_typed_row("data", pluralize(len(event.payload), "byte"), data_text(event)))
    return lines


def _typed_row(name: str, type_name: str, text: str) -> StyledLine:
    return [*row(name, ""), (f"{type_name:<{_TYPE_WIDTH}}", Style.DIM), (text, Style.PLAIN)]


def _problem_lines(name: str, problems: Iterable[Problem], style: str = Style.ERROR) -> list[StyledLine]:
    return [row(name, escape(str(problem)), style) for problem in problems]


def _lenient_lines(item: Decoded | Undecodable) -> list[StyledLine]:
    if isinstance(item, Undecodable):
        return [row("lenient", f"also {item.error.verdict}")]
    lines = [row("lenient", "an event, tolerating:", Style.GOOD)]
    return lines + _problem_lines("", item.tolerated, Style.WARNING) + _event_lines(item.event)
