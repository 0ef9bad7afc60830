"""``table optimize``: join small files of tables into larger files."""

from __future__ import annotations

from typing import Any

import click

from cloudevents_kafka.cli.commands.table._options import maintain, table_options


@click.command()
@table_options
@click.option(
    "--sort-by",
    metavar="COLUMN,…",
    help="Cluster the rows of each table by these columns, such as type,time. Columns that a table does not "
    "have are ignored for this table. All files are written again.",
)
def command(sort_by: str | None, **options: Any) -> None:
    """Join the small files of Delta and Iceberg tables into larger files.

    Runs the format's own procedure: OPTIMIZE for Delta, rewrite_data_files and rewrite_manifests for Iceberg.
    Prints the number of files of each table before and after. The old files stay until "table vacuum" deletes
    them, because queries may still read older versions.

    A pipeline may write to the tables at the same time. If a table is in a local folder, the pipeline waits
    with its commit until the table is optimized, but at most 5 minutes.
    """
    from cloudevents_kafka.spark.pipeline.maintenance import optimize_tables

    columns = tuple(filter(None, (sort_by or "").split(",")))
    maintain(optimize_tables, {**options, "sort_by": columns})
