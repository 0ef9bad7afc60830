"""``protocol decode``: explain frames field by field."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import click

from cloudevents_kafka.cli.commands.protocol._explained import Allowance, Form, Frame, heading, print_frame
from cloudevents_kafka.cli.records.inputs import InputLine, read_lines
from cloudevents_kafka.cli.terminal.completion import complete_from
from cloudevents_kafka.cli.terminal.errors import BAD_DATA, BadData, BadUsage
from cloudevents_kafka.cli.terminal.parameters import FILE
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.text import near, print_message
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.protocol import Malformed, explain
from cloudevents_kafka.protocol.client import parse_line
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.v07.messages import RESPONSES, RequestType

_MAX_MESSAGES: Final = 20
"""The largest number of lines whose errors are printed; further errors are only counted."""
_LINE_RULE: Final = "a line must be a frame in hexadecimal digits, or a JSON object of a capture"

Explain = Callable[[bytes], explain.ExplainedFrame]


@click.command()
@click.argument("file", type=FILE, default="-")
@click.option("--hex", "digits", metavar="HEX", help="Explain this frame, in hexadecimal digits.")
@click.option("--response", is_flag=True, help="The frames are responses.")
@click.option(
    "--api",
    metavar="NAME",
    help="The API of the responses: a name or a key.",
    shell_complete=complete_from(lambda: [api.name for api in APIS.values()]),
)
@click.option(
    "--version", type=click.IntRange(0, 32767), metavar="N", help="The API version of the responses."
)
@click.option("--bare", is_flag=True, help="The frames have no size field.  [default: detected]")
@click.option("--v07", is_flag=True, help="The frames are in the protocol of Kafka 0.7.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["tree", "table", "json"]),
    help="Print a tree that fits the width, a table with full paths, or JSON lines.  "
    "[default: tree on a terminal, else table]",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    file: str,
    digits: str | None,
    output: Form | None,
    **options: Any,
) -> None:
    """Explain frames field by field: position, bytes, path, type, value.

    On a terminal, the fields are printed as an indented tree, with one field on each line. A value that does
    not fit the width ends with "…". If stdout is not a terminal, the fields are printed as a table with full
    paths.

    FILE or stdin contains one frame on each line, in hexadecimal digits, with or without the size field of
    the frame. The character # starts a comment. FILE may also be a capture that --trace or Client(trace=…)
    wrote. Each response in a capture is decoded in the version of its request. The API of a response that is
    not in a capture is unknown: set --response, --api and --version. With --v07, set --response and --api.

    Compressed records are decompressed, and their positions count from the start of the decompressed bytes.
    If a frame is malformed, its readable fields are printed, followed by the position and the reason of the
    error. If a frame is malformed, the exit code is 1. If a malformed frame has many fields, only its first
    and last fields are printed. Long fields are cut to 256 bytes. After 1 MiB of output for malformed frames,
    further malformed frames are left out.

    \b
    cloudevents-kafka protocol decode --hex 0000000a00120000000000070000
    cloudevents-kafka protocol decode -o json capture.jsonl
    """
    if digits is not None and file != "-":
        raise click.UsageError("FILE and --hex exclude each other")
    explain_frame = _explainer(**options)
    form: Form = output or ("tree" if sys.stdout.isatty() else "table")
    frames = bad = 0
    allowance = Allowance()
    with Interrupts() as interrupts:
        lines: Iterable[InputLine] = (
            [InputLine("--hex", digits.encode())]
            if digits is not None
            else read_lines([file], interrupts, expected="frames")
        )
        for frame in _frames(lines, explain_frame):
            frames += 1
            if isinstance(frame, Frame):
                print_frame(frame, form, allowance)
            bad += _report_problems(frame, quiet=bad >= _MAX_MESSAGES)
    if bad > _MAX_MESSAGES:
        more = pluralize(bad - _MAX_MESSAGES, "more line is", "more lines are")
        print_message(f"{more} bad; only the first {_MAX_MESSAGES} are shown here")
    if allowance.refused:
        more = pluralize(allowance.refused, "bad frame is", "bad frames are")
        print_message(f"{more} not printed, because 1 MiB of bad frames was printed before")
    if not frames:
        raise BadUsage(
            "a frame is missing: pass frames or a capture in FILE or on stdin, or pass --hex DIGITS"
        )
    ctx.exit(BAD_DATA if bad else 0)


def _report_problems(frame: Frame | BadData, *, quiet: bool) -> bool:
    """Print an error, or the first problem of a frame, on stderr; return whether there was one."""
    if isinstance(frame, BadData):
        if not quiet:
            frame.show()
        return True
    problems = frame.explained.problems
    if problems and not quiet:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        text = f"{frame.where}: {heading(frame.explained)}: {problems[0]}{more}"
        print_message(text)
    return bool(problems)


# --- reading frames ------------------------------------------------------------------


def _frames(lines: Iterable[InputLine], explain_frame: Explain) -> Iterator[Frame | BadData]:
    """Yield the explanation of each frame, or an error for each line that is not a frame."""
    captured = explain.CaptureExplainer()
    for line in lines:
        text = line.text.decode("utf-8", "replace").strip()
        try:
            if text.startswith("{"):
                frame = parse_line(text, line.where)
                members = {"broker": frame.broker, "direction": frame.direction, "time": frame.time}
                yield Frame(line.where, members, captured.explain(frame))
            elif digits := text.partition("#")[0].strip():
                yield Frame(line.where, {}, explain_frame(bytes.fromhex(digits.removeprefix("0x"))))
        except Malformed as error:
            yield BadData(f"{error}; {_LINE_RULE}")
        except ValueError:
            yield BadData(f"{line.where}: {_LINE_RULE}, got {text[:60]!r}")


def _explainer(*, response: bool, api: str | None, version: int | None, bare: bool, v07: bool) -> Explain:
    """Return a function that explains the bytes of a frame."""
    sized = False if bare else None
    if not response:
        if api is not None or version is not None:
            raise click.UsageError("--api and --version need --response: a request has both in its header")
        return partial(explain.explain_request_07 if v07 else explain.explain_request, sized=sized)
    if api is None or (version is None) is not v07:
        raise click.UsageError("--response needs --api and --version, or with --v07 only --api")
    key = _api_key(api, v07=v07)
    if version is None:
        return partial(explain.explain_response_07, key=key, sized=sized)
    return partial(explain.explain_response, key=key, version=version, sized=sized)


def _api_key(text: str, *, v07: bool) -> int:
    """Return the key of an API whose responses can be decoded; ``text`` is the API's name or key."""
    keys = {RequestType(key).name: key for key in RESPONSES} if v07 else {a.name: k for k, a in APIS.items()}
    for name, key in keys.items():
        if text.lower() in (name.lower(), str(key)):
            return key
    raise BadUsage(f"--api must be the name of an API or its key, got {text!r}{near(text, keys)}")
