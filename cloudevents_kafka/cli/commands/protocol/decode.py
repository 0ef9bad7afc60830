"""``protocol decode``: explain frames field by field."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from cloudevents_kafka.cli.commands.protocol._table import frame_heading, frame_json, frame_lines
from cloudevents_kafka.cli.records import InputLine, StyledPrinter, read_lines
from cloudevents_kafka.cli.terminal import BAD_DATA, FILE, BadData, BadUsage, Interrupts, escape_lines

if TYPE_CHECKING:
    from cloudevents_kafka.protocol.explain import Explained

_LINE_RULE: Final = "a line must be a frame in hexadecimal digits, or a JSON object of a capture"

Explain = Callable[[bytes], "Explained"]


class _Frame(NamedTuple):
    """A frame's explanation, its place, and the members of a capture that describe it."""

    where: str
    capture: dict[str, Any]
    explained: Explained


@click.command()
@click.argument("file", type=FILE, default="-")
@click.option("--hex", "digits", metavar="HEX", help="Explain this frame, in hexadecimal digits.")
@click.option("--response", is_flag=True, help="The frames are responses.")
@click.option("--api", metavar="NAME", help="The API of the responses: a name or a key.")
@click.option(
    "--version", type=click.IntRange(0, 32767), metavar="N", help="The API version of the responses."
)
@click.option("--bare", is_flag=True, help="The frames have no size field.  [default: detected]")
@click.option("--v07", is_flag=True, help="The frames are of Kafka 0.7.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON line for each frame.")
@click.pass_context
def command(ctx: click.Context, /, file: str, digits: str | None, *, as_json: bool, **options: Any) -> None:
    """Explain frames field by field: position, bytes, path, type, value.

    FILE, or stdin, has one frame on each line, in hexadecimal digits, with or without its
    size field (# starts a comment). Or it is a capture, as --trace and Client(trace=…) write
    it; its responses are decoded in the version of their requests. Other responses do not
    say which API they belong to: set --response with --api and --version, or with --v07
    only --api.

    Compressed records are decompressed; their positions count from the start of the
    decompressed bytes. Of a malformed frame, all readable fields are printed, then the
    position and the reason of the error; the exit code is then 1.

    \b
    cloudevents-kafka protocol decode --hex 0000000a00120000000000070000
    cloudevents-kafka protocol decode --json capture.jsonl
    """
    if digits is not None and file != "-":
        raise click.UsageError("FILE and --hex exclude each other")
    explain = _explainer(**options)
    printer = StyledPrinter(sys.stdout, color=sys.stdout.isatty())
    frames = bad = 0
    with Interrupts() as interrupts:
        lines: Iterable[InputLine] = (
            [InputLine("--hex", digits.encode())]
            if digits is not None
            else read_lines([file], interrupts, expected="frames")
        )
        for frame in _frames(lines, explain):
            frames += 1
            if isinstance(frame, _Frame):
                _print_frame(frame, printer, as_json=as_json)
            bad += _report_problems(frame)
    if not frames:
        raise BadUsage(
            "a frame is missing: pass digits or a capture in FILE or on stdin, or digits with --hex"
        )
    ctx.exit(BAD_DATA if bad else 0)


def _print_frame(frame: _Frame, printer: StyledPrinter, *, as_json: bool) -> None:
    if as_json:
        click.echo(frame_json(frame.explained, {"where": frame.where, **frame.capture}))
        return
    place = "  ".join([frame.where, *map(_member_text, frame.capture.items())])
    printer.print_lines(frame_lines(frame.explained, place))
    printer.flush()


def _member_text(member: tuple[str, Any]) -> str:
    name, value = member
    return _time_text(value) if name == "time" else str(value)


def _report_problems(frame: _Frame | BadData) -> bool:
    """Print an error or the first problem of a frame on stderr; return whether there is one."""
    if isinstance(frame, BadData):
        frame.show()
        return True
    problems = frame.explained.problems
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        text = f"{frame.where}: {frame_heading(frame.explained)}: {problems[0]}{more}"
        click.echo(f"cloudevents-kafka: {escape_lines(text)}", err=True)
    return bool(problems)


# --- reading frames ------------------------------------------------------------------


def _frames(lines: Iterable[InputLine], explain: Explain) -> Iterator[_Frame | BadData]:
    """Yield the explanation of each frame, or the error of a line that has none."""
    from cloudevents_kafka.protocol.client import parse_line
    from cloudevents_kafka.protocol.errors import Malformed
    from cloudevents_kafka.protocol.explain import CaptureExplainer

    captured = CaptureExplainer()
    for line in lines:
        text = line.text.decode("utf-8", "replace").strip()
        try:
            if text.startswith("{"):
                frame = parse_line(text, line.where)
                members = {"broker": frame.broker, "direction": frame.direction, "time": frame.time}
                yield _Frame(line.where, members, captured.explain(frame))
            elif digits := text.partition("#")[0].strip():
                yield _Frame(line.where, {}, explain(bytes.fromhex(digits.removeprefix("0x"))))
        except Malformed as error:
            yield BadData(f"{error}; {_LINE_RULE}")
        except ValueError:
            yield BadData(f"{line.where}: {_LINE_RULE}, got {text[:60]!r}")


def _explainer(*, response: bool, api: str | None, version: int | None, bare: bool, v07: bool) -> Explain:
    """Return the function that explains frames in hexadecimal digits."""
    from cloudevents_kafka.protocol import explain

    sized = False if bare else None
    if not response:
        if api is not None or version is not None:
            raise click.UsageError("--api and --version need --response: a request has both in its header")
        return partial(explain.explain_request_07 if v07 else explain.explain_request, sized=sized)
    if api is None or (version is None) is not v07:
        raise click.UsageError("--response needs --api and --version, or with --v07 only --api")
    key = _api_key(api, _api_keys(v07=v07))
    if version is None:
        return partial(explain.explain_response_07, key=key, sized=sized)
    return partial(explain.explain_response, key=key, version=version, sized=sized)


def _api_keys(*, v07: bool) -> dict[str, int]:
    """Return the keys of the APIs whose responses can be decoded, by name."""
    from cloudevents_kafka.protocol.messages import APIS
    from cloudevents_kafka.protocol.v07 import RESPONSES, RequestType

    if v07:
        return {RequestType(key).name: key for key in RESPONSES}
    return {api.name: key for key, api in APIS.items()}


def _api_key(api: str, keys: dict[str, int]) -> int:
    by_text = {name.lower(): key for name, key in keys.items()} | {str(key): key for key in keys.values()}
    try:
        return by_text[api.lower()]
    except KeyError:
        raise BadUsage(f"--api must be one of {', '.join(keys)} or its key, got {api}") from None


def _time_text(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(seconds)
