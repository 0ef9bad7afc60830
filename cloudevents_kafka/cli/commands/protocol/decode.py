"""``protocol decode``: frames explained field by field."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from cloudevents_kafka.cli.commands.protocol import table
from cloudevents_kafka.cli.records.inputs import Text, read_texts
from cloudevents_kafka.cli.records.text import Painter
from cloudevents_kafka.cli.terminal.errors import BAD_DATA, BadData, BadUsage
from cloudevents_kafka.cli.terminal.escape import visible_lines
from cloudevents_kafka.cli.terminal.parameters import FILE
from cloudevents_kafka.cli.terminal.signals import Interrupts

if TYPE_CHECKING:
    from cloudevents_kafka.protocol.explain import Explained

_HELP: Final = """Explain frames field by field: position, bytes, path, type, value.

FILE, or stdin, has a frame on a line, in hexadecimal digits, with or without its size in
front (# begins a comment); or it is a capture, as --trace and Client(trace=…) write it,
whose answers are read in the version of their requests. Other answers do not tell what
they answer: give --response with --api and --version, or with --v07 only --api.

Compressed records are unpacked; of them, positions count in what they unpack to. Of a
broken frame all that can be read is shown, then where it breaks, and why; the exit code
is 1 then.

\b
cloudevents-kafka protocol decode --hex 0000000a00120000000000070000
cloudevents-kafka protocol decode --json capture.jsonl
"""
_NO_FRAME: Final = "a frame is two hexadecimal digits a byte, a line of a capture is a JSON object"

Explain = Callable[[bytes], "Explained"]


class _Given(NamedTuple):
    """A frame, and what is told of where it comes from."""

    where: str
    about: dict[str, Any]
    found: Explained


@click.command(help=_HELP, short_help="Explain frames field by field.")
@click.argument("file", type=FILE, default="-")
@click.option("--hex", "digits", metavar="HEX", help="This frame, in hexadecimal digits.")
@click.option("--response", is_flag=True, help="The frames are answers.")
@click.option("--api", metavar="NAME", help="What they answer: an API's name or key.")
@click.option("--version", type=click.IntRange(0, 32767), metavar="N", help="The version of the request.")
@click.option("--bare", is_flag=True, help="The frames have no size in front; found out if not said.")
@click.option("--v07", is_flag=True, help="The frames are of Kafka 0.7.")
@click.option("--json", "as_json", is_flag=True, help="A JSON line for each frame.")
@click.pass_context
def command(ctx: click.Context, /, file: str, digits: str | None, *, as_json: bool, **options: Any) -> None:
    """Explain frames."""
    if digits is not None and file != "-":
        raise click.UsageError("give FILE or --hex, not both")
    explain = _explainer(**options)
    painter = Painter(sys.stdout, colours=sys.stdout.isatty())
    bad = told = 0
    with Interrupts() as interrupts:
        given = (
            [Text("--hex", digits.encode())]
            if digits is not None
            else read_texts([file], interrupts, awaited="frames")
        )
        for frame in _frames(given, explain):
            told += 1
            if isinstance(frame, _Given):
                _tell(frame, painter, as_json=as_json)
            bad += _complain(frame)
    if not told:
        raise BadUsage("no frame: give hexadecimal digits or a capture, in FILE, on stdin or by --hex")
    ctx.exit(BAD_DATA if bad else 0)


def _tell(frame: _Given, painter: Painter, *, as_json: bool) -> None:
    if as_json:
        click.echo(table.line(frame.found, {"where": frame.where, **frame.about}))
        return
    about = "  ".join([frame.where, *map(_shown, frame.about.items())])
    painter.paint(table.table(frame.found, about))
    painter.flush()


def _shown(member: tuple[str, Any]) -> str:
    name, value = member
    return _moment(value) if name == "time" else str(value)


def _complain(frame: _Given | BadData) -> bool:
    """Say on stderr what is wrong with a frame, if anything is; tell whether it is."""
    if isinstance(frame, BadData):
        frame.show()
        return True
    problems = frame.found.problems
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        text = f"{frame.where}: {table.head(frame.found)}: {problems[0]}{more}"
        click.echo(f"cloudevents-kafka: {visible_lines(text)}", err=True)
    return bool(problems)


# --- what to read, and how -----------------------------------------------------------


def _frames(texts: Iterator[Text] | list[Text], explain: Explain) -> Iterator[_Given | BadData]:
    """Explain the lines, each of a capture or in digits; an error for each that is neither."""
    from cloudevents_kafka.protocol.client import capture
    from cloudevents_kafka.protocol.errors import Malformed
    from cloudevents_kafka.protocol.explain import CaptureExplainer

    pairing = CaptureExplainer()
    for text in texts:
        line = text.text.decode("utf-8", "replace").strip()
        try:
            if line.startswith("{"):
                frame = capture.parse(line, text.where)
                about = {"broker": frame.broker, "direction": frame.direction, "time": frame.time}
                yield _Given(text.where, about, pairing.explain(frame))
            elif digits := line.partition("#")[0].strip():
                yield _Given(text.where, {}, explain(bytes.fromhex(digits.removeprefix("0x"))))
        except Malformed as error:
            yield BadData(f"{error}; {_NO_FRAME}")
        except ValueError:
            yield BadData(f"{text.where} is no frame: {line[:60]!r}; {_NO_FRAME}")


def _explainer(*, response: bool, api: str | None, version: int | None, bare: bool, v07: bool) -> Explain:
    """Choose what explains frames in digits."""
    from cloudevents_kafka.protocol import explain

    sized = False if bare else None
    if not response:
        if api is not None or version is not None:
            raise click.UsageError("a request says what it is: --api and --version are for --response")
        return partial(explain.explain_request_07 if v07 else explain.explain_request, sized=sized)
    if api is None or (version is None) is not v07:
        raise click.UsageError(
            "an answer does not say what it answers: --response needs --api and, but with --v07, --version"
        )
    key = _key(api, _names(v07=v07))
    if version is None:
        return partial(explain.explain_response_07, key=key, sized=sized)
    return partial(explain.explain_response, key=key, version=version, sized=sized)


def _names(*, v07: bool) -> dict[str, int]:
    """Return the keys of those APIs whose answers can be read, by name."""
    from cloudevents_kafka.protocol.messages import APIS
    from cloudevents_kafka.protocol.v07 import RESPONSES, RequestType

    if v07:
        return {RequestType(key).name: key for key in RESPONSES}
    return {api.name: key for key, api in APIS.items()}


def _key(api: str, names: dict[str, int]) -> int:
    by_name = {name.lower(): key for name, key in names.items()} | {str(key): key for key in names.values()}
    try:
        return by_name[api.lower()]
    except KeyError:
        raise BadUsage(f"--api {api}: there are {', '.join(names)}, or their keys") from None


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(seconds)
