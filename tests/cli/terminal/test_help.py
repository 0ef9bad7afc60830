"""Help fits a terminal, and breaks no word."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from cloudevents_kafka.cli.app import app


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command, and of each group of commands."""
    yield path
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield (*path, name)


@pytest.mark.parametrize("width", [80, 120])
def test_help_fits(width, monkeypatch):
    """At a usual and at a wide terminal no line is too long, and no line ends within a word."""
    monkeypatch.setenv("COLUMNS", str(width))
    for path in commands(app):
        help = CliRunner().invoke(app, [*path, "--help"]).stdout.splitlines()
        assert help, path
        assert [line for line in help if len(line) > width or re.search(r"\w[-\u2011]$", line)] == [], path
        assert "\u2011" not in "".join(help), path
