"""The reference of the command line, from the help of its commands."""

from __future__ import annotations

import html
import inspect
import re
from collections.abc import Iterator

import click

from cloudevents_kafka.cli.app import app

_PROGRAM = "cloudevents-kafka"


def to_markdown() -> str:
    """Return a section for each command, with its usage, its help and a list of its options."""
    return "\n\n".join(
        part
        for context in _commands(click.Context(app, info_name=_PROGRAM, **app.context_settings))
        for part in _section(context)
    )


def _commands(context: click.Context) -> Iterator[click.Context]:
    """Yield the command of a context, and all below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None and not command.hidden:
                yield from _commands(click.Context(command, info_name=name, parent=context))


def _section(context: click.Context) -> Iterator[str]:
    level = min(4, 2 + context.command_path.count(" "))
    name = context.command_path.removeprefix(_PROGRAM).strip() or _PROGRAM
    yield f"{'#' * level} `{name}` {{: #{context.command_path.replace(' ', '-')} }}"
    usage = " ".join(context.command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```"
    yield from map(_paragraph, re.split(r"\n{2,}", inspect.cleandoc(context.command.help or "")))
    yield from (_option(record) for record in _records(context))


def _paragraph(text: str) -> str:
    """Return a paragraph of a help; one that click must not wrap is a block of code."""
    if text.startswith("\b"):
        return f"```text\n{text.removeprefix(chr(8)).strip(chr(10))}\n```"
    return _escape(" ".join(text.split()))


def _records(context: click.Context) -> list[tuple[str, str]]:
    """Return the options as `--help` shows them, each with its text."""
    shown = [
        parameter
        for parameter in context.command.get_params(context)
        if parameter.name != "help" or context.parent is None
    ]
    return [record for parameter in shown if (record := parameter.get_help_record(context)) and record[1]]


def _option(record: tuple[str, str]) -> str:
    """Return an option as an entry of a list of definitions."""
    return f"`{record[0]}`\n:   {_escape(' '.join(record[1].split()))}"


def _escape(text: str) -> str:
    """Return a text in which Markdown finds no marks."""
    return re.sub(r"([\\`*_{}\[\]#])", r"\\\1", html.escape(text, quote=False))
