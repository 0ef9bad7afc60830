"""``protocol api-versions``: print the API versions of a broker and of this library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from cloudevents_kafka.cli.commands.protocol._connection import ConnectionOptions, connect, connection_options
from cloudevents_kafka.cli.records.json_lines import encode_json
from cloudevents_kafka.cli.terminal.parameters import output_option
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.text import print_message
from cloudevents_kafka.protocol.api_keys import api_name
from cloudevents_kafka.protocol.client import CLIENT_VERSIONS, VERSIONS_0_8, VERSIONS_0_9
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.schema import Versions

_NOT_LISTED: Final = (
    "does not list its API versions, like every broker of Kafka 0.8 or 0.9; "
    "the versions that Kafka 0.8 and 0.9 both support are shown (groups since 0.9)"
)


@click.command()
@connection_options
@output_option
def command(connection: ConnectionOptions, output: str) -> None:
    """Print the API versions that a broker supports.

    For each API, prints the key, the name, the versions that the broker supports, the versions that this
    library declares, the versions that this library's client can use, and the version that the client picks.

    \b
    cloudevents-kafka protocol api-versions -b localhost:9092
    """
    with Interrupts() as interrupts, interrupts.waiting(), connect(connection) as client:
        versions = client.api_versions()
        if versions in (VERSIONS_0_8, VERSIONS_0_9):
            client.metadata([])  # fails if this is not a broker at all
            print_message(f"broker {connection.broker} {_NOT_LISTED}")
    rows = _rows(versions)
    if output == "json":
        click.echo("\n".join(encode_json(row).decode() for row in rows))
    else:
        click.echo(_table(rows))


def _rows(broker: Mapping[int, Versions]) -> list[dict[str, Any]]:
    """Return a row for each API: the versions of the broker and of this library (``""`` means none)."""

    def row(key: int) -> dict[str, Any]:
        of_broker, of_client = broker.get(key), CLIENT_VERSIONS.get(key)
        common = None if of_broker is None or of_client is None else of_client.common(of_broker)
        return {
            "key": key,
            "api": api_name(key),
            "broker": str(of_broker or ""),
            "declared": str(APIS[key].versions) if key in APIS else "",
            "client": str(of_client or ""),
            "picks": common.last if common is not None and common.first <= common.last else None,
        }

    return [row(key) for key in sorted({*broker, *APIS})]


def _table(rows: list[dict[str, Any]]) -> str:
    """Return the rows of the table as aligned text."""
    cells = [["-" if value in {None, ""} else str(value) for value in row.values()] for row in rows]
    lines = [list(rows[0]), *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
