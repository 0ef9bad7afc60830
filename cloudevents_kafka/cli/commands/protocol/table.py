"""A frame's explanation as an aligned table, or as one JSON object."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.cli.records.json_lines import encoded, written
from cloudevents_kafka.cli.records.text import BAD, DIM, NAME, NOTE, PLACE, Line
from cloudevents_kafka.cli.terminal.escape import visible

if TYPE_CHECKING:
    from cloudevents_kafka.protocol.explain import Explained, Field, Problem

_MOST_BYTES: Final = 8
_MOST_TEXT: Final = 80


def head(found: Explained) -> str:
    """Say what a frame is: ``Metadata request, version 1, 41 bytes``."""
    version = "" if found.version is None else f", version {found.version}"
    return f"{found.api} {found.kind}{version}, {found.size:,} bytes"


def table(found: Explained, where: str) -> Iterator[Line]:
    """Lay a frame out: position, bytes, path, type, value and what it means; then its problems."""
    yield [(visible(where), DIM), (f"  {head(found)}", PLACE)]
    paths = max((len(field.path) for field in found.fields), default=0)
    types = max((len(field.type) for field in found.fields), default=0)
    within = ""
    for field in found.fields:
        if field.within != within:
            within = field.within
            yield [
                (
                    f"        -- {within} unpacked, positions count anew"
                    if within
                    else "        -- back in the frame",
                    DIM,
                )
            ]
        yield _row(field, paths, types)
    for problem in found.problems:
        yield [(f"{problem.at:6}  ! {visible(str(problem))}", BAD)]
    yield []


def _row(field: Field, paths: int, types: int) -> Line:
    raw = field.raw[:_MOST_BYTES].hex() + ("…" if len(field.raw) > _MOST_BYTES else "")
    return [
        (f"{field.at:6}  {raw:<{2 * _MOST_BYTES + 1}}  ", DIM),
        (f"{field.path:<{paths}}  ", NAME),
        (f"{field.type:<{types}}  ", DIM),
        (shown(field), BAD if field.type == "unread" else ""),
        (f"  {field.note}" if field.note else "", NOTE),
    ]


def shown(field: Field) -> str:
    """Show a value on one line, cut where it is long."""
    value = field.value
    if isinstance(value, bytes):
        value = written(value)
        if isinstance(value, dict):
            return _cut(f"0x{field.value.hex()}")
    if isinstance(value, str):
        return f'"{_cut(visible(value))}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value} bytes" if field.type in {"unread", "cut"} else str(value)


def line(found: Explained, where: dict[str, Any]) -> bytes:
    """Write a frame as a JSON line: ``where`` it stood, what it is, its fields and its problems."""
    return encoded(
        {
            **where,
            "kind": found.kind,
            "api": found.api,
            "key": found.key,
            "version": found.version,
            "size": found.size,
            "fields": [_field(field) for field in found.fields],
            "problems": [_problem(problem) for problem in found.problems],
        }
    )


def _field(field: Field) -> dict[str, Any]:
    members = {
        "at": field.at,
        "end": field.end,
        "hex": field.raw.hex(),
        "path": field.path,
        "type": field.type,
        "value": _value(field.value),
    }
    return members | _said(note=field.note, within=field.within)


def _problem(problem: Problem) -> dict[str, Any]:
    members = {"at": problem.at, "path": problem.path, "rule": problem.rule}
    return members | _said(within=problem.within)


def _said(**texts: str) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        return written(value)
    return str(value) if isinstance(value, uuid.UUID) else value


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
