"""``kip625``: the sizes of KIP-625."""

from __future__ import annotations

from pathlib import Path

import click

from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import FILE
from conformance.kip625 import sizes


@click.command()
@click.option("--histogram", is_flag=True, help="Also print the size of each range of integers.")
@click.option("--picture", type=FILE, metavar="FILE.svg", help="Draw both as SVG.")
def command(picture: str | None, *, histogram: bool) -> None:
    """Print what variable-length integers would save (KIP-625).

    Prints the encoded size of a MetadataResponse with one topic of 100 partitions, next to
    the totals of the proposal.
    """
    if picture is not None:
        try:
            Path(picture).write_text(sizes.svg(), encoding="utf-8")
        except OSError as error:
            raise BadUsage(f"--picture: cannot write {picture}: {error.strerror}") from None
    click.echo(sizes.table())
    if histogram:
        click.echo(f"\n{sizes.histogram()}")
