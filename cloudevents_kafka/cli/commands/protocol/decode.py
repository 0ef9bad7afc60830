"""``protocol decode``: explain frames field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import click

from cloudevents_kafka.cli.records.inputs import InputLine, read_lines
from cloudevents_kafka.cli.records.json_lines import bytes_to_json, encode_json
from cloudevents_kafka.cli.terminal.errors import BAD_DATA, BadData, BadUsage
from cloudevents_kafka.cli.terminal.parameters import FILE
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.text import escape, escape_lines, print_lines, styled
from cloudevents_kafka.primitives.epoch import EPOCH, SECOND
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.protocol import Malformed, explain
from cloudevents_kafka.protocol.client import parse_line
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.v07 import RESPONSES, RequestType

_MAX_BYTES: Final = 8
_MAX_TEXT: Final = 80
_LINE_RULE: Final = "a line must be a frame in hexadecimal digits, or a JSON object of a capture"

Explain = Callable[[bytes], explain.ExplainedFrame]


class _Frame(NamedTuple):
    """A frame's explanation, its place, and the members of a capture that describe it."""

    where: str
    capture: dict[str, Any]
    explained: explain.ExplainedFrame


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
    explain_frame = _explainer(**options)
    frames = bad = 0
    with Interrupts() as interrupts:
        lines: Iterable[InputLine] = (
            [InputLine("--hex", digits.encode())]
            if digits is not None
            else read_lines([file], interrupts, expected="frames")
        )
        for frame in _frames(lines, explain_frame):
            frames += 1
            if isinstance(frame, _Frame):
                _print_frame(frame, as_json=as_json)
            bad += _report_problems(frame)
    if not frames:
        raise BadUsage(
            "a frame is missing: pass digits or a capture in FILE or on stdin, or digits with --hex"
        )
    ctx.exit(BAD_DATA if bad else 0)


def _print_frame(frame: _Frame, *, as_json: bool) -> None:
    if as_json:
        click.echo(_frame_json(frame.explained, {"where": frame.where, **frame.capture}))
        return
    texts = (_time_text(value) if name == "time" else value for name, value in frame.capture.items())
    print_lines(_frame_lines(frame.explained, "  ".join([frame.where, *texts])))


def _report_problems(frame: _Frame | BadData) -> bool:
    """Print an error or the first problem of a frame on stderr; return whether there is one."""
    if isinstance(frame, BadData):
        frame.show()
        return True
    problems = frame.explained.problems
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        text = f"{frame.where}: {_frame_heading(frame.explained)}: {problems[0]}{more}"
        click.echo(f"cloudevents-kafka: {escape_lines(text)}", err=True)
    return bool(problems)


# --- reading frames ------------------------------------------------------------------


def _frames(lines: Iterable[InputLine], explain_frame: Explain) -> Iterator[_Frame | BadData]:
    """Yield the explanation of each frame, or the error of a line that has none."""
    captured = explain.CaptureExplainer()
    for line in lines:
        text = line.text.decode("utf-8", "replace").strip()
        try:
            if text.startswith("{"):
                frame = parse_line(text, line.where)
                members = {"broker": frame.broker, "direction": frame.direction, "time": frame.time}
                yield _Frame(line.where, members, captured.explain(frame))
            elif digits := text.partition("#")[0].strip():
                yield _Frame(line.where, {}, explain_frame(bytes.fromhex(digits.removeprefix("0x"))))
        except Malformed as error:
            yield BadData(f"{error}; {_LINE_RULE}")
        except ValueError:
            yield BadData(f"{line.where}: {_LINE_RULE}, got {text[:60]!r}")


def _explainer(*, response: bool, api: str | None, version: int | None, bare: bool, v07: bool) -> Explain:
    """Return the function that explains frames in hexadecimal digits."""
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
    """Return the key of an API whose responses can be decoded, by its name or key."""
    keys = {RequestType(key).name: key for key in RESPONSES} if v07 else {a.name: k for k, a in APIS.items()}
    for name, key in keys.items():
        if text.lower() in (name.lower(), str(key)):
            return key
    raise BadUsage(f"--api must be one of {', '.join(keys)} or its key, got {text}")


def _time_text(seconds: float) -> str:
    try:
        return (EPOCH + seconds * SECOND).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError):
        return str(seconds)


# --- printing frames ---


def _frame_heading(frame: explain.ExplainedFrame) -> str:
    """Return the name and the size of a frame: ``Metadata request, version 1, 41 bytes``."""
    version = "" if frame.version is None else f", version {frame.version}"
    return f"{frame.api} {frame.kind}{version}, {pluralize(frame.size, 'byte')}"


def _frame_lines(frame: explain.ExplainedFrame, where: str) -> Iterator[str]:
    """Yield the lines of a frame: position, bytes, path, type, value and its meaning; then the problems."""
    yield styled(escape(where), "dim") + styled(f"  {_frame_heading(frame)}", "heading")
    path_width = max((len(field.path) for field in frame.fields), default=0)
    type_width = max((len(field.type) for field in frame.fields), default=0)
    within = ""
    for field in frame.fields:
        if field.within != within:
            within = field.within
            text = f"{within} decompressed, positions start at 0" if within else "back in the frame"
            yield styled(f"        -- {text}", "dim")
        yield _row(field, path_width, type_width)
    for problem in frame.problems:
        yield styled(f"{problem.at:6}  ! {escape(str(problem))}", "error")
    yield ""


def _row(field: explain.Field, path_width: int, type_width: int) -> str:
    raw = field.raw[:_MAX_BYTES].hex() + ("…" if len(field.raw) > _MAX_BYTES else "")
    value = _value_text(field)
    return (
        styled(f"{field.at:6}  {raw:<{2 * _MAX_BYTES + 1}}  ", "dim")
        + styled(f"{field.path:<{path_width}}  ", "name")
        + styled(f"{field.type:<{type_width}}  ", "dim")
        + (styled(value, "error") if field.type == "unread" else value)
        + (styled(f"  {field.note}", "warning") if field.note else "")
    )


def _value_text(field: explain.Field) -> str:
    """Return a value on one line, cut to `_MAX_TEXT` characters."""
    value = field.value
    if isinstance(value, bytes):
        value = bytes_to_json(value)
        if isinstance(value, dict):
            return _cut(f"0x{field.value.hex()}")
    if isinstance(value, str):
        return f'"{_cut(escape(value))}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return pluralize(value, "byte") if field.type in {"unread", "partial"} else str(value)


def _frame_json(frame: explain.ExplainedFrame, where: dict[str, Any]) -> bytes:
    """Return a frame as a JSON line: the members of ``where``, its name, fields and problems."""
    members = where | {name: getattr(frame, name) for name in ("kind", "api", "key", "version", "size")}
    members["fields"] = [_field_object(field) for field in frame.fields]
    members["problems"] = [_without_empty(problem._asdict(), "within") for problem in frame.problems]
    return encode_json(members)


def _field_object(field: explain.Field) -> dict[str, Any]:
    members = {
        "at": field.at,
        "end": field.end,
        "hex": field.raw.hex(),
        "path": field.path,
        "type": field.type,
        "value": bytes_to_json(field.value) if isinstance(field.value, bytes) else field.value,
        "note": field.note,
        "within": field.within,
    }
    return _without_empty(members, "note", "within")


def _without_empty(members: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value or name not in names}


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
