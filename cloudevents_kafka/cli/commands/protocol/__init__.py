"""``protocol``: commands that inspect the Kafka protocol, one module each.

`decode`, `grammar` and `sizes` need no broker. `api_versions`, `fetch` and `produce` connect to
one, by the options and the client of `_connection`. `_table` is the output of `decode`.
"""

from __future__ import annotations

from typing import Final

import click

from cloudevents_kafka.cli.app import LazyGroup

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "decode": ("cloudevents_kafka.cli.commands.protocol.decode", "Explain frames field by field."),
    "grammar": ("cloudevents_kafka.cli.commands.protocol.grammar", "Print the grammar of a message."),
    "sizes": (
        "cloudevents_kafka.cli.commands.protocol.sizes",
        "Print what variable-length integers would save (KIP-625).",
    ),
    "api-versions": (
        "cloudevents_kafka.cli.commands.protocol.api_versions",
        "Print the API versions that a broker supports.",
    ),
    "fetch": (
        "cloudevents_kafka.cli.commands.protocol.fetch",
        "Read records with the pure-Python client.",
    ),
    "produce": (
        "cloudevents_kafka.cli.commands.protocol.produce",
        "Send a record with the pure-Python client.",
    ),
}
_HELP: Final = """Inspect the Kafka protocol: frames, grammar, brokers.

All commands use this library's codec and pure-Python client; no other client is needed.
"""


@click.group(cls=LazyGroup, subcommands=COMMANDS, help=_HELP)
def command() -> None:
    """Run one of the commands."""
