"""Print explained frames as a tree that fits a terminal, as a table with full paths, or as JSON lines."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import click

from cloudevents_kafka.cli.records.json_lines import bytes_to_json, encode_json
from cloudevents_kafka.cli.terminal.text import columns, fit, print_lines, styled
from cloudevents_kafka.primitives.epoch import EPOCH, SECOND
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.visible import escape
from cloudevents_kafka.protocol import explain

Form = Literal["json", "table", "tree"]

_MAX_BYTES: Final = 8
_MAX_TEXT: Final = 80
_AT: Final = 6
"""The width of the column with the positions of fields."""
_LEAST: Final = 40
"""The smallest width of a tree, in columns."""
_SHOWN: Final = 500
"""The number of fields that are printed at the start of a frame with problems, and also at its end."""
_SHOWN_PROBLEMS: Final = 20
_SHOWN_BYTES: Final = 256
"""The largest number of bytes of a field that are printed for a frame with problems."""


class Frame(NamedTuple):
    """An explained frame, its position in the input, and the other members of its line in a capture file."""

    where: str
    capture: dict[str, Any]
    explained: explain.ExplainedFrame


@dataclass
class Allowance:
    """The number of characters that may still be printed for bad frames, and the number of skipped frames."""

    left: int = 1 << 20
    refused: int = 0


def print_frame(frame: Frame, form: Form, allowance: Allowance) -> None:
    """Print a frame on stdout.

    A frame with problems is shortened, or is skipped if ``allowance`` is used up.
    """
    if not frame.explained.problems:
        _print(_lines(frame, form), form)
    elif allowance.left > 0:
        lines = list(_lines(frame._replace(explained=_abridged(frame.explained)), form))
        allowance.left -= sum(map(len, lines))
        _print(lines, form)
    else:
        allowance.refused += 1


def _print(lines: Iterable[str], form: Form) -> None:
    if form == "json":
        click.echo("\n".join(lines).encode())
    else:
        print_lines(lines)


def _lines(frame: Frame, form: Form) -> Iterator[str]:
    if form == "json":
        yield _frame_json(frame.explained, {"where": frame.where, **frame.capture}).decode()
        return
    texts = (_time_text(value) if name == "time" else value for name, value in frame.capture.items())
    where = "  ".join([frame.where, *texts])
    if form == "table":
        yield from _table(frame.explained, where)
    else:
        yield from _tree(frame.explained, where, max(_LEAST, shutil.get_terminal_size().columns))


def _abridged(frame: explain.ExplainedFrame) -> explain.ExplainedFrame:
    """Return a shortened frame: its first and last fields, first problems, and each field's first bytes."""
    fields, problems = frame.fields, frame.problems
    if len(omitted := fields[_SHOWN:-_SHOWN]) > 1:
        first, last, count = omitted[0], omitted[-1], len(omitted)
        gap = explain.Field(first.at, last.end, "…", "omitted", count, b"", within=first.within)
        fields = [*fields[:_SHOWN], gap, *fields[-_SHOWN:]]
    if (more := len(problems) - _SHOWN_PROBLEMS) > 1:
        rest = explain.Problem(problems[_SHOWN_PROBLEMS].at, "", f"{more:,} more problems")
        problems = [*problems[:_SHOWN_PROBLEMS], rest]
    return replace(frame, fields=[_shortened(field) for field in fields], problems=problems)


def _shortened(field: explain.Field) -> explain.Field:
    value = field.value[:_SHOWN_BYTES] if isinstance(field.value, bytes | str) else field.value
    return field._replace(raw=field.raw[:_SHOWN_BYTES], value=value)


def heading(frame: explain.ExplainedFrame) -> str:
    """Return a text with the name and the size of a frame: ``Metadata request, version 1, 41 bytes``."""
    version = "" if frame.version is None else f", version {frame.version}"
    return f"{frame.api} {frame.kind}{version}, {pluralize(frame.size, 'byte')}"


def _time_text(seconds: float) -> str:
    try:
        return (EPOCH + seconds * SECOND).isoformat(timespec="microseconds")
    except (OverflowError, ValueError):
        return str(seconds)


# --- a table ---


