"""How a command ends when it does not end well: one exception for each exit code.

======  ======================================================================
code    meaning
======  ======================================================================
0       all was read, all was delivered
1       bad data: a record or a line that is not what it must be
2       bad usage: of the command line, the settings, a topic that is not there, or a
        stdout that cannot be written
3       the broker cannot be reached, refuses, or did not take what was sent
130     Ctrl-C (143: SIGTERM)
141     whoever read the output has gone, as ``head`` does
======  ======================================================================
"""

from __future__ import annotations

from typing import Final

import click

BAD_DATA: Final = 1
BAD_USAGE: Final = 2
BROKER_TROUBLE: Final = 3
BROKEN_PIPE: Final = 141


class Failure(click.ClickException):
    """Ends the command with a message on stderr and an exit code."""

    exit_code = BAD_DATA

    def show(self, file: object = None) -> None:  # noqa: ARG002  # click's signature
        """Print the message on stderr, with whatever a terminal would obey spelled out."""
        from cloudevents_kafka.cli.visible import visible_lines

        click.echo(f"cloudevents-kafka: {visible_lines(self.message)}", err=True)


class BadData(Failure):
    """A record or a line is not what it must be."""


class BadUsage(Failure):
    """What was asked for makes no sense, or is not there."""

    exit_code = BAD_USAGE


class BrokerTrouble(Failure):
    """The broker cannot be reached, or refuses."""

    exit_code = BROKER_TROUBLE
