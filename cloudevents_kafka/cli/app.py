"""The root command, which loads each subcommand on first use, and converts exceptions to exit codes."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

import click

from cloudevents_kafka.cli.terminal.errors import (
    BROKEN_PIPE,
    BadData,
    BrokerFailure,
    CommandError,
    from_click,
)
from cloudevents_kafka.cli.terminal.help import HelpContext
from cloudevents_kafka.cli.terminal.parameters import require_utf8
from cloudevents_kafka.cli.terminal.signals import Interrupted
from cloudevents_kafka.cli.terminal.streams import discard_stdout, standard_streams
from cloudevents_kafka.cli.terminal.text import near
from cloudevents_kafka.clients.consumer import ConsumeError
from cloudevents_kafka.clients.producer import DeliveryError
from cloudevents_kafka.errors import CloudEventsKafkaError

# The line of each command in the list of commands. A command is the object `command` of its module.
COMMANDS: Final = {
    "consume": "Read events and other records from topics.",
    "produce": "Send events from JSON lines, or one event from options.",
    "stats": "Count the records of topics by type, source, verdict and more.",
    "topics": "List topics: partitions, first and last offsets, sizes.",
    "groups": "List consumer groups: members, offsets, lag; reset offsets.",
    "replay": "Send dead letters back to their original topics.",
    "decode": "Explain a record: mode, attributes, broken rules.",
    "broker": "Run a local Kafka broker for trying things out.",
    "doctor": "Print what is installed, what is missing, and what would work.",
    "demo": "Run the library on a local Kafka and Spark.",
    "pipeline": "Write the events of topics to tables, with Spark.",
    "report": "Write an HTML file about a topic, tables or a run.",
    "table": "Maintain tables: optimize, vacuum, replay their quarantine.",
    "spark-jar": "Write the jar of Spark's Java function.",
    "spark-zip": "Write this package to a zip, for Spark's workers.",
    "protocol": "Inspect the Kafka protocol: frames, grammar, brokers.",
}


class LazyGroup(click.Group):
    """A group of commands; it imports the module of a command from ``package`` when the command is used."""

    context_class = HelpContext

    def __init__(self, *args: Any, package: str, summaries: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._package = package
        self._summaries = summaries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of the commands, in the order in which the help lists them."""
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # the same
        """Return a command after importing its module; return None for an unknown name."""
        if cmd_name not in self._summaries:
            return None
        module = importlib.import_module(f"{self._package}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        command.context_class = HelpContext
        require_utf8(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # the same
        """Write the list of commands to the help, without importing the modules of the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))

    def main(self, *args: Any, **options: Any) -> Any:
        """Open standard streams that are closed, run click's `main`, and return its result."""
        with standard_streams():
            return super().main(*args, **options)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Return click's context for the group of commands; raise `BadUsage` for an error in its options."""
        try:
            return super().make_context(*args, **options)
        except click.UsageError as error:
            raise from_click(error) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of a command, the command and its arguments.

        For an unknown name, the error suggests similar names.
        """
        name = args[0]
        if name not in self._summaries and not name.startswith("-") and not ctx.resilient_parsing:
            takes_group = any("--group" in option.opts for option in self.params)
            advice = near(name, self._summaries) or "; pass a group by --group NAME" * takes_group
            ctx.fail(f"no such command {name!r}{advice}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Return the result of a command; after an exception, exit with the exit code of the exception."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(130)
        except Interrupted as error:
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            discard_stdout()
            ctx.exit(BROKEN_PIPE)
        except CloudEventsKafkaError as error:
            raise _command_error(error) from error
        except click.UsageError as error:
            raise from_click(error) from None


def _command_error(error: CloudEventsKafkaError) -> CommandError:
    # Errors of the packages that run a broker are recognized by name: importing them is slow.
    of_broker = isinstance(error, ConsumeError | DeliveryError) or type(error).__module__.startswith(
        ("cloudevents_kafka.jvm", "cloudevents_kafka.testing")
    )
    return BrokerFailure(str(error)) if of_broker else BadData(str(error))


@click.group(
    cls=LazyGroup,
    package="cloudevents_kafka.cli.commands",
    summaries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="cloudevents-kafka", prog_name="cloudevents-kafka")
def app() -> None:
    """CloudEvents on Apache Kafka: send, read and explain them.

    Data goes to stdout, and all other output goes to stderr. Exit codes: 0 success, 1 bad data, 2 bad usage,
    3 broker failure, 130 Ctrl-C.

    Any librdkafka setting is accepted. Sources of settings are --profile NAME, then --config FILE, then the
    environment (CE_KAFKA_BOOTSTRAP_SERVERS, CE_KAFKA_SASL_PASSWORD_FILE …), then -X. A later source overrides
    earlier sources. Output and errors show only values of settings that are known to be harmless. In
    addition, the value of sasl.oauthbearer.token.command is a command that prints a token for SASL
    OAUTHBEARER. The command runs again before the token expires.

    \b
    Completion, in .bashrc (zsh_source and fish_source for the other shells):
    eval "$(_CLOUDEVENTS_KAFKA_COMPLETE=bash_source cloudevents-kafka)"
    """