def _table(frame: explain.ExplainedFrame, where: str) -> Iterator[str]:
    """Yield a line for each field of a frame (position, bytes, path, type, value, note) and each problem."""
    yield styled(escape(where), "dim") + styled(f"  {heading(frame)}", "heading")
    path_width = max((len(field.path) for field in frame.fields), default=0)
    type_width = max((len(field.type) for field in frame.fields), default=0)
    within = ""
    for field in frame.fields:
        if field.within != within:
            within = field.within
            text = f"decompressed bytes of {within}, positions start at 0" if within else "back in the frame"
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
        + styled(f"{field.type:<{type_width}}  ", "type")
        + (styled(value, "error") if field.type == "unread" else value)
        + (styled(f"  {field.note}", "warning") if field.note else "")
    )


# --- a tree ---


class _Node(NamedTuple):
    """A line of the printed tree: a field, or a heading for a structure, an element or decompressed bytes."""

    depth: int
    name: str
    field: explain.Field | None


class _Widths(NamedTuple):
    """The widths of three columns of the printed tree: indented names, types, and values."""

    name: int
    type: int
    value: int

    @classmethod
    def fitted(cls, nodes: Sequence[_Node], width: int) -> _Widths:
        """Return widths with which the three columns of the tree together fit into ``width``."""
        free = width - _AT - 6
        longest = max((2 * node.depth + columns(node.name) for node in nodes), default=0)
        types = max((len(node.field.type) for node in nodes if node.field), default=0)
        name = min(longest, free * 9 // 20)
        type = min(types, (free - name) // 3)
        return cls(name, type, free - name - type)


def _tree(frame: explain.ExplainedFrame, where: str, width: int) -> Iterator[str]:
    """Yield the lines of a frame: position, name, type and value, with at most ``width`` columns."""
    title = heading(frame)
    place = fit(escape(where), max(0, width - len(title) - 2))
    yield styled(place, "dim") + styled(fit(f"{'  ' * bool(place)}{title}", width), "heading")
    nodes = list(_nodes(frame))
    widths = _Widths.fitted(nodes, width)
    for node in nodes:
        yield _line(node, widths, width)
    for problem in frame.problems:
        lines = textwrap.wrap(escape(str(problem)), width - _AT - 4) or [""]
        yield styled(f"{problem.at:{_AT}}  ! {lines[0]}", "error")
        yield from (styled(f"{'':{_AT}}    {line}", "error") for line in lines[1:])
    yield ""


def _nodes(frame: explain.ExplainedFrame) -> Iterator[_Node]:
    """Yield the fields of a frame; before the first field of each structure, yield a heading."""
    open_: list[str] = []
    within = ""
    for field in frame.fields:
        if field.within != within:
            within = field.within
            yield _Node(
                0, "decompressed bytes, positions start at 0" if within else "back in the frame", None
            )
        *parents, name = field.path.split(".")
        same = 0
        while same < min(len(parents), len(open_)) and parents[same] == open_[same]:
            same += 1
        yield from (_Node(depth, parents[depth], None) for depth in range(same, len(parents)))
        open_ = parents if field.type != "unread" else []
        yield _Node(len(parents), name, field)


def _line(node: _Node, widths: _Widths, width: int) -> str:
    indent = "  " * min(node.depth, max(0, (widths.name - _AT) // 2))
    field = node.field
    if field is None:
        return styled(fit(f"{'':{_AT}}  {indent}{escape(node.name)}", width), "heading")
    name = fit(f"{indent}{escape(node.name)}", widths.name)
    name += " " * (widths.name - columns(name))
    value = fit(_value_text(field), widths.value)
    note = fit(field.note, max(0, widths.value - columns(value) - 2)) if field.note else ""
    return (
        styled(f"{field.at:{_AT}}  ", "dim")
        + styled(f"{name}  ", "name")
        + styled(f"{fit(field.type, widths.type):<{widths.type}}  ", "type")
        + styled(value, "error" if field.type == "unread" else "value")
        + (styled(f"  {note}", "warning") if note else "")
    )


# --- values ---

_UNITS: Final = {"unread": "byte", "partial": "byte", "omitted": "field"}


def _value_text(field: explain.Field) -> str:
    """Return the text of a value on one line, cut to `_MAX_TEXT` characters."""
    value = field.value
    if isinstance(value, bytes):
        value = bytes_to_json(value)
        if isinstance(value, dict):
            return _cut(f"0x{field.value.hex()}")
    if isinstance(value, str):
        return f'"{_cut(escape(value))}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return pluralize(value, _UNITS[field.type]) if field.type in _UNITS else str(value)


def _frame_json(frame: explain.ExplainedFrame, where: dict[str, Any]) -> bytes:
    """Return a JSON line with the members of ``where`` and a frame's name, fields and problems."""
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
