"""``protocol``: the commands that inspect the Kafka protocol. Each command has its own module.

The commands `decode` and `grammar` do not need a broker. The modules `api_versions`, `fetch` and `produce`
connect to a broker; the module `_connection` contains their options and creates the client.
"""

from __future__ import annotations

from typing import Final

import click

from cloudevents_kafka.cli.app import LazyGroup

COMMANDS: Final = {
    "decode": "Explain frames field by field.",
    "grammar": "Print the grammar of a message.",
    "api-versions": "Print the API versions that a broker supports.",
    "fetch": "Read records with the pure-Python client.",
    "produce": "Send a record with the pure-Python client.",
}


@click.group(cls=LazyGroup, package=__name__, summaries=COMMANDS)
def command() -> None:
    """Inspect the Kafka protocol: frames, grammar, brokers.

    All commands use this library's codec and pure-Python client; no other client is needed.
    """
