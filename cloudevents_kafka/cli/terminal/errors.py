"""Exit codes, and the exceptions that end a command with one of these exit codes.

* 0: all records were read or delivered.
* 1, bad data: a record or an input line is invalid.
* 2, bad usage: the command line, a setting or a topic name is wrong; or a package, Java, a jar or a free port
  is missing; or stdout cannot be written.
* 3: the broker cannot be reached, refuses a request, or did not accept a record.
* 4: a threshold of the pipeline has ended its run.
* 130: Ctrl-C; 143: the signal SIGTERM; 141: the reader of stdout has closed the pipe, as the program ``head``
  does.
"""

from __future__ import annotations

import re
from typing import Final

import click

from cloudevents_kafka.cli.terminal.text import near, print_message
from cloudevents_kafka.primitives.redaction import mask_assignments, mask_credentials

BAD_DATA: Final = 1
BAD_USAGE: Final = 2
BROKER_FAILURE: Final = 3
THRESHOLD: Final = 4
BROKEN_PIPE: Final = 141
_PLACES: Final = {
    "--topic": "a topic by -t TOPIC",
    "--out": "a folder by --out DIR",
    "--group": "a group by --group NAME",
}
"""The options to use instead of values that users pass as arguments by mistake."""
_BROKER: Final = {"-b": "a broker by -b HOST:PORT"}
_TEMPLATE: Final = {"--format": "a template by --format TEMPLATE (-f is --follow)"}
_EXTRA_ARGUMENTS: Final = re.compile(r"(unexpected extra arguments?) \((.*)\)", re.DOTALL)


class CommandError(click.ClickException):
    """An error that ends the command with a message on stderr and an exit code."""

    exit_code = BAD_DATA

    def show(self, file: object = None) -> None:  # noqa: ARG002  # click's signature
        """Print the message of the error on stderr, with control characters escaped."""
        print_message(self.format_message())


class _RedactedError(CommandError):
    """An error whose message may contain URLs with credentials, or settings such as ``sasl.password=…``."""

    def format_message(self) -> str:
        """Return the message of the error, in which credentials and secret settings are masked."""
        return mask_credentials(mask_assignments(self.message))


class BadData(CommandError):
    """A record or an input line is invalid."""


class BadUsage(_RedactedError):
    """An option, a setting, a file or a topic name is wrong."""

    exit_code = BAD_USAGE


class BrokerFailure(_RedactedError):
    """The broker cannot be reached, or refuses a request.

    ``is_of_topic`` is true if the broker refuses only a topic.
    """

    exit_code = BROKER_FAILURE
    is_of_topic = False


class ThresholdEnd(CommandError):
    """The run of the pipeline has ended because it has reached a threshold."""

    exit_code = THRESHOLD


def from_click(error: click.UsageError) -> click.ClickException:
    """Return an error of click as a `BadUsage`, without the words of the command line that click quotes.

    A quoted word may be a secret: in ``-X sasl.password hunter2``, the last word is an unexpected argument.
    """
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error
    text = error.message if isinstance(error, click.NoSuchOption) else error.format_message()
    extra = _EXTRA_ARGUMENTS.search(text)
    text = _EXTRA_ARGUMENTS.sub(r"\1 (not shown: it may be a secret)", text)
    text = text.removesuffix(".")
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        names = [
            name for option in error.ctx.command.params for name in (*option.opts, *option.secondary_opts)
        ]
        arguments = [one for one in error.ctx.command.params if isinstance(one, click.Argument)]
        takes_topic = any("TOPIC" in (one.metavar or one.human_readable_name).upper() for one in arguments)
        is_topic = takes_topic and error.option_name in ("-t", "--topic")
        text += "; write TOPIC without an option" if is_topic else near(error.option_name, names)
    if extra is not None and error.ctx is not None:
        known = {name for option in error.ctx.command.params for name in option.opts}
        options = _TEMPLATE if {"{", "%"} & set(extra[2]) else _PLACES if _PLACES.keys() & known else _BROKER
        places = [place for name, place in options.items() if name in known]
        text += f"; pass {', or '.join(places)}" if places else ""
    if text[1:2].islower():
        text = text[0].lower() + text[1:]
    if error.ctx is not None:
        text += f"{' See' if text.endswith('?') else '; see'} {error.ctx.command_path} --help"
    return BadUsage(text)
