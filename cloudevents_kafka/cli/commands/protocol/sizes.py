"""``protocol sizes``: what variable-length integers would save."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import FILE

_HELP: Final = """Print what variable-length integers would save (KIP-625).

The sizes of a MetadataResponse with one topic of 100 partitions, as they come out of the
encoders, beside the totals of the proposal.
"""


@click.command(help=_HELP, short_help="What variable-length integers would save (KIP-625).")
@click.option("--histogram", is_flag=True, help="Print as well how many bytes which integers take.")
@click.option("--picture", type=FILE, metavar="FILE.svg", help="Draw both, as SVG.")
def command(picture: str | None, *, histogram: bool) -> None:
    """Print the table, and what else is asked for."""
    from cloudevents_kafka.protocol.kip625 import sizes

    if picture is not None:
        try:
            Path(picture).write_text(sizes.picture(), encoding="utf-8")
        except OSError as error:
            raise BadUsage(f"--picture: cannot write {picture}: {error.strerror}") from None
    click.echo(sizes.table())
    if histogram:
        click.echo(f"\n{sizes.histogram()}")
