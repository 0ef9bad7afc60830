"""The explanation of a frame as an aligned table, or as one JSON object."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.cli.records import Style, StyledLine, bytes_to_json, encode_json
from cloudevents_kafka.cli.terminal import escape
from cloudevents_kafka.primitives.plural import pluralize

if TYPE_CHECKING:
    from cloudevents_kafka.protocol.explain import Explained, Field, Problem

_MAX_BYTES: Final = 8
_MAX_TEXT: Final = 80


def frame_heading(frame: Explained) -> str:
    """Return the name and the size of a frame: ``Metadata request, version 1, 41 bytes``."""
    version = "" if frame.version is None else f", version {frame.version}"
    return f"{frame.api} {frame.kind}{version}, {pluralize(frame.size, 'byte')}"


def frame_lines(frame: Explained, where: str) -> Iterator[StyledLine]:
    """Yield the lines of a frame: position, bytes, path, type, value and its meaning; then the problems."""
    yield [(escape(where), Style.DIM), (f"  {frame_heading(frame)}", Style.HEADING)]
    path_width = max((len(field.path) for field in frame.fields), default=0)
    type_width = max((len(field.type) for field in frame.fields), default=0)
    within = ""
    for field in frame.fields:
        if field.within != within:
            within = field.within
            text = f"{within} decompressed, positions start at 0" if within else "back in the frame"
            yield [(f"        -- {text}", Style.DIM)]
        yield _row(field, path_width, type_width)
    for problem in frame.problems:
        yield [(f"{problem.at:6}  ! {escape(str(problem))}", Style.ERROR)]
    yield []


def _row(field: Field, path_width: int, type_width: int) -> StyledLine:
    raw = field.raw[:_MAX_BYTES].hex() + ("…" if len(field.raw) > _MAX_BYTES else "")
    return [
        (f"{field.at:6}  {raw:<{2 * _MAX_BYTES + 1}}  ", Style.DIM),
        (f"{field.path:<{path_width}}  ", Style.NAME),
        (f"{field.type:<{type_width}}  ", Style.DIM),
        (_value_text(field), Style.ERROR if field.type == "unread" else Style.PLAIN),
        (f"  {field.note}" if field.note else "", Style.WARNING),
    ]


def _value_text(field: Field) -> str:
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
    return pluralize(value, "byte") if field.type in {"unread", "cut"} else str(value)


def frame_json(frame: Explained, where: dict[str, Any]) -> bytes:
    """Return a frame as a JSON line: the members of ``where``, its name, fields and problems."""
    return encode_json(
        {
            **where,
            "kind": frame.kind,
            "api": frame.api,
            "key": frame.key,
            "version": frame.version,
            "size": frame.size,
            "fields": [_field_object(field) for field in frame.fields],
            "problems": [_problem_object(problem) for problem in frame.problems],
        }
    )


def _field_object(field: Field) -> dict[str, Any]:
    members = {
        "at": field.at,
        "end": field.end,
        "hex": field.raw.hex(),
        "path": field.path,
        "type": field.type,
        "value": _json_value(field.value),
    }
    return members | _without_empty(note=field.note, within=field.within)


def _problem_object(problem: Problem) -> dict[str, Any]:
    members = {"at": problem.at, "path": problem.path, "rule": problem.rule}
    return members | _without_empty(within=problem.within)


def _without_empty(**texts: str) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return bytes_to_json(value)
    return str(value) if isinstance(value, uuid.UUID) else value


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
