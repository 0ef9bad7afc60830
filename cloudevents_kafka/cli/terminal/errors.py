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

import re
from typing import Final

import click

BAD_DATA: Final = 1
BAD_USAGE: Final = 2
BROKER_TROUBLE: Final = 3
BROKEN_PIPE: Final = 141
_EXTRA: Final = re.compile(r"(unexpected extra arguments?) \(.*\)", re.DOTALL)


class Failure(click.ClickException):
    """Ends the command with a message on stderr and an exit code."""

    exit_code = BAD_DATA

    def show(self, file: object = None) -> None:  # noqa: ARG002  # click's signature
        """Print the message on stderr, with whatever a terminal would obey spelled out."""
        from cloudevents_kafka.cli.terminal.escape import visible_lines

        click.echo(f"cloudevents-kafka: {visible_lines(self.shown)}", err=True)

    @property
    def shown(self) -> str:
        """The message as it may be shown."""
        return self.message


class _Masked(Failure):
    """Masks credentials of URLs, and settings in a wrong place, such as ``sasl.password=…`` for a file."""

    @property
    def shown(self) -> str:
        """The message as it may be shown."""
        from cloudevents_kafka.redaction import mask_assignments, mask_credentials

        return mask_credentials(mask_assignments(self.message))


class BadData(Failure):
    """A record or a line is not what it must be."""


def without_words(error: click.UsageError) -> click.UsageError:
    """Return click's error of a command line without the words that it repeats: one may be a secret.

    ``-X sasl.password hunter2`` makes the last word one that no command expects.
    """
    from cloudevents_kafka.redaction import mask_assignments

    message = mask_assignments(_EXTRA.sub(r"\1 (not shown: it may be a secret)", error.message))
    vars(error)["message"] = message  # click prints it, with the usage and what else it knows
    return error


class BadUsage(_Masked):
    """What was asked for makes no sense, or is not there."""

    exit_code = BAD_USAGE


class BrokerTrouble(_Masked):
    """The broker cannot be reached, or refuses."""

    exit_code = BROKER_TROUBLE
