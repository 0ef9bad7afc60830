"""``table vacuum``: delete files that no recent version of a table needs."""

from __future__ import annotations

from typing import Any

import click

from cloudevents_kafka.cli.commands.table._options import maintain, table_options


@click.command()
@table_options
@click.option(
    "--keep-hours",
    type=click.IntRange(min=0, max=1_000_000),
    default=168,
    show_default=True,
    metavar="HOURS",
    help="Keep the versions of the last HOURS hours for readers.",
)
def command(**options: Any) -> None:
    """Delete the files that no recent version of a Delta or Iceberg table needs.

    Runs the format's own procedure: VACUUM for Delta, expire_snapshots and remove_orphan_files for Iceberg.
    Prints the number of files of each table in storage before and after. The pipeline still knows which
    records it has written to the tables.

    Queries that read a deleted version fail, so keep at least as many hours as your longest query takes. If
    there are more than 1,000 versions, the command keeps the newest 1,000 and all versions of the last hour.
    """
    from cloudevents_kafka.spark.pipeline.maintenance import vacuum_tables

    maintain(vacuum_tables, options)
