"""``protocol``: what stands on the wire, one module a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import click

from cloudevents_kafka.cli.app import Commands

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "decode": ("cloudevents_kafka.cli.commands.protocol.decode", "Explain frames field by field."),
    "grammar": ("cloudevents_kafka.cli.commands.protocol.grammar", "Print the grammar of a message."),
    "sizes": (
        "cloudevents_kafka.cli.commands.protocol.sizes",
        "What variable-length integers would save (KIP-625).",
    ),
    "api-versions": (
        "cloudevents_kafka.cli.commands.protocol.api_versions",
        "What a broker takes, and what fits.",
    ),
    "fetch": (
        "cloudevents_kafka.cli.commands.protocol.fetch",
        "Read records with the client in pure Python.",
    ),
    "produce": (
        "cloudevents_kafka.cli.commands.protocol.produce",
        "Send a record with the client in pure Python.",
    ),
}


class ProtocolCommands(Commands):
    """The commands of ``protocol``."""

    table: ClassVar[Mapping[str, tuple[str, str]]] = COMMANDS


_HELP: Final = """Look into Kafka's protocol: frames, grammar, brokers.

All of it by the codec and the client in pure Python; no other client is needed.
"""


@click.group(cls=ProtocolCommands, help=_HELP, short_help=_HELP.partition("\n")[0])
def command() -> None:
    """Run one of the commands."""
