"""The command line's root: commands are loaded when used, errors become exit codes."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import click

from cloudevents_kafka.cli.terminal.errors import (
    BROKEN_PIPE,
    BadData,
    BrokerTrouble,
    Failure,
    without_words,
)
from cloudevents_kafka.cli.terminal.parameters import hold_texts
from cloudevents_kafka.cli.terminal.signals import Interrupted
from cloudevents_kafka.cli.terminal.streams import let_go_of_stdout, standard_streams
from cloudevents_kafka.errors import CloudEventsKafkaError

# Command: the module whose `command` it is, and the line about it in the list.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "consume": (
        "cloudevents_kafka.cli.commands.consume",
        "Read events, and whatever else is there, from a topic.",
    ),
    "produce": ("cloudevents_kafka.cli.commands.produce", "Send events: JSON lines, or one from options."),
    "decode": ("cloudevents_kafka.cli.commands.decode", "Say what a record is, and why."),
    "broker": ("cloudevents_kafka.cli.commands.broker", "Run a local Kafka for trying things out."),
    "demo": ("cloudevents_kafka.cli.commands.demo", "Show the library at work, on a local Kafka."),
    "pipeline": ("cloudevents_kafka.cli.commands.pipeline", "Land a topic of events in files, with Spark."),
    "conformance": (
        "cloudevents_kafka.cli.commands.conformance",
        "Show what CloudEvents asks, and that it is met.",
    ),
    "protocol": (
        "cloudevents_kafka.cli.commands.protocol",
        "Look into Kafka's protocol: frames, grammar, brokers.",
    ),
}


class Commands(click.Group):
    """Knows its commands by name only, until one of them is used; ``table`` has them as `COMMANDS` does."""

    table: ClassVar[Mapping[str, tuple[str, str]]] = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click gives it
        """Name the commands, in the order they are shown."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # the same
        """Load a command; None for one that is not there."""
        if cmd_name not in self.table:
            return None
        module = self.table[cmd_name][0]
        try:
            found: click.Command = importlib.import_module(module).command
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            return None
        hold_texts(found)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # the same
        """List the commands without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.table.items()])

    def main(self, *args: Any, **more: Any) -> Any:
        """Run the command line from start to end, where stdout and its like are (see `streams`)."""
        with standard_streams():
            return super().main(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; whatever ends it gets its exit code (see `failures`)."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(130)
        except Interrupted as error:
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            let_go_of_stdout()
            ctx.exit(BROKEN_PIPE)
        except CloudEventsKafkaError as error:
            raise _failure(error) from error
        except click.UsageError as error:
            raise without_words(error) from None


def _failure(error: CloudEventsKafkaError) -> Failure:
    from cloudevents_kafka.consumer import ConsumeError
    from cloudevents_kafka.producer import DeliveryError

    # What runs a local broker is told by its room: importing its errors would load all of it.
    trouble = isinstance(error, ConsumeError | DeliveryError) or type(error).__module__.startswith(
        ("cloudevents_kafka.jvm", "cloudevents_kafka.testing")
    )
    return BrokerTrouble(str(error)) if trouble else BadData(str(error))


_HELP: Final = """CloudEvents on Apache Kafka: send, read and explain them.

Data goes to stdout, all else to stderr. Exit codes: 0 all read or delivered,
1 bad data, 2 bad usage, 3 broker trouble, 130 Ctrl-C.

Settings: any of librdkafka's, from --config FILE, then the environment
(CE_KAFKA_BOOTSTRAP_SERVERS, CE_KAFKA_SASL_PASSWORD_FILE …), then -X. Shown, by
--show-config or in an error, are only values known to be harmless; others are masked.

\b
Completion, in .bashrc (zsh_source, fish_source for the others):
eval "$(_CLOUDEVENTS_KAFKA_COMPLETE=bash_source cloudevents-kafka)"
"""


@click.group(
    cls=Commands,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="cloudevents-kafka", prog_name="cloudevents-kafka")
def app() -> None:
    """Run one of the commands."""
